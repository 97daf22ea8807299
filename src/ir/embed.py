#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Turns kernel texts into C: embed.py OUT.c FILE.peal..."""
import os
import sys


def quoted(line):
    """A line as a C string literal; octal escapes, because hexadecimal ones have no end."""
    out = ""
    for byte in line.encode():
        char = chr(byte)
        out += char if 32 <= byte < 127 and char not in '"\\?' else f"\\{byte:03o}"
    return f'"{out}\\n"'


def main(out, paths):
    names = [(os.path.basename(path).split(".")[0], path) for path in paths]
    text = "/* Made from kernels/ by src/ir/embed.py. */\n#include \"ir/library.h\"\n\n"
    text += "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\n"
    for name, path in names:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        body = "\n    ".join(quoted(line) for line in lines) or '""'
        text += f"static const char {name}_text[] =\n    {body};\n\n"
    rows = "\n".join(f'    {{"kernels/{name}.peal", {name}_text, sizeof {name}_text - 1}},' for name, _ in names)
    text += f"const struct peal_source peal_library_texts[] = {{\n{rows}\n}};\n"
    text += f"const size_t peal_library_text_count = {len(names)};\n"
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)


main(sys.argv[1], sys.argv[2:])
