# SPDX-License-Identifier: Apache-2.0
"""Simulated hosts: network namespaces joined by virtual links, which disappear with the processes that hold them."""
import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import Failed, expect  # noqa: E402

PATIENCE = 600  # seconds after which something that should happen never will
# Settings of ranks that must survive a cut, however long a busy machine makes it.
PATIENT = {"PEAL_NET_SILENCE": "3600"}
INSIDE = "PEAL_HOSTS_TEST_INSIDE"


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def run(*command, timeout=PATIENCE, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False,
                          **options)


def sure(*command):
    done = run(*command)
    expect(done.returncode == 0, " ".join(command), done.stdout)


class Hosts:
    """Hosts h0, h1, ...: each with its own network, name, processes and /dev/shm, on one bridge in this process's network."""

    def __init__(self, count):
        self.folder = tempfile.mkdtemp(prefix="peal-hosts-")
        self.holders = [None] * count
        self.pids = [None] * count
        sure("ip", "link", "add", "br0", "type", "bridge")
        sure("ip", "link", "set", "br0", "up")
        sure("ip", "addr", "add", "10.77.0.254/24", "dev", "br0")  # this process's own, for launchers
        self.via = f"{self.folder}/via"
        with open(self.via, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\npid=$(cat {self.folder}/$1)\nshift\n"
                       "exec nsenter -t $pid -m -u -i -n -p --wd=/ -- \"$@\"\n")
        self.agent = f"{self.folder}/agent"
        with open(self.agent, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n# Called as ssh is: options, a host, a command.\n"
                       "while case $1 in -*) true ;; *) false ;; esac; do shift; done\n"
                       f"host=$1\nshift\nexec {self.via} $host sh -c \"$*\"\n")
        os.chmod(self.via, 0o755)
        os.chmod(self.agent, 0o755)
        for i in range(count):
            self.start(i)

    def start(self, i):
        holder = subprocess.Popen(["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                                   f"hostname h{i} && mount -t proc proc /proc && mount -t tmpfs tmpfs /dev/shm && "
                                   "ip link set lo up && echo up && exec sleep 100000"],
                                  stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        self.holders[i] = holder
        expect(holder.stdout.readline() == "up\n", f"host h{i} does not start")
        with open(f"/proc/{holder.pid}/task/{holder.pid}/children", encoding="ascii") as file:
            pid = file.read().split()[0]
        self.pids[i] = pid
        for name in (f"h{i}", f"10.77.0.{i + 1}"):
            with open(f"{self.folder}/{name}", "w", encoding="ascii") as file:
                file.write(pid)
        sure("ip", "link", "add", f"v{i}", "type", "veth", "peer", "name", "eth0", "netns", pid)
        sure("ip", "link", "set", f"v{i}", "master", "br0", "up")
        self.on(i, "ip", "addr", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
        self.on(i, "ip", "-6", "addr", "add", f"fd77::{i + 1}/64", "dev", "eth0", "nodad")
        self.on(i, "ip", "link", "set", "eth0", "up")

    def stop(self, i):
        """Ends the whole host at once: its processes, its network, its files."""
        self.holders[i].kill()
        self.holders[i].wait()
        self.holders[i].stdout.close()
        self.holders[i] = None
        run("ip", "link", "del", f"v{i}")  # the system would do so later

    def on(self, host, *command):
        sure(self.via, f"h{host}", *command)

    def link(self, host, state):
        sure("ip", "link", "set", f"v{host}", state)

    def cut(self, host, seconds):
        """Cuts the link for a moment, and lets it work for as long."""
        self.link(host, "down")
        time.sleep(seconds)
        self.link(host, "up")
        time.sleep(seconds)

    def close(self):
        for i, holder in enumerate(self.holders):
            if holder:
                self.stop(i)
        run("ip", "link", "del", "br0")
        shutil.rmtree(self.folder)


class Job:
    """A `peal exec --hosts`, whose output is read line by line."""

    def __init__(self, peal, hosts, spec, command, env=None):
        settings = dict(os.environ, **(env or {}))
        self.lines, self.rest = [], ""
        self.process = subprocess.Popen([peal, "exec", "-p", "--hosts", spec, "--via", f"{hosts.via} {{host}}", *command],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=settings,
                                        preexec_fn=die_with_parent)

    def until(self, pattern, count=1):
        """Reads until this many lines match; returns the matches."""
        found = [m for m in (re.search(pattern, line) for line in self.lines) if m]
        start = time.monotonic()
        while len(found) < count:
            if "\n" not in self.rest:
                left = max(0, PATIENCE - (time.monotonic() - start))
                readable = select.select([self.process.stdout], [], [], left)[0]
                more = os.read(self.process.stdout.fileno(), 65536).decode() if readable else ""
                expect(more, f"no '{pattern}' in", "".join(self.lines) + self.rest)
                self.rest += more
                continue
            line, self.rest = self.rest.split("\n", 1)
            self.lines.append(line + "\n")
            match = re.search(pattern, line)
            if match:
                found.append(match)
        return found

    def end(self):
        """All of its output, and its exit code."""
        try:
            more = self.process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired as error:
            so_far = (error.output or b"").decode(errors="replace")
            raise Failed(f"the job has not ended after {PATIENCE} s:\n" + "".join(self.lines) + self.rest + so_far) from error
        return "".join(self.lines) + self.rest + more, self.process.returncode

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.communicate(timeout=PATIENCE // 3)
            except subprocess.TimeoutExpired:
                self.process.kill()  # its ranks end with their hosts
                self.process.communicate()


def pids_of(program, hosts, host):
    """The pids, in this process's namespace, of a program on a host."""
    found = []
    if not hosts.holders[host]:
        return found
    space = os.readlink(f"/proc/{hosts.pids[host]}/ns/pid")
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.readlink(f"/proc/{entry}/ns/pid") == space and \
                    os.readlink(f"/proc/{entry}/exe") == os.path.realpath(program):
                found.append(int(entry))
        except OSError:
            continue
    return sorted(found)


def listening_port(hosts, host):
    with open(f"/proc/{hosts.pids[host]}/net/tcp", encoding="ascii") as file:
        for line in file.readlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                return int(words[1].split(":")[1], 16)
    raise Failed("no rank listens")


def enter():
    """Restarts the program in a network of its own, or returns why that is not allowed."""
    if INSIDE in os.environ:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `finally` closes the hosts
        sure("ip", "link", "set", "lo", "up")
        return None
    # A user other than root becomes root of a user namespace. The machine's network is not touched in either case.
    command = ["unshare", "--net", "--mount"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])
    probe = run(*command, "sh", "-c", "ip link set lo up && ip link add name va type veth peer name vb && ip link add br0 type bridge")
    if probe.returncode != 0:
        return probe.stdout.strip().splitlines()[-1]
    os.environ[INSIDE] = "1"
    os.execvp(command[0], command + [sys.executable, os.path.abspath(sys.argv[0])] + sys.argv[1:])
