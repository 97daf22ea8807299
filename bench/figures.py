# SPDX-License-Identifier: Apache-2.0
"""Results into cells, tables (Markdown) and plots (SVG)."""
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
        self.wrong = []
        for r in results:
            if not r.get("right", True):
                self.wrong.append(r)
                continue
            key = (r["collective"], r["nranks"], r["mode"], r["bytes"])
            cell = self.best.setdefault(key, {})
            value = r["median_us"]
            family, system = r["family"], r["system"]
            if system not in cell or value < cell[system][0]:
                cell[system] = (value, family)

    def groups(self):
        """(collective, ranks, mode), in the order measured."""
        return list(dict.fromkeys(key[:3] for key in self.best))

    def sizes(self, group):
        return sorted(key[3] for key in self.best if key[:3] == group)

    def rival(self, group, size):
        """Time and name of the fastest setting of any rival, or (None, '')."""
        cell = self.best[group + (size,)]
        rivals = [(us, name) for name, (us, family) in cell.items() if family in RIVALS]
        return min(rivals) if rivals else (None, "")

    def time(self, group, size, system):
        found = self.best[group + (size,)].get(system)
        return found[0] if found else None

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


def markdown(cells):
    lines = []
    for group in cells.groups():
        lines += [f"### {title(group)}", "", "| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
        lines += ["| " + " | ".join(cells.row(group, size)) + " |" for size in cells.sizes(group)]
        lines.append("")
    return "\n".join(lines)


def machine():
    """Processor, processors, caches and system, as the kernel tells them."""
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
    width, height, left, top, right, bottom = 640, 400, 60, 40, 20, 50
    low_x, high_x = (math.log2(f(p[0] for p in every)) for f in (min, max))
    low_y = math.floor(math.log10(min(p[1] for p in every)))
    high_y = math.ceil(math.log10(max(p[1] for p in every)))
    high_y = max(high_y, low_y + 1)

    def x_of(size):
        return left + (math.log2(size) - low_x) / max(high_x - low_x, 1) * (width - left - right)

    def y_of(us):
        return height - bottom - (math.log10(us) - low_y) / (high_y - low_y) * (height - top - bottom)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
           f'font-size="12"><rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="{left}" y="20" font-size="14">{title(group)}: microseconds over bytes</text>']
    for power in range(low_y, high_y + 1):
        y = y_of(10.0 ** power)
        out.append(f'<path d="M{left} {y:.1f}H{width - right}" stroke="#d0d7de"/>'
                   f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0 ** power:g}</text>')
    for size in cells.sizes(group):
        if size:
            out.append(f'<text x="{x_of(size):.1f}" y="{height - bottom + 18}" text-anchor="middle">'
                       f'{size_text(size)}</text>')
    for number, (name, line) in enumerate((n, l) for n, l in lines.items() if l):
        path = "M" + "L".join(f"{x_of(s):.1f} {y_of(us):.1f}" for s, us in line)
        dash = ' stroke-dasharray="5 4"' if name == "limit" else ""
        out.append(f'<path d="{path}" fill="none" stroke="{COLORS[name]}" stroke-width="2"{dash}/>')
        label = "best rival" if name == "rival" else name
        out.append(f'<text x="{left + 10}" y="{top + 14 + 16 * number}" fill="{COLORS[name]}">{label}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def load_text(results):
    """What else the machine did while these were measured; more than one busy process disturbs two ranks."""
    loads = [r["load"] for r in results if "load" in r]
    if not loads:
        return "Load average: not recorded."
    return f"Load average while measuring: {min(loads):.0f} to {max(loads):.0f} on {PROCESSORS} processors."


def links(plots, folder):
    """Markdown of the plots: {group: file name} in a folder beside the document."""
    return "".join(f"![{title(group)}]({folder}/{name})\n" for group, name in plots.items())


def plan_table(rows):
    """Rows of bench-plan and simgrid-ring."""
    lines = ["| what | kernel | ranks | ops | processor time, ms | peak memory, MB |", "|---|---|---|---|---|---|"]
    for r in rows:
        what = r["what"] + (f" ({r['system']})" if "system" in r else "")
        ranks = "-" if not r["nranks"] else f"{r['nranks']}" if r.get("all_ranks", True) else f"one of {r['nranks']}"
        lines.append(f"| {what} | {r.get('kernel') or '-'} | {ranks} | {r.get('ops') or '-'} | {r['cpu_ms']:.3f} | "
                     f"{r.get('peak_mb', '-')} |")
    return "\n".join(lines) + "\n"


def write_section(path, name, text):
    """Replaces what is between the section's two marks, or adds both at the end of the document."""
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
