#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Turns texts into C: embed.py OUT.c HEADER ARRAY FILE... makes ARRAYs and ARRAY_count, which HEADER declares."""
import os
import sys


def quoted(line):
    """A line as a C string literal; octal escapes, because hexadecimal ones have no end."""
    out = ""
    for byte in line.encode():
        char = chr(byte)
        out += char if 32 <= byte < 127 and char not in '"\\?' else f"\\{byte:03o}"
    return f'"{out}\\n"'


def shown(path):
    """The name of a text: its folder and its file; of a recording header, what includes call it."""
    parts = os.path.normpath(path).split(os.sep)
    return "/".join(parts[parts.index("record") + 1:] if "record" in parts else parts[-2:])


def main(out, header, array, paths):
    names = [(f"file{i}", path) for i, path in enumerate(paths)]
    text = f"/* Made by src/lang/embed.py. */\n#include \"{header}\"\n\n"
    text += "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\n"
    for name, path in names:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        body = "\n    ".join(quoted(line) for line in lines) or '""'
        text += f"static const char {name}_text[] =\n    {body};\n\n"
    rows = "\n".join(f'    {{"{shown(path)}", {name}_text, sizeof {name}_text - 1}},' for name, path in names)
    text += f"const struct peal_source {array}s[] = {{\n{rows}\n}};\n"
    text += f"const size_t {array}_count = {len(names)};\n"
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)


main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
