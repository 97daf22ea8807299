# SPDX-License-Identifier: Apache-2.0
"""What only the `peal` command offers: proofs for every number of ranks, and files for other engines."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from typing import Any, Dict, List, Optional, Sequence, Union

from ._library import PealError, lib


def find() -> str:
    """$PEAL_COMMAND, else the command beside the library that is loaded, else the one in PATH."""
    asked = os.environ.get("PEAL_COMMAND")
    if asked:
        return asked
    folder = os.path.dirname(os.path.abspath(lib._name)) if os.sep in lib._name else None
    for place in (folder, os.path.join(folder, "..", "bin") if folder else None):
        if place and os.access(os.path.join(place, "peal"), os.X_OK):
            return os.path.join(place, "peal")
    found = shutil.which("peal")
    if not found:
        raise PealError(7, "the command 'peal' was not found: set PEAL_COMMAND to its path")
    return found


def run(words: Sequence[str], kernel: str, name: Optional[str] = None) -> "subprocess.CompletedProcess[str]":
    """A command on a kernel: a text, which goes to a file of its own, or the name of a library kernel."""
    with tempfile.TemporaryDirectory(prefix="peal-") as folder:
        if "{" in kernel:
            path = os.path.join(folder, "kernel.peal")
            with open(path, "w", encoding="utf-8") as file:
                file.write(kernel)
        else:
            path = kernel
        line = [find(), words[0], path, *words[1:]] + (["-k", name] if name else [])
        return subprocess.run(line, capture_output=True, text=True, check=False)


def options(**values: Any) -> List[str]:
    """depth=4 -> --depth 4; None and False are left out."""
    line: List[str] = []
    for key, value in values.items():
        if value is None or value is False:
            continue
        line.append("--" + key.replace("_", "-"))
        if value is not True:
            line.append(str(value))
    return line


def verify_all(kernel: str, name: Optional[str], **values: Any) -> Dict[str, Any]:
    """What `peal verify -n all --json` says."""
    done = run(["verify", "-n", "all", "--json", *options(**values)], kernel, name)
    if done.returncode not in (0, 1, 3) or not done.stdout.lstrip().startswith("{"):
        raise PealError(1, (done.stderr or done.stdout).strip())
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def export(kernel: Any, to: str, ranks: int, output: Union[str, "os.PathLike[str]"], count: Optional[int] = None,
           dtype: Optional[str] = None, op: Optional[str] = None, root: Optional[int] = None, depth: Optional[int] = None,
           in_place: bool = False, values: Optional[Dict[str, int]] = None, name: Optional[str] = None) -> List[str]:
    """Writes the proved plan of a kernel for another engine ("msccl", "mscclpp" or "pto") to the folder `output`; returns the
    paths of the files. The file is read back as that engine would, and proved, before it is kept; see docs/formats.md."""
    os.makedirs(output, exist_ok=True)
    before = set(os.listdir(output))
    words = ["export", "--to", to, "-n", str(ranks), "-o", os.fspath(output),
             *options(count=count, dtype=dtype, op=op, root=root, depth=depth, in_place=in_place)]
    for key, value in (values or {}).items():
        words += ["--set", f"{key}={value}"]
    done = run(words, str(kernel), name)
    if done.returncode:
        raise PealError(1, (done.stderr or done.stdout).strip())
    named = [line.split(": ")[0] for line in done.stdout.splitlines()]
    return sorted({path for path in named if os.path.exists(path)} |
                  {os.path.join(output, entry) for entry in set(os.listdir(output)) - before})
