# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/pytorch.md that differ by version of torch: features, and torch's own suite.

    /usr/bin/python3 torch/tests/table.py FOLDER ... [--write docs/pytorch.md]

Each folder is of one torch and has features.json of features.py and suite.json of suite.py.
"""
import json
import os
import sys


def marks(name):
    return f"<!-- {name}: written by torch/tests/table.py -->\n", f"<!-- end of {name} -->\n"


def version(run):
    return run["torch"].split("+")[0].replace("a0", "")


# ---- features ----

def word(verdict):
    if verdict.startswith("not"):
        return "-"
    return "yes" if verdict == "yes" else "no"


def cell(row):
    """Peal's verdict, and Gloo's where it is another."""
    peal, gloo = word(row["peal"]), word(row["gloo"])
    return peal if peal == gloo else f"**{peal}** / {gloo}"


def reasons(runs):
    """What Peal has not, in torch's words, once each."""
    found = {}
    for run in runs:
        for name, row in run["rows"].items():
            if row["peal"].startswith("no:"):
                found.setdefault(row["peal"][4:], []).append(f"`{name}` ({version(run)})")
    return [f"- {', '.join(names)}: `{text}`" for text, names in found.items()]


def count(run, backend):
    return sum(row[backend] == "yes" for row in run["rows"].values())


def features(runs):
    names = list(dict.fromkeys(name for run in runs for name in run["rows"]))
    lines = ["| feature | " + " | ".join(map(version, runs)) + " |", "|---" * (len(runs) + 1) + "|"]
    for name in names:
        cells = [cell(run["rows"][name]) if name in run["rows"] else "" for run in runs]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    counts = [f"{count(run, 'peal')} / {count(run, 'gloo')}" for run in runs]
    lines.append("| **yes, of " + str(len(names)) + "** (Peal / Gloo) | " + " | ".join(counts) + " |")
    return "\n".join(lines + ["", "Not there, in the words of torch:", ""] + reasons(runs)) + "\n"


# ---- torch's own suite ----

def suites(runs):
    lines = ["| torch | ranks | tests | passed | failed | skipped by their own rules |", "|---" * 6 + "|"]
    failures = []
    for run in runs:
        counts = {verdict: sum(row["verdict"] == verdict for row in run["rows"]) for verdict in ("passed", "failed", "skipped")}
        lines.append(f"| {version(run)} | {run['world_size']} | {len(run['rows'])} | " + " | ".join(map(str, counts.values())) + " |")
        failures += [f"- `{row['test']}` ({version(run)}): `{row['reason']}`" for row in run["rows"] if row["verdict"] == "failed"]
    return "\n".join(lines + [""] * bool(failures) + failures) + "\n"


# ---- the document ----

def replaced(page, name, text):
    begin, end = marks(name)
    before, after = page.split(begin)[0], page.split(end)[1]
    return before + begin + "\n" + text + "\n" + end + after


def loaded(folders, name):
    runs = []
    for folder in folders:
        with open(os.path.join(folder, name)) as file:
            runs.append(json.load(file))
    return sorted(runs, key=lambda run: [int(part) for part in version(run).split(".")])


def main(arguments):
    target = None
    if "--write" in arguments:
        target = arguments[arguments.index("--write") + 1]
        arguments = arguments[:arguments.index("--write")]
    texts = {"features": features(loaded(arguments, "features.json")), "suite": suites(loaded(arguments, "suite.json"))}
    if target is None:
        return print("\n".join(texts.values()), end="")
    with open(target) as file:
        page = file.read()
    written = page
    for name, text in texts.items():
        written = replaced(written, name, text)
    if written == page:
        return print(f"{target}: the tables are as they were")
    with open(target, "w") as file:
        file.write(written)
    print(f"{target}: the tables have changed")


if __name__ == "__main__":
    main(sys.argv[1:])
