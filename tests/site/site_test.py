#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The site and the gallery: all links lead somewhere, a dead one is found, pages have what they are about.

    site_test.py PEAL
"""
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
sys.dont_write_bytecode = True
from command import run  # noqa: E402
from tap import Tap, expect  # noqa: E402

PEAL = os.path.abspath(sys.argv[1])
SITE, GALLERY = os.path.join(TOP, "scripts", "site"), os.path.join(TOP, "scripts", "gallery")
BROKEN = {"no such file": "[a](nothing.md)", "no such heading": "[a](#nothing)", "no such picture": "![a](nothing.png)"}


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def the_projects_links_are_alive(folder):
    done = run(SITE, folder)
    expect(done.returncode == 0, done.stdout[-2000:], done.stderr)
    tutorial = read(folder, "docs", "tutorial.html")
    expect("<h1 id=" in tutorial and "kernel sum(" in tutorial, tutorial[:500])
    index = json.loads(read(folder, "index.js")[len("window.pealIndex = "):].rstrip(";\n"))
    expect(any("tutorial" in page and "wait" in text for page, _, _, text in index), "the tutorial is not in the index")


def the_gallery_has_verdicts_and_times(folder):
    out = os.path.join(folder, "gallery")
    done = run(GALLERY, PEAL, out, "allreduce_mesh", "h05", "aiter-3515")
    expect(done.returncode == 0, done.stderr)
    page = read(out, "allreduce_mesh.html")
    expect("proved for every number of ranks" in page and "µs" in page and "allreduce_mesh.svg" in page, page[:3000])
    expect("refuted" in read(out, "aiter-3515.html") and "pealPage" in read(out, "aiter-3515-story.html"))
    expect(run(SITE, folder).returncode == 0, "a link of the gallery is dead")
    os.remove(os.path.join(out, "allreduce_mesh.svg"))
    expect(run(SITE, folder).returncode == 1, "a missing picture is not found")


def a_dead_link_fails(folder, text):
    with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as file:
        file.write(f"# A\n\n[fine](#a) and {text}\n")
    done = run(SITE, os.path.join(folder, "out"), folder)
    expect(done.returncode == 1 and "nothing" in done.stdout, done.stdout, done.stderr)


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        tap.run("the project's links are alive", the_projects_links_are_alive, folder)
        tap.run("the gallery has verdicts and times", the_gallery_has_verdicts_and_times, folder)
    for name, text in BROKEN.items():
        with tempfile.TemporaryDirectory() as folder:
            tap.run(name, a_dead_link_fails, folder, text)
    return tap.end()


sys.exit(main())
