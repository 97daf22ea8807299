# SPDX-License-Identifier: Apache-2.0
"""Runs shell commands in a temporary folder, in the same way on every machine."""
import os
import signal
import subprocess
import tempfile

TIME_LIMIT = 1500  # seconds, after which a command hangs

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Sandbox:
    """A temporary folder in which `peal` is the program under test and $TOP the source tree."""

    def __init__(self, peal):
        self.folder = tempfile.TemporaryDirectory(prefix="peal-test-")
        self.path = self.folder.name
        tools = os.path.join(self.path, ".bin")
        os.mkdir(tools)
        os.symlink(os.path.abspath(peal), os.path.join(tools, "peal"))
        self.environment = {
            "PATH": tools + ":" + os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": self.path,
            "TMPDIR": self.path,
            "TOP": TOP,
            "BUILD": os.path.dirname(os.path.abspath(peal)),
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH"):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def write(self, name, text):
        path = os.path.normpath(os.path.join(self.path, name))
        if not path.startswith(self.path + os.sep):
            raise ValueError(f"'{name}' is outside the test's folder")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def link(self, *names):
        """Makes folders of the source tree available."""
        for name in names:
            os.symlink(os.path.join(TOP, name), os.path.join(self.path, name))

    def run(self, command):
        """(output and errors, exit code); paths of this machine are replaced."""
        process = subprocess.Popen(
            ["/bin/bash", "-c", command], cwd=self.path, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        try:
            raw, _ = process.communicate(timeout=TIME_LIMIT)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raw, _ = process.communicate()
            raw += b"\n(took longer than the time limit)\n"
            code = -1
        output = raw.decode("utf-8", "replace")
        for path, name in ((self.path, "$TMP"), (self.environment["BUILD"], "$BUILD"), (TOP, "$TOP")):
            output = output.replace(path, name)
        return output, code

    def close(self):
        self.folder.cleanup()
