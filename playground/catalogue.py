#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects the examples of the playground and the gallery from where they are: tutorial, library, museum, hazards, machines.

    catalogue.py TOP KERNELS.json >catalogue.json     KERNELS.json: what `peal list --json` prints

An item has an id, a title, a line about it, a story in Markdown, settings of the page, and a text, or the name of a library kernel.
"""
import glob
import json
import os
import re
import sys

TOP = sys.argv[1]


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


def first_sentence(text):
    text = " ".join(text.replace("`", "").split())
    end = re.search(r"[.:](?= |$)", text)
    return text[:end.start()] + "." if end else text


def clean(text):
    """A kernel's text without its licence line and the lines that tests read."""
    return "".join(line for line in text.splitlines(True) if not re.match(r"// (SPDX|\w+: .*=>)", line)).lstrip("\n")


def settings_of(text):
    """Ranks and options at which a case of the text shows its fault, or its proof."""
    case = re.search(r"^// case: ?(.*?)=> *(.*)$", text, re.M)
    if not case:
        return {}
    options, verdicts = case.group(1).split(), case.group(2).split(";")
    wanted = next((one for one in verdicts if not re.match(r" *(proved|closed|repeatable)", one)), verdicts[0])
    ranks = re.search(r"(\d+)(?=[.,]|$| *$|\s)", wanted.split()[1])
    first = int(ranks.group(1)) if ranks else 2
    chosen = {"ranks": f"2..{max(4, first)}"}
    while len(options) > 1 and options[0] in ("--count", "-c"):
        chosen["count"], options = options[1], options[2:]
    if options and options[0] not in ("--kernel", "-k"):
        chosen["options"] = " ".join(options)
    return chosen


def tutorial():
    found = re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", read("docs", "tutorial.md"), re.M | re.S)
    items = []
    for title, body in found:
        text = re.search(r"^```peal \S+\n(.*?)^```", body, re.M | re.S)
        if not text:
            continue
        prose = re.sub(r"^```.*?^```\n?", "", body, flags=re.M | re.S)
        prose = "\n\n".join(block for block in prose.split("\n\n") if not re.match(r"\s*([-|!\[]|$)", block))
        prose = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", prose).replace("*", "")
        title = re.sub(r"^\d+\. *", "", title)
        items.append({"id": f"tutorial/{len(items) + 1}", "title": title, "about": first_sentence(prose),
                      "story": f"# {title}\n\n{prose.strip()}", "text": text.group(1), "settings": {"ranks": "2..4"}})
    items[0]["about"] = "A race that tests seldom meet. Start here."
    hints = ["Press Prove: all schedules at 2, 3 and 4 ranks are examined.", "Press Prove, then Simulate."]
    for item, hint in zip(items, hints):
        item["hint"] = hint
    return items


def museum():
    items = []
    for path in sorted(glob.glob(os.path.join(TOP, "museum", "*", "page.md"))):
        name = os.path.basename(os.path.dirname(path))
        story = read("museum", name, "page.md")
        title = story.splitlines()[0].lstrip("# ")
        for kind, about in (("bug", f"{name}: as it happened"), ("fix", f"{name}: fixed")):
            text = read("museum", name, kind + ".peal")
            items.append({"id": f"museum/{name}/{kind}", "title": title + (", fixed" if kind == "fix" else ""), "about": about,
                          "story": story, "text": clean(text), "settings": settings_of(text)})
    return items


def hazards():
    items = []
    for path in sorted(glob.glob(os.path.join(TOP, "tests", "hazards", "*.peal"))):
        name = os.path.basename(path)[:-5]
        text = read("tests", "hazards", name + ".peal")
        head = re.match(r"(?:// .*\n)+", text).group(0)
        about = " ".join(line[3:] for line in head.splitlines() if not re.match(r"// (SPDX|case:)", line))
        title = re.sub(r"^[hs]\d+_", "", name).replace("_", " ")
        verdicts = "; ".join(v.strip() for v in re.findall(r"=> *(.*)$", head, re.M))
        items.append({"id": f"hazards/{name}", "title": title[0].upper() + title[1:], "about": first_sentence(about) or verdicts,
                      "story": f"# {title[0].upper() + title[1:]}\n\n{about}\n\n**What Peal says:** {verdicts}.", "text": clean(text),
                      "settings": settings_of(text)})
    return items


def library(kernels):
    items = []
    for kernel in kernels:
        about = " ".join(kernel["about"].split())
        promise = kernel["implements"] or "no collective"
        items.append({"id": f"kernels/{kernel['name']}", "title": kernel["name"], "about": first_sentence(about) or promise, "kernel": kernel["name"],
                      "story": f"# {kernel['name']}\n\n{about}\n\n**Implements:** {promise}. **Text:** `{kernel['file']}`, line {kernel['line']}.",
                      "settings": {}})
    return items


def machines():
    found = []
    for path in sorted(glob.glob(os.path.join(TOP, "machines", "*.yaml"))):
        lines = [line[2:] for line in read(path).splitlines()[1:] if line.startswith("# ")]
        found.append({"name": os.path.basename(path)[:-5], "about": first_sentence(" ".join(lines))})
    return found


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        kernels = json.load(file)
    groups = [
        {"name": "Tutorial", "about": "A first collective: broken, fixed, and then smaller ones.", "items": tutorial()},
        {"name": "Bugs that happened", "about": "In other libraries, as kernels, with what happened and why tests did not see it.", "items": museum()},
        {"name": "Hazards", "about": "Patterns that go wrong, or look as if they would.", "items": hazards()},
        {"name": "Library", "about": "The kernels that come with Peal, each proved.", "items": library(kernels)},
    ]
    json.dump({"groups": groups, "machines": machines()}, sys.stdout, ensure_ascii=False, indent=1)


main()
