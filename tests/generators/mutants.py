#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changed kernels, for tests that need kernels which are nearly right.

    mutants.py SEED COUNT FOLDER FILE.peal...    writes COUNT texts, each one kernel of the files with a few lines changed

`every` gives all mutants of a kernel that lack one piece of synchronisation; `change` makes one random change. A random text is a
function of SEED and its number. Most of them are rejected by the front end or refuted; the tests are about those that are still
proved.
"""
import os
import random
import re
import sys

DEPTH = "channels of depth 1"
PARENTHESES = r"\([^()]*(?:\([^()]*\)[^()]*)*\)"
PLACE = rf"[A-Za-z_]\w*(?:\[[^\]]*\])?(?:@(?:\w+(?:{PARENTHESES})?|{PARENTHESES}))?"
# A threshold ends where the next statement or the end of the block begins.
NOTIFY = re.compile(r"notify (?:relaxed )?" + PLACE + r" \+= [^\n{}]+?(?=\s*(?:\n|\}|notify |wait ))")
WAIT = re.compile(r"(wait (?:relaxed )?" + PLACE + r" >= )([^\n{}]+?)( at launch - \d+)?(?=\s*(?:\n|\}|notify |wait ))")
SWAPS = [(re.compile(r"@left\b"), "@right"), (re.compile(r"@right\b"), "@left"),
         (re.compile(r"to right\b"), "to left"), (re.compile(r"from left\b"), "from right"),
         (re.compile(r"\(rank \+ 1\) % nranks"), "(rank - 1) % nranks"),
         (re.compile(r"\(rank - 1\) % nranks"), "(rank + 1) % nranks")]


def kernels_of(path):
    """(name, text without comments) of every kernel of a file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for match in re.finditer(r"^kernel (\w+)\(.*?^\}\n", text, re.M | re.S):
        yield match.group(1), re.sub(r"[ \t]*//[^\n]*", "", match.group(0))


# ---- every mutant of a kind ----

def never(statement):
    """The statement under a condition that small plans never fulfil. Without it, the front end would reject a signal that is
    never notified."""
    return "if nranks > 1000 { " + statement + " }"


def line_at(text, position):
    return " ".join(text[text.rfind("\n", 0, position) + 1:(text + "\n").find("\n", position)].split())


def is_whole(line):
    """Does a statement or block begin and end on the line?"""
    return bool(line.strip()) and line.count("{") == line.count("}") and not line.strip().startswith("}")


def swapped_lines(text):
    """Lines of synchronisation, each exchanged with the statement on the next line."""
    lines = text.split("\n")
    windows = "|".join(re.findall(r"window (\w+):", text) + re.findall(r"(\w+): window", text) + ["@"])
    for i in range(len(lines) - 1):
        one, two = lines[i], lines[i + 1]
        whole = all(is_whole(l) and l[-1] not in "=,+(" and
                    not re.match(r"\s*(kernel|window|signal|channel|grid|private|assert|let|var|else)\b", l) for l in (one, two))
        same = len(one) - len(one.lstrip()) == len(two) - len(two.lstrip())
        # A line that only uses private memory may stand on either side.
        reaches = all(re.search(rf"\b(notify|wait|{windows})\b|@", l) for l in (one, two))
        if whole and same and reaches and re.search(r"\b(notify|wait)\b", one + two):
            yield (f"'{' '.join(two.split())}' before '{' '.join(one.split())}'",
                   "\n".join(lines[:i] + [two, one] + lines[i + 2:]))


def without_waits(text):
    """(wait, text in which it passes at once)"""
    for match in WAIT.finditer(text):
        yield match.group(0), text[:match.start()] + f"{match.group(1)}0{match.group(3) or ''}" + text[match.end():]


def without_notifies(text):
    """(notify, text in which it is never made)"""
    for match in NOTIFY.finditer(text):
        yield match.group(0), text[:match.start()] + never(match.group(0)) + text[match.end():]


def without_sends(text):
    """(send, text without it); a kernel over channels has no other synchronisation: a recv waits for its send"""
    for match in re.finditer(r"send [^\n}]*", text):
        yield match.group(0).strip(), text[:match.start()] + text[match.end():]


def every_change(text):
    for notify, changed in without_notifies(text):
        yield f"without '{notify}'", changed, []
    for match in WAIT.finditer(text):
        yield f"without '{match.group(0)}'", text[:match.start()] + never(match.group(0)) + text[match.end():], []
        weaker = f"{match.group(1)}({match.group(2)}) - 1{match.group(3) or ''}"
        yield f"'{match.group(0)}' lowered by 1", text[:match.start()] + weaker + text[match.end():], []
        if match.group(2).strip() != "1":  # otherwise the same as lowered by 1
            none = f"{match.group(1)}0{match.group(3) or ''}"
            yield f"'{match.group(0)}' passes at once", text[:match.start()] + none + text[match.end():], []
    for pattern, other in SWAPS:
        for match in pattern.finditer(text):
            yield (f"'{match.group(0)}' as '{other}' in '{line_at(text, match.start())}'",
                   text[:match.start()] + other + text[match.end():], [])
    for description, changed in swapped_lines(text):
        yield description, changed, []
    if re.search(r"launch mod 2", text):
        yield "one slot instead of two halves", text.replace("launch mod 2", "launch mod 1"), []
    if re.search(r"\b(send|recv|recv_slot)\b", text):
        yield DEPTH, text, ["--depth", "1"]


def every(text):
    """(description, changed text, options of `peal verify`); equal descriptions are numbered."""
    seen = {}
    for description, changed, options in every_change(text):
        seen[description] = number = seen.get(description, 0) + 1
        yield description if number == 1 else f"{description} (number {number})", changed, options


# ---- one random change ----

