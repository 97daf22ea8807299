# SPDX-License-Identifier: Apache-2.0
"""Turns results into cells, a data file (CSV), a summary (Markdown) and plots (SVG)."""
import csv
import math
import os
import platform

from systems import PROCESSORS, RIVALS

COLORS = {"Peal": "#1a7f37", "Peal, symmetric": "#8250df", "rival": "#cf222e", "limit": "#57606a"}


def size_text(size):
    for unit, shift in (("M", 20), ("K", 10)):
        if size and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


def time_text(us):
    return "-" if us is None else f"{us:.2f}" if us < 100 else f"{us:.0f}"


class Cells:
    """The lowest median of all rounds, per (collective, ranks, mode, bytes) and system."""

    def __init__(self, results):
        self.best = {}
        self.runs = {}  # all medians, by (collective, ranks, mode, bytes, system)
        self.wrong = []
        for r in results:
            if not r.get("right", True):
                self.wrong.append(r)
                continue
            key = (r["collective"], r["nranks"], r["mode"], r["bytes"])
            cell = self.best.setdefault(key, {})
            value = r["median_us"]
            family, system = r["family"], r["system"]
            self.runs.setdefault(key + (system,), []).append(value)
            if system not in cell or value < cell[system][0]:
                cell[system] = (value, family)

    def groups(self):
        """(collective, ranks, mode), in the order measured."""
        return list(dict.fromkeys(key[:3] for key in self.best))

    def sizes(self, group):
        return sorted(key[3] for key in self.best if key[:3] == group)

    def rival(self, group, size):
        """The time and name of the fastest setting of any rival, or (None, '')."""
        cell = self.best[group + (size,)]
        rivals = [(us, name) for name, (us, family) in cell.items() if family in RIVALS]
        return min(rivals) if rivals else (None, "")

    def time(self, group, size, system):
        found = self.best[group + (size,)].get(system)
        return found[0] if found else None

    def is_steady(self, group, size, system):
        """Did another run of the same setting come within 5 % of the lowest?"""
        runs = sorted(self.runs[group + (size, system)])
        return len(runs) > 1 and runs[1] <= 1.05 * runs[0]

    def row(self, group, size):
        rival, name = self.rival(group, size)
        ours = self.time(group, size, "Peal")
        symmetric = self.time(group, size, "Peal, symmetric")
        limit = self.time(group, size, "limit")
        ratio = f"{rival / ours:.2f}" if rival and ours else "-"
        over = f"{ours / limit:.2f}" if ours and limit else "-"
        return [size_text(size), time_text(ours), time_text(symmetric), time_text(rival), name or "-", ratio,
                time_text(limit), over]


HEAD = ["bytes", "Peal", "Peal, symmetric", "best rival", "which", "rival / Peal", "limit", "Peal / limit"]


def title(group):
    collective, ranks, mode = group
    return f"{collective}, {ranks} ranks, {mode}"


MODES = ["hot", "fresh", "row"]
DATA = ["collective", "ranks", "mode", "bytes", "peal_us", "symmetric_us", "rival_us", "rival", "limit_us"]


def data_rows(cells):
    """A row of the data file for every cell: what was measured, nothing derived."""
    for group in cells.groups():
        for size in cells.sizes(group):
            rival, name = cells.rival(group, size)
            times = [cells.time(group, size, "Peal"), cells.time(group, size, "Peal, symmetric"), rival]
            texts = ["" if us is None else f"{us:.4g}" for us in times + [cells.time(group, size, "limit")]]
            yield dict(zip(DATA, [*map(str, group), str(size), *texts[:3], name, texts[3]]))


def read_data(path):
    if not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write_data(path, rows):
    """Replaces the rows of the same cells in the file, adds new ones, keeps the others."""
    def key(row):
        return tuple(row[name] for name in DATA[:4])
    merged = {key(row): row for row in read_data(path)}
    merged.update((key(row), row) for row in rows)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, DATA, lineterminator="\n")
        writer.writeheader()
        writer.writerows(merged.values())


def cells_of(rows):
    """The cells of a data file, for plots and the summary."""
    results = []
    for row in rows:
        families = {"Peal": "peal_us", "Peal, symmetric": "symmetric_us", "limit": "limit_us", row["rival"]: "rival_us"}
        for system, column in families.items():
            if row.get(column):
                family = RIVALS[0] if column == "rival_us" else system
                results.append({"collective": row["collective"], "nranks": int(row["ranks"]), "mode": row["mode"],
                                "bytes": int(row["bytes"]), "system": system, "family": family,
                                "median_us": float(row[column])})
    return Cells(results)


