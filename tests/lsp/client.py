# SPDX-License-Identifier: Apache-2.0
"""A client of the language server, and an oracle for its places that shares nothing with it: a text as UTF-16."""
import json
import os
import re
import select
import subprocess
import time

LIMIT_S = 300  # ends hangs


class Server:
    """A server that was started; `with` ends it. Notifications and its own requests are kept in `said`."""

    def __init__(self, peal, *options, capabilities=None, start=True):
        self.process = subprocess.Popen([peal, "lsp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.bytes, self.number, self.said = b"", 0, []
        if start:
            self.capabilities = self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": capabilities or {}})["capabilities"]
            self.tell("initialized", {})

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.process.kill()
        self.process.communicate()

    def send_bytes(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        body = json.dumps(dict(message, jsonrpc="2.0"), ensure_ascii=message.get("id", 0) == 7).encode("utf-8", "surrogatepass")
        self.send_bytes(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def read(self, limit=LIMIT_S):
        """The next message; None: the server has ended, or nothing came."""
        end = time.monotonic() + limit
        while True:
            match = re.match(rb"Content-Length: (\d+)\r\n\r\n", self.bytes)
            if match and len(self.bytes) >= match.end() + int(match.group(1)):
                body = self.bytes[match.end():match.end() + int(match.group(1))]
                self.bytes = self.bytes[match.end() + len(body):]
                return json.loads(body.decode("utf-8", "strict"))
            assert match or not self.bytes or len(self.bytes) < 40, f"not a message: {self.bytes[:80]}"
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return None
            self.bytes += more

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def request(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return self.number

    def answer(self, number):
        while True:
            message = self.read()
            assert message is not None, "no answer"
            if "method" in message:
                self.said.append(message)
            elif message["id"] == number:
                return message

    def ask(self, method, params):
        """The result; an error becomes a string that begins with '!'."""
        message = self.answer(self.request(method, params))
        return "!" + message["error"]["message"] if "error" in message else message["result"]

    def wait_for(self, wanted):
        """The first message of the server's own for which `wanted` is true, sent or to come."""
        for message in self.said:
            if wanted(message):
                return message
        while True:
            message = self.read()
            assert message is not None, "it never came"
            if "method" in message:
                self.said.append(message)
                if wanted(message):
                    return message

    def open(self, uri, text, version=1):
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "peal", "version": version, "text": text}})

    def change(self, uri, version, *changes):
        self.tell("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)})

    def diagnostics(self, uri, version):
        message = self.wait_for(lambda m: m["method"] == "textDocument/publishDiagnostics" and m["params"]["uri"] == uri
                                and m["params"].get("version") == version)
        return message["params"]["diagnostics"]


class Text:
    """A text as the protocol counts it: lines end with LF, CR LF or CR; columns are UTF-16 units."""

    def __init__(self, text):
        self.text = text
        self.lines = re.split(r"(?<=\r\n)|(?<=\n)|(?<=\r)(?!\n)", text)

    @staticmethod
    def units(text):
        return len(text.encode("utf-16-le", "surrogatepass")) // 2

    def position(self, index):
        for number, line in enumerate(self.lines):
            if index < len(line) or number == len(self.lines) - 1:
                return {"line": number, "character": self.units(line[:index])}
            index -= len(line)
        raise AssertionError

    def index(self, position):
        """None: there is no such place."""
        if not 0 <= position["line"] < len(self.lines):
            return None
        line = self.lines[position["line"]]
        body = line.rstrip("\r\n")
        for i in range(len(body) + 1):
            if self.units(body[:i]) == position["character"]:
                return sum(map(len, self.lines[:position["line"]])) + i
        return None

    def snap(self, index):
        """There is no place between CR and LF: the one before them."""
        return index - (0 < index < len(self.text) and self.text[index - 1:index + 1] == "\r\n")

    def part(self, place):
        """The text of a range; None: it is no range of this text."""
        start, end = self.index(place["start"]), self.index(place["end"])
        return None if start is None or end is None or end < start else self.text[start:end]

    def range(self, start, end):
        return {"start": self.position(start), "end": self.position(end)}

    def edited(self, edits):
        """The text after edits, which must not overlap."""
        out, last = "", 0
        for edit in sorted(edits, key=lambda e: (self.index(e["range"]["start"]), self.index(e["range"]["end"]))):
            start, end = self.index(edit["range"]["start"]), self.index(edit["range"]["end"])
            assert start >= last, "edits overlap"
            out, last = out + self.text[last:start] + edit["newText"], end
        return out + self.text[last:]

    def at(self, word, nth=0, inside=0):
        """The position of the nth occurrence of a word."""
        found = [m.start() for m in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", self.text)][nth]
        return self.position(found + inside)