# Patterns, and texts that may replace their matches; \1 is the first group.
WORDS = [(re.compile(pattern), others) for pattern, others in [
    (r">= (\w+)", [r">= \1 + 1", r">= \1 - 1", r"== \1", r">= 2 * \1", ">= 0"]),
    (r"\+= 1\b", ["+= 2", "= 1", "= 2"]),
    (r"rank \+ 1", ["rank - 1", "rank + 2", "rank"]),
    (r"rank - 1", ["rank + 1", "rank - 2", "rank"]),
    (r" \+ 1\b", ["", " + 2"]),
    (r" - 1\b", ["", " - 2"]),
    (r"\bnotify (?!relaxed)", ["notify relaxed ", "fence release notify relaxed ", "fence acquire notify relaxed "]),
    (r"\bwait (?!relaxed)", ["wait relaxed "]),
    (r"\bwait (?!relaxed)([^{}]*)$", [r"wait relaxed \1 fence acquire", r"wait relaxed \1 fence release"]),
    (r"signal (?!shared|raw)", ["signal shared ", "signal raw "]),
    (r"signal shared ", ["signal ", "signal raw "]),
    (r"signal raw ", ["signal ", "signal shared "]),
    (r"\bready\b", ["taken"]),
    (r"\btaken\b", ["ready"]),
    (r"launch - \d", ["launch - 1", "launch - 2", "launch - 3", "launch - 4"]),
    (r"launch mod \d", ["launch mod 1", "launch mod 2", "launch mod 3"]),
    (r"\(launch mod \d\) \* most", ["0"]),
    (r"\broot\b", ["0", "(nranks - 1)", "rank"]),
    (r"\bleft\b", ["right"]),
    (r"\bright\b", ["left"]),
    (r"\bbelow\b", ["above"]),
    (r"in peers", ["in 0 .. nranks", "in 1 .. nranks"]),
    (r"of nranks", ["of 2", "of nranks + 1"]),
    (r"in 1 \.\. nranks", ["in 0 .. nranks", "in 1 .. nranks - 1", "in 1 .. nranks + 1", "in 2 .. nranks"]),
    (r"nranks - 1", ["nranks"]),
    (r"nranks > 1", ["nranks > 2"]),
    (r"<=", ["<"]),
    (r"1 << k", ["2 << k"]),
    (r"\bs\b", ["(s - 1)", "(s + 1)"]),
    (r"- s\b", ["+ s"]),
    (r"\[rank\]", ["[(rank + 1) % nranks]", "[0]", "[p]"]),
    (r"\[p\]", ["[rank]", "[(p + 1) % nranks]", "[0]"]),
    (r"\[(?:p|q|c|rank) of", ["[p of", "[q of", "[rank of", "[0 of"]),
    (r"(\w+)\[(\w+) of", [r"\1[\2 + 1 of"]),
    (r"@p\b", ["@((p + 1) % nranks)", "", "@root", "@left", "@0", "@rank"]),
    (r"@\w+", ["", "@0", "@rank", "@root"]),
    (r" = op\((\S+), ", [r" op= op(\1, "]),
    (r"op\((.*), (.*)\)$", [r"op(\2, \1)"]),
    (r" op= ", [" = ", " max= "]),
    (r"final\(op, (.*)\)$", [r"\1"]),
    (r"\+: (\w+)", [r"+: \1 - 1", r"+: \1 / 2"]),
    (r"\bcur\b", ["acc"]),
    (r"= slot\b", ["= x"]),
    (r"\bx\b", ["y"]),
    (r"recv_slot", ["recv"]),
    (r" recv ", [" recv_slot "]),
    (r"wait (.*)$", [r"if rank % 2 == 0 { wait \1 }", r"if rank % 2 == 1 { wait \1 }"]),
    (r"notify (.*)$", [r"if rank != 0 { notify \1 }", r"if rank != 1 { notify \1 }", r"if rank != 2 { notify \1 }"]),
]]


def change_word(rng, lines):
    """Replaces one match of WORDS in one line."""
    found = {i: [(pattern, others) for pattern, others in WORDS if pattern.search(line)] for i, line in enumerate(lines[1:], 1)}
    changeable = [i for i, words in found.items() if words]
    if not changeable:
        return
    i = rng.choice(changeable)
    pattern, others = rng.choice(found[i])
    match = rng.choice(list(pattern.finditer(lines[i])))
    lines[i] = lines[i][:match.start()] + match.expand(rng.choice(others)) + lines[i][match.end():]


def change(rng, text):
    """The text with a line left out, moved, repeated or exchanged with another one, or with one word replaced."""
    lines = text.split("\n")
    whole = [i for i in range(1, len(lines)) if is_whole(lines[i])]
    kind = rng.random()
    if not whole:
        return text
    i = rng.choice(whole)
    if kind < 0.15:
        del lines[i]
    elif kind < 0.25:
        other = rng.choice(whole)
        lines[i], lines[other] = lines[other], lines[i]
    elif kind < 0.4 and i + 1 in whole:
        lines[i], lines[i + 1] = lines[i + 1], lines[i]
    elif kind < 0.45:
        lines.insert(rng.choice(whole), lines.pop(i))
    elif kind < 0.5:
        lines.insert(rng.choice(whole), lines[i])
    else:
        change_word(rng, lines)
    return "\n".join(lines)


def main():
    seed, count, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    pool = [kernel for path in sys.argv[4:] for kernel in kernels_of(path)]
    for i in range(count):
        rng = random.Random(seed * 1000003 + i)
        name, text = rng.choice(pool)
        for _ in range(rng.choice([1, 1, 2, 2, 3, 4])):
            text = change(rng, text)
        with open(os.path.join(folder, f"m{i}_{name}.peal"), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
