# SPDX-License-Identifier: Apache-2.0
"""Results as TAP: a line per check, the reasons of a failure below it, and the number of checks at the end."""
import subprocess


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def expect(condition, *shown):
    """Fails the test, with the reasons, unless the condition holds."""
    if not condition:
        raise Failed("\n".join(str(text) for text in shown))


class Tap:
    def __init__(self):
        self.number = self.failed = 0

    def check(self, name, good, *why):
        self.number, self.failed = self.number + 1, self.failed + (not good)
        print("ok" if good else "not ok", self.number, "-", name, flush=True)
        for line in why if not good else ():
            print("#", str(line)[-3000:].replace("\n", "\n# "), flush=True)

    def run(self, name, test, *arguments):
        """Calls a test, which may raise Failed or Skipped. False: it failed."""
        good, why = True, ""
        try:
            test(*arguments)
        except Skipped as skipped:
            name += f" # SKIP {skipped}"
        except LookupError as error:
            good, why = False, repr(error)
        except (Failed, subprocess.TimeoutExpired, OSError, ValueError) as error:
            good, why = False, error
        self.check(name, good, why)
        return good

    def end(self):
        """The exit code; no check at all is a failure, too."""
        print(f"1..{self.number}")
        return int(self.failed > 0 or self.number == 0)
