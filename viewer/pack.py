#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs the page into a C file: page.html with its style and scripts put inside, cut at the title and at the data.

    pack.py OUT.c page.html style.css a.js b.js ...

The scripts become one, in the order given, inside one function scope; the content security policy in page.html
gets the hashes of style and script, so that the browser runs and applies nothing else.
"""
import base64
import hashlib
import sys


def source_hash(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def c_array(name, text):
    data = text.encode()
    rows = [",".join(str(b - 256 if b > 127 else b) for b in data[i:i + 32]) for i in range(0, len(data), 32)]
    return "const char %s[] = {%s};\nconst size_t %s_len = %d;\n" % (name, ",\n".join(rows + ["0"]), name, len(data))


def main():
    out, page, style = sys.argv[1:4]
    html = open(page, encoding="utf-8").read()
    css = open(style, encoding="utf-8").read()
    js = "'use strict';\n(() => {\n" + "".join(open(f, encoding="utf-8").read() for f in sys.argv[4:]) + "})();\n"
    assert "</script" not in js.lower() and "<!--" not in js and "</style" not in css.lower()
    for mark, text in (("@STYLE_HASH@", source_hash(css)), ("@SCRIPT_HASH@", source_hash(js)), ("@STYLE@", css),
                       ("@SCRIPT@", js)):
        assert html.count(mark) == 1, mark + " must stand once in " + page
        html = html.replace(mark, text)
    head, rest = html.split("@TITLE@")
    middle, tail = rest.split("@DATA@")
    with open(out, "w", encoding="ascii") as f:
        f.write('#include "report/page_template.h"\n')
        for name, text in (("head", head), ("middle", middle), ("tail", tail)):
            f.write(c_array("peal_page_template_" + name, text))


main()
