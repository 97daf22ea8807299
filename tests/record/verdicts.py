# SPDX-License-Identifier: Apache-2.0
"""The answers of `peal verify` for many files."""
import json
import subprocess


def verify(peal, files, *options):
    """File -> the verdict, or the fault that it names, and why."""
    done = subprocess.run([peal, "verify", "--json", "--no-cache", *options, *files], capture_output=True, text=True, timeout=1800, check=False)
    found = {}
    for row in json.loads(done.stdout)["files"]:
        answer = row["runs"][0].get("answer") if row.get("runs") else None
        found[row["file"]] = ("unreadable", str(row)) if answer is None else (
            answer["fault"] or answer["verdict"], answer["why"])
    return found
