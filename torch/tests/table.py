# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/pytorch.md for features and for torch's own suite, and the CSV files behind them.

    /usr/bin/python3 torch/tests/table.py FOLDER ... [--write docs]

Each folder has the results of one version of torch: features.json of features.py and suite.json of suite.py. The table of features has
a line for each kind of feature; docs/pytorch/features.csv and suite.csv have all rows.
"""
import csv
import fnmatch
import io
import json
import os
import sys

# A feature belongs to the first kind that has a pattern for its name.
KINDS = (
    ("`async_op=True`, futures", "*_async future_*"),
    ("types and operations of all_reduce", "all_reduce_float* all_reduce_bfloat* all_reduce_*int* all_reduce_bool all_reduce_complex* "
     "all_reduce_avg all_reduce_max all_reduce_product all_reduce_bor"),
    ("objects", "*_object*"),
    ("messages: any source, batches, tags", "*send* recv_* *_messages"),
    ("DDP: modes, hooks, join, no_sync", "ddp*"),
    ("ZeRO, post-local SGD", "zero_* post_local_sgd"),
    ("FSDP 1 and 2, hybrid sharding", "fsdp* hybrid_sharding"),
    ("device mesh, DTensor", "device_mesh dtensor*"),
    ("tensor, sequence and loss parallel", "*_parallel"),
    ("pipelines", "pipeline_*"),
    ("functional collectives, eager and compiled", "functional_* compiled_* autograd_*"),
    ("checkpoints", "checkpoint*"),
    ("groups: sub-groups, split, made again, debug mode, one per kind of device", "new_* destroyed_* split_* cpu_and_* debug_*"),
    ("profiler, time-outs, what torch refuses", "profiler_* time_out *_refused_*"),
    ("collectives", "*"),
)


def marks(name, script):
    return f"<!-- {name}: written by torch/tests/{script} -->\n", f"<!-- end of {name} -->\n"


def version(run):
    return run["torch"].split("+")[0].replace("a0", "")


# ---- features ----

def kind_of(name):
    return next(title for title, patterns in KINDS if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split()))


def cell(rows):
    """How many of these features work with Peal, of those that this torch has, and with Gloo if that differs."""
    there = [row for row in rows if not row["peal"].startswith("not")]
    peal, gloo = (sum(row[backend] == "yes" for row in there) for backend in ("peal", "gloo"))
    if not there:
        return "-"
    return f"{peal} of {len(there)}" + (f" (Gloo {gloo})" if gloo != peal else "")


def reasons(runs):
    """torch's reasons for features that do not work with Peal, once each."""
    found = {}
    for run in runs:
        for name, row in run["rows"].items():
            if row["peal"].startswith("no:"):
                found.setdefault(row["peal"][4:], []).append(f"`{name}` ({version(run)})")
    return [f"- {', '.join(names)}: `{text}`" for text, names in found.items()]


def features(runs):
    lines = ["| | " + " | ".join(map(version, runs)) + " |", "|---" * (len(runs) + 1) + "|"]
    for title in [KINDS[-1][0]] + [title for title, _ in KINDS[:-1]]:
        cells = [cell([row for name, row in run["rows"].items() if kind_of(name) == title]) for run in runs]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines.append("| **all** | " + " | ".join(cell(run["rows"].values()) for run in runs) + " |")
    return "\n".join(lines + ["", "Features that do not work, with torch's message, which is the same with Gloo:", ""] + reasons(runs)) + "\n"


def feature_rows(runs):
    yield "torch", "feature", "peal", "gloo"
    for run in runs:
        for name, row in run["rows"].items():
            yield version(run), name, row["peal"], row["gloo"]


# ---- torch's own suite ----

def suites(runs):
    lines = ["| torch | ranks | tests | passed | failed | skipped by their own rules |", "|---" * 6 + "|"]
    failures = []
    for run in runs:
        counts = {verdict: sum(row["verdict"] == verdict for row in run["rows"]) for verdict in ("passed", "failed", "skipped")}
        lines.append(f"| {version(run)} | {run['world_size']} | {len(run['rows'])} | " + " | ".join(map(str, counts.values())) + " |")
        failures += [f"- `{row['test']}` ({version(run)}): `{row['reason']}`" for row in run["rows"] if row["verdict"] == "failed"]
    return "\n".join(lines + [""] * bool(failures) + failures) + "\n"


def suite_rows(runs):
    yield "torch", "ranks", "test", "verdict", "reason"
    for run in runs:
        for row in run["rows"]:
            yield version(run), run["world_size"], row["test"], row["verdict"], row["reason"]


# ---- the files ----

def replaced(page, name, text, script="table.py"):
    begin, end = marks(name, script)
    before, after = page.split(begin)[0], page.split(end)[1]
    return before + begin + "\n" + text + "\n" + end + after


def loaded(folders, name):
    runs = []
    for folder in folders:
        with open(os.path.join(folder, name)) as file:
            runs.append(json.load(file))
    return sorted(runs, key=lambda run: [int(part) for part in version(run).split(".")])


def put(path, text):
    """Writes the file, and prints whether that changes it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path) as file:
            old = file.read()
    except FileNotFoundError:
        old = ""
    with open(path, "w") as file:
        file.write(text)
    print(f"{path}: " + ("unchanged" if old == text else "changed"))


def as_csv(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def main(arguments):
    docs = None
    if "--write" in arguments:
        docs = arguments[arguments.index("--write") + 1]
        arguments = arguments[:arguments.index("--write")]
    of_features, of_suite = loaded(arguments, "features.json"), loaded(arguments, "suite.json")
    texts = {"features": features(of_features), "suite": suites(of_suite)}
    if docs is None:
        return print("\n".join(texts.values()), end="")
    with open(f"{docs}/pytorch.md") as file:
        page = file.read()
    for name, text in texts.items():
        page = replaced(page, name, text)
    put(f"{docs}/pytorch.md", page)
    put(f"{docs}/pytorch/features.csv", as_csv(feature_rows(of_features)))
    put(f"{docs}/pytorch/suite.csv", as_csv(suite_rows(of_suite)))


if __name__ == "__main__":
    main(sys.argv[1:])
