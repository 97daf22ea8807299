# SPDX-License-Identifier: Apache-2.0
"""Results as TAP: a line per check, what was wrong below it, and how many there were at the end."""


class Tap:
    def __init__(self):
        self.number = self.failed = 0

    def check(self, name, good, *why):
        self.number, self.failed = self.number + 1, self.failed + (not good)
        print("ok" if good else "not ok", self.number, "-", name, flush=True)
        for line in why if not good else ():
            print("#", str(line)[-3000:].replace("\n", "\n# "), flush=True)

    def end(self):
        """The exit code."""
        print(f"1..{self.number}")
        return int(self.failed > 0)