def factor(cells, group):
    """Rival over Peal: the geometric mean over the sizes, and the smallest and largest of them."""
    if group not in cells.groups():
        return "-"
    pairs = [(cells.rival(group, size)[0], cells.time(group, size, "Peal")) for size in cells.sizes(group)]
    ratios = [rival / ours for rival, ours in pairs if rival and ours]
    if not ratios:
        return "-"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{mean:.2f}" if len(ratios) == 1 else f"{mean:.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def summary(cells):
    """One row per collective, one column per number of ranks and mode."""
    columns = sorted({group[1:] for group in cells.groups()}, key=lambda column: (column[0], MODES.index(column[1])))
    lines = ["| collective | " + " | ".join(f"{ranks} ranks, {mode}" for ranks, mode in columns) + " |",
             "|" + "---|" * (len(columns) + 1)]
    for collective in dict.fromkeys(group[0] for group in cells.groups()):
        row = [factor(cells, (collective, *column)) for column in columns]
        lines.append(f"| {collective} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def steadiness(cells):
    """How many times of a table were confirmed by another run of the same setting: the others may be chance."""
    shown = []
    for group in cells.groups():
        for size in cells.sizes(group):
            names = {"Peal", "Peal, symmetric", "limit", cells.rival(group, size)[1]}
            shown += [cells.is_steady(group, size, n) for n in names if cells.runs.get(group + (size, n))]
    return f"{shown.count(True)} of {len(shown)} times were met again within 5 % by another run of the same setting."


def machine():
    """Processor, processors, caches and system, as the kernel reports them."""
    model, caches = platform.machine(), []
    try:
        with open("/proc/cpuinfo") as file:
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
        for index in range(1, 4):
            base = f"/sys/devices/system/cpu/cpu0/cache/index{index}/"
            with open(base + "level") as level, open(base + "type") as kind, open(base + "size") as size:
                if kind.read().strip() != "Instruction":
                    caches.append(f"L{level.read().strip()} {size.read().strip()}")
    except OSError:
        pass
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return f"{PROCESSORS} processors ({model}; {', '.join(caches)}), {system}, Linux {platform.release()}"


def points(cells, group, pick):
    found = []
    for size in cells.sizes(group):
        us = pick(size)
        if us and size:
            found.append((size, us))
    return found


STYLE = ("text{fill:#24292f}.back{fill:#fff}.grid{stroke:#d8dee4}.frame{stroke:#8c959f}"
         "@media(prefers-color-scheme:dark){text{fill:#d6dde6}.back{fill:#12161c}.grid{stroke:#2a323d}"
         ".frame{stroke:#6b7683}.line{filter:brightness(1.5)}}")


def power_text(us):
    """A power of ten of microseconds, in the largest unit that fits."""
    for least, unit in ((1e6, "s"), (1e3, "ms"), (1, "µs")):
        if us >= least:
            return f"{us / least:g} {unit}"
    return f"{us * 1e3:g} ns"


class Frame:
    """The axes: bytes to the right, time upwards, both logarithmic."""

    width, height, left, top, right, bottom = 720, 420, 66, 66, 28, 52

    def __init__(self, every):
        self.low_x, self.high_x = (math.log2(f(p[0] for p in every)) for f in (min, max))
        self.low_y = math.floor(math.log10(min(p[1] for p in every)))
        self.high_y = max(math.ceil(math.log10(max(p[1] for p in every))), self.low_y + 1)

    def x_of(self, size):
        share = (math.log2(size) - self.low_x) / max(self.high_x - self.low_x, 1)
        return self.left + share * (self.width - self.left - self.right)

    def y_of(self, us):
        share = (math.log10(us) - self.low_y) / (self.high_y - self.low_y)
        return self.height - self.bottom - share * (self.height - self.top - self.bottom)

    def axes(self, sizes):
        bottom, middle = self.height - self.bottom, (self.height - self.bottom + self.top) / 2
        for power in range(self.low_y, self.high_y + 1):
            y = self.y_of(10.0 ** power)
            yield (f'<path class="grid" d="M{self.left} {y:.1f}H{self.width - self.right}"/>'
                   f'<text x="{self.left - 6}" y="{y + 4:.1f}" text-anchor="end">{power_text(10.0 ** power)}</text>')
        labelled = -math.inf  # the end of the last label: labels that would touch it are left out
        for size in sizes:
            x = self.x_of(size)
            yield f'<path class="grid" d="M{x:.1f} {self.top}V{bottom}"/>'
            if x - labelled >= 36:
                yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{size_text(size)}</text>'
                labelled = x
        yield (f'<path class="frame" d="M{self.left} {self.top}V{bottom}H{self.width - self.right}" fill="none"/>'
               f'<text x="{(self.left + self.width - self.right) / 2}" y="{self.height - 12}" '
               f'text-anchor="middle">bytes</text>'
               f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">time of a call</text>')

    def line(self, name, points):
        at = [(self.x_of(size), self.y_of(us)) for size, us in points]
        dash = ' stroke-dasharray="6 4"' if name == "limit" else ""
        yield (f'<path class="line" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in at)}" fill="none" '
               f'stroke="{COLORS[name]}" stroke-width="2"{dash}/>')
        for x, y in at:
            yield f'<circle class="line" cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLORS[name]}"/>'


def svg(cells, group):
    """Time over size, both logarithmic; one line each for Peal, the best rival and the limit."""
    lines = {
        "limit": points(cells, group, lambda s: cells.time(group, s, "limit")),
        "rival": points(cells, group, lambda s: cells.rival(group, s)[0]),
        "Peal, symmetric": points(cells, group, lambda s: cells.time(group, s, "Peal, symmetric")),
        "Peal": points(cells, group, lambda s: cells.time(group, s, "Peal")),
    }
    every = [p for line in lines.values() for p in line]
    if len(every) < 2:
        return None
    frame = Frame(every)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {frame.width} {frame.height}" '
           f'font-family="sans-serif" font-size="13"><style>{STYLE}</style>',
           '<rect class="back" width="100%" height="100%"/>',
           f'<text x="{frame.left}" y="24" font-size="15" font-weight="bold">{title(group)}</text>']
    out += frame.axes([size for size in cells.sizes(group) if size])
    x = frame.left
    for name, line in lines.items():
        if not line:
            continue
        out += frame.line(name, line)
        label = "best rival" if name == "rival" else name
        dash = ' stroke-dasharray="6 4"' if name == "limit" else ""
        out.append(f'<path class="line" d="M{x} 45h24" stroke="{COLORS[name]}" stroke-width="2"{dash}/>'
                   f'<text x="{x + 30}" y="49">{label}</text>')
        x += 50 + 8 * len(label)
    return "\n".join(out + ["</svg>"]) + "\n"


def load_text(results):
    """The load of the machine while these were measured. More than one other busy process disturbs two ranks."""
    loads = [r["load"] for r in results if "load" in r]
    if not loads:
        return "Load average: not recorded."
    return f"Load average while measuring: {min(loads):.0f} to {max(loads):.0f} on {PROCESSORS} processors."


def apart_text(results):
    """How many results were measured while the virtual machine's processors shared no cache; '' if none."""
    apart = sum(r.get("apart", False) for r in results)
    return f"{apart} of {len(results)} results were measured while two processors were far apart." if apart else ""


def plan_table(rows):
    """Rows of bench-plan and simgrid-ring."""
    lines = ["| what | kernel | ranks | ops | processor time, ms | peak memory, MB |", "|---|---|---|---|---|---|"]
    for r in rows:
        what = r["what"] + (f" ({r['system']})" if "system" in r else "")
        ranks = "-" if not r["nranks"] else f"{r['nranks']}" if r.get("all_ranks", True) else f"one of {r['nranks']}"
        lines.append(f"| {what} | {r.get('kernel') or '-'} | {ranks} | {r.get('ops') or '-'} | {r['cpu_ms']:.3f} | "
                     f"{r.get('peak_mb', '-')} |")
    return "\n".join(lines) + "\n"


def read_section(path, name):
    """The text between the section's two marks; empty if there are none."""
    begin, end = f"<!-- begin {name}: written by bench/compare -->", f"<!-- end {name} -->"
    with open(path) as file:
        text = file.read()
    return text.split(begin, 1)[1].split(end, 1)[0] if begin in text else ""


def write_section(path, name, text):
    """Replaces the text between the section's two marks, or adds it and them at the end of the document."""
    begin, end = f"<!-- begin {name}: written by bench/compare -->", f"<!-- end {name} -->"
    old = ""
    if os.path.exists(path):
        with open(path) as file:
            old = file.read()
    if begin not in old:
        old += f"\n{begin}\n{end}\n"
    head, rest = old.split(begin, 1)
    tail = rest.split(end, 1)[1]
    with open(path, "w") as file:
        file.write(f"{head}{begin}\n{text}\n{end}{tail}")
