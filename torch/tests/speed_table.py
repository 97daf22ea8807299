# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of speed of docs/pytorch.md, and docs/pytorch/speed.csv with all rows.

    /usr/bin/python3 torch/tests/speed_table.py FILE ... [--write docs]

The files were written by the benches in examples/torch, with --json. Rows that differ in times only are reduced to medians.
"""
import json
import statistics
import sys

import table

SHOWN = (4, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26)  # sizes with a column in the document
UNITS = {1 << 20: "MiB", 1 << 10: "KiB"}
TIMES = {"calls": ("peal", "gloo", "mpi", "free", "symmetric", "copies"), "ddp": ("peal", "symmetric", "gloo", "mpi", "free"),
         "overlap": ("alone_ms", "asleep_ms", "sleep_ms", "compute_ms", "best_ms", "used_ms", "after_ms", "slept", "computed"),
         "neighbour": ("beside_waits", "beside_calls", "alone_us", "with_them_us"), "new_group": ("ms", "kib", "descriptors")}


def add_ratios(row):
    """Ratios of one run: their medians say more than ratios of medians."""
    if row["bench"] == "overlap":
        row["slept"] = row["sleep_ms"] / max(row["alone_ms"], row.get("asleep_ms", 0))
        row["computed"] = row["compute_ms"] / row["best_ms"]


def read(paths):
    """Rows by bench."""
    alike = {}
    for path in paths:
        with open(path) as file:
            for row in map(json.loads, file):
                what = {key: value for key, value in row.items() if key not in TIMES[row["bench"]]}
                alike.setdefault(json.dumps(what), []).append(row)
    for rows in alike.values():
        for row in rows:
            add_ratios(row)
    by_bench = {bench: [] for bench in TIMES}
    for what, rows in alike.items():
        row = json.loads(what)
        for key in TIMES[row["bench"]]:
            values = [one[key] for one in rows if key in one]
            if values:
                row[key] = statistics.median(values)
        by_bench[row["bench"]].append(row)
    return by_bench


def size(count):
    for unit, name in UNITS.items():
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} B"


def number(value):
    if value is None or value != value:
        return "-"
    if abs(value) < 10:
        return f"{value:.2g}"
    digits = 0 if abs(value) >= 100 else 1
    return f"{value:.{digits}f}".removesuffix(".0")


def lines_of(title, rows):
    return ["| " + " | ".join(title) + " |", "|---" * len(title) + "|"] + ["| " + " | ".join(row) + " |" for row in rows]


def versions(rows):
    return ", ".join(sorted({table.version(row) for row in rows}))


def calls(rows, title):
    """A line for each call and number of ranks, a column for each size."""
    columns = sorted({row["bytes"] for row in rows})
    lines = []
    for key in dict.fromkeys((row["call"], row["world"]) for row in rows):
        own = {row["bytes"]: row for row in rows if (row["call"], row["world"]) == key}
        backends = [name for name in TIMES["calls"][:3] if any(name in row for row in own.values())]
        cells = [" / ".join(number(own[count].get(name)) for name in backends) if count in own else "" for count in columns]
        lines.append([key[0], str(key[1]), *cells])
        for name, text in (("symmetric", "... in symmetric memory"), ("free", "... by a backend that does nothing"),
                           ("copies", "... the copies alone")):
            if any(name in row for row in own.values()):
                lines.append([text, str(key[1]), *(number(own[c].get(name)) if c in own else "" for c in columns)])
    return [title.format(versions(rows)), ""] + lines_of(["call", "ranks", *map(size, columns)], lines) + [""]


def ddp(rows):
    kinds = [kind for kind in TIMES["ddp"] if any(kind in row for row in rows)]
    lines = [[f"{row['megabytes']:.1f} MB", str(row["batch"]), str(row["world"]), table.version(row),
              *(f"{number(row[kind])} ({row[kind] / row['free']:.2f})" if kind in row else "-" for kind in kinds)] for row in rows]
    return (["DDP steps in milliseconds, and times those with free communication:", ""] +
            lines_of(["gradients", "batch", "ranks", "torch", *kinds], lines) + [""])


def overlap(rows):
    lines = []
    for row in rows:
        lines.append([row["backend"], size(row["bytes"]), number(row["alone_ms"]), f"{number(row['sleep_ms'])} ({row['slept']:.2f})",
                      f"{number(row['compute_ms'])} ({row['computed']:.2f})", number(row.get("after_ms"))])
    return ([f"`async_op=True` at two ranks, torch {versions(rows)}, milliseconds: all_reduce alone; beside a sleep as long, and times the longer; "
             "beside computing as long on the caller's core, and times the processor time of both divided by the cores; "
             "a synchronous call and then the computing:", ""] +
            lines_of(["backend", "size", "alone", "with a sleep", "with computing", "one after the other"], lines) + [""])


def neighbour(rows):
    lines = [[row["backend"], str(row["world"]), str(row["neighbours"]), f"{row['beside_waits']:.2f}", f"{row['beside_calls']:.2f}",
              number(row["alone_us"]), number(row["with_them_us"])] for row in rows]
    return ([f"Programs that compute beside the ranks, torch {versions(rows)}: what they keep of their speed, and microseconds of a call:", ""] +
            lines_of(["backend", "ranks", "neighbours", "keep beside ranks that wait", "beside ranks that call", "a call without them",
                      "with them"], lines) + [""])


def new_group(rows):
    lines = [[row["backend"], str(row["world"]), table.version(row), number(row["ms"]), f"{max(row['kib'], 0):.0f}", f"{row['descriptors']:.1f}"]
             for row in rows]
    return ["`new_group`, before it is used:", ""] + lines_of(["backend", "ranks", "torch", "ms", "KiB per rank", "descriptors per rank"], lines)


def text(by_bench):
    plain = [row for row in by_bench["calls"] if not row["between"] and row["bytes"] in SHOWN]
    between = [row for row in by_bench["calls"] if row["between"]]
    lines = calls(plain, "Microseconds of the slowest rank, Peal / Gloo / torch's MPI backend, torch {}:")
    if between:
        lines += calls(between, "The same with 50 microseconds of Python between the calls, which are taken off, torch {}:")
    for bench, function in (("ddp", ddp), ("overlap", overlap), ("neighbour", neighbour), ("new_group", new_group)):
        if by_bench[bench]:
            lines += function(by_bench[bench])
    return "\n".join(lines).rstrip() + "\n"


def all_rows(by_bench):
    yield "bench", "torch", "what", "value", "number"
    for bench, rows in by_bench.items():
        for row in rows:
            what = " ".join(f"{key}={row[key]}" for key in row if key not in TIMES[bench] + ("bench", "torch"))
            for key in TIMES[bench]:
                if key in row:
                    yield bench, table.version(row) if "torch" in row else "", what, key, number(row[key])


def main(arguments):
    docs = None
    if "--write" in arguments:
        docs = arguments[arguments.index("--write") + 1]
        arguments = arguments[:arguments.index("--write")]
    by_bench = read(arguments)
    if docs is None:
        return print(text(by_bench), end="")
    with open(f"{docs}/pytorch.md") as file:
        page = file.read()
    table.put(f"{docs}/pytorch.md", table.replaced(page, "speed", text(by_bench), "speed_table.py"))
    table.put(f"{docs}/pytorch/speed.csv", table.as_csv(all_rows(by_bench)))


if __name__ == "__main__":
    main(sys.argv[1:])
