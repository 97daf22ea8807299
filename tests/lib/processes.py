# SPDX-License-Identifier: Apache-2.0
"""Processes as /proc shows them."""
import os
import re
import signal
import time


def processes_of(session):
    """All processes of a session, also those whose parent has ended."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if fields[3] == str(session) and fields[0] not in "ZX":
            found.append(int(name))
    return found


def wait_until_watching(process, limit):
    """Waits until a command has blocked SIGINT: before that, during preparations, Ctrl-C just ends it."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline and process.poll() is None:
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
            blocked = re.search(r"^SigBlk:\s*([0-9a-f]+)", file.read(), re.M)
        if blocked and int(blocked.group(1), 16) >> (signal.SIGINT - 1) & 1:
            return
        time.sleep(0.01)
