# SPDX-License-Identifier: Apache-2.0
"""Vector clocks and the memory that they guard, for interpreters that find races in one run."""
import collections


class Fault(Exception):
    pass


class Clocks:
    """A clock for each of `count` threads; memory holds a value per key."""

    def __init__(self, count):
        self.clock = [[0] * count for _ in range(count)]
        self.memory = {}
        self.seen = collections.defaultdict(dict)  # (key, "r" or "w"): {thread: time of its last access}

    def access(self, thread, key, writes):
        """Notes an access. Unless it is ordered after all earlier conflicting ones, it is a race."""
        clock = self.clock[thread]
        for kind in ("w", "r") if writes else ("w",):
            if any(other != thread and clock[other] < time for other, time in self.seen[key, kind].items()):
                raise Fault("race")
        self.seen[key, "w" if writes else "r"][thread] = clock[thread] + 1

    def load(self, thread, key):
        self.access(thread, key, False)
        if key not in self.memory:
            raise Fault("uninitialised")
        return self.memory[key]

    def store(self, thread, key, value):
        self.access(thread, key, True)
        self.memory[key] = value

    def tick(self, thread):
        """Ends the thread's current step; returns its clock, to be passed to others."""
        self.clock[thread][thread] += 1
        return list(self.clock[thread])

    def join(self, thread, clock):
        """Orders the thread after everything that a clock has seen."""
        self.clock[thread] = [max(a, b) for a, b in zip(self.clock[thread], clock)]
