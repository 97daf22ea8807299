# SPDX-License-Identifier: Apache-2.0
"""Runs a command of a test, and reads the answers of `peal verify --json`."""
import json
import subprocess


def run(*command, **options):
    """The finished process; .stdout and .stderr are text."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **options)


def answers(done):
    """The answers of `peal verify --json`, without those for which there is no plan."""
    return [row["answer"] for row in json.loads(done.stdout)["answers"] if "answer" in row]
