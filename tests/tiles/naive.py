# SPDX-License-Identifier: Apache-2.0
"""Tile programs executed as they are, one memory access at a time, in a random order; races are found by vector clocks.

Nothing of Peal is used: a tile is a list of numbers, a pointer an (array, element) pair, a program of the grid a thread that waits for its
turn before each access. What the text imports is what `modules` gives.
"""
import threading
import types


class Stop(BaseException):
    """Ends a thread whose run is over."""


class Array:
    """Memory of one rank: elements, and who accessed each last."""

    def __init__(self, owner, name, count):
        self.owner, self.name = owner, name
        self.values, self.clocks = [0] * count, [{} for _ in range(count)]  # the clock that the value of a signal carries
        self.written, self.read = [None] * count, [{} for _ in range(count)]


class Tile(list):
    """Numbers or pointers, element by element."""

    def both(self, other, function):
        mine, others = list(self), list(other) if isinstance(other, Tile) else [other]
        if len(mine) != len(others):
            mine, others = (mine * len(others), others) if len(mine) == 1 else (mine, others * len(mine))
        return Tile(function(a, b) for a, b in zip(mine, others))

    def __add__(self, other):
        return self.both(other, lambda a, b: (a[0], a[1] + b) if isinstance(a, tuple) else (b[0], b[1] + a) if isinstance(b, tuple) else a + b)

    __radd__ = __add__

    def __mul__(self, other):
        return self.both(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __lt__(self, other):
        return self.both(other, lambda a, b: a < b)

    def __ge__(self, other):
        return self.both(other, lambda a, b: a >= b)

    def __eq__(self, other):
        return self.both(other, lambda a, b: a == b)

    def __ne__(self, other):
        return self.both(other, lambda a, b: a != b)

    def __and__(self, other):
        return self.both(other, lambda a, b: a and b)

    def __bool__(self):
        assert len(self) == 1
        return bool(self[0])

    __hash__ = None


class Memory:
    """What the program allocates; its copies on the other ranks are those of the same number."""

    def __init__(self, run, rank, count):
        self.run, self.rank, self.number = run, rank, len(run.memory[rank])
        run.memory[rank].append(Array(rank, str(self.number), count))

    def on(self, rank):
        return Tile([(self.run.memory[rank][self.number], 0)])

    def tile(self):
        return self.on(self.rank)


class Run:
    """One execution of all calls on all ranks."""

    def __init__(self, text, ranks, calls, rng):
        self.ranks, self.calls, self.rng = ranks, calls, rng
        self.memory = [[] for _ in range(ranks)]
        self.found = set()
        self.version = 0
        self.local = threading.local()
        self.threads, self.over = [], False
        self.launches = [[] for _ in range(ranks)]  # of each rank: function, arguments, grid
        for rank in range(ranks):
            exec(compile(text, "program", "exec"), self.modules(rank))  # pylint: disable=exec-used

    # -- the language --

    def modules(self, rank):
        run = self

        class Kernel:
            def __init__(self, function):
                self.function = function

            def __getitem__(self, grid):
                return lambda *args: run.launches[rank].append((self.function, [a.tile() if isinstance(a, Memory) else Tile([a]) for a in args],
                                                                grid[0]))

        tl = types.SimpleNamespace(
            program_id=lambda axis: Tile([run.local.program]), arange=lambda a, b: Tile(range(a, b)), load=self.load, store=self.store,
            atomic_add=self.add, atomic_xchg=self.exchange, atomic_cas=self.swap, debug_barrier=lambda: None)
        return {"triton": types.SimpleNamespace(jit=Kernel), "tl": tl, "RANK": rank, "WORLD": self.ranks,
                "Memory": lambda kind, name, count, dtype, **_: Memory(run, rank, count), "calls": lambda: iter(range(run.calls)),
                "peer": lambda pointer, to: Tile((run.memory[to][int(array.name)], at) for array, at in pointer)}

    def turn(self, polls=None):
        """Lets somebody else go on, before an access. polls: the access only looks (at this version of everything)."""
        me = self.local.thread
        me.polled = polls
        self.scheduler.release()
        me.go.acquire()
        if self.over:
            raise Stop()

    def each(self, pointers, mask):
        for number, (array, at) in enumerate(pointers):
            if mask is None or mask[number if len(mask) > 1 else 0]:
                yield number, array, at

    def load(self, pointers, mask=None):
        out = Tile([0] * len(pointers))
        self.turn()
        for number, array, at in self.each(pointers, mask):
            self.access(array, at, False)
            out[number] = array.values[at]
        return out

    def store(self, pointers, value, mask=None):
        self.turn()
        self.version += 1
        for number, array, at in self.each(pointers, mask):
            self.access(array, at, True)
            array.values[at] = value[number if len(value) > 1 else 0] if isinstance(value, Tile) else value

    def access(self, array, at, writes):
        me = self.local.thread
        last = array.written[at]
        ordered = last is None or me.knows(*last)
        if writes:
            ordered = ordered and all(me.knows(*read) for read in array.read[at].items())
            array.written[at], array.read[at] = (me.number, me.clock[me.number]), {}
        else:
            array.read[at][me.number] = me.clock[me.number]
        if not ordered:
            self.found.add("race")

    def signal(self, pointer, order, change, stores):
        """An atomic: change gives the new value or None. Its answer."""
        (array, at), me = pointer[0], self.local.thread
        old = array.values[at]
        new = change(old)
        held = array.clocks[at]
        if order in ("acquire", "acq_rel"):
            me.learn(held)
        else:
            me.later = joined(me.later, held)
        if new is not None:
            gives = me.clock if order in ("release", "acq_rel") else me.first
            array.values[at], array.clocks[at] = new, dict(gives) if stores else joined(held, gives)
            self.version += new != old or stores
            me.clock[me.number] += 1
        return Tile([old])

    def add(self, pointer, value, sem="acq_rel", scope=None):
        value = value[0] if isinstance(value, Tile) else value
        self.turn(polls=value == 0)
        return self.signal(pointer, sem, lambda old: old + value if value else None, False)

    def exchange(self, pointer, value, sem="acq_rel", scope=None):
        value = value[0] if isinstance(value, Tile) else value
        self.turn()
        return self.signal(pointer, {"acq_rel": "release"}.get(sem, sem), lambda old: value, True)

    def swap(self, pointer, compare, value, sem="acq_rel", scope=None):
        array, at = pointer[0]
        self.turn(polls=True)
        if array.values[at] != compare:
            return Tile([array.values[at]])
        return self.signal(pointer, sem, lambda old: value, False)

    # -- scheduling --

    def go(self):
        """Runs until all is done, or nobody can go on. What was found."""
        self.scheduler = threading.Semaphore(0)
        waiting = [list(launches) for launches in self.launches]  # launches that each rank has to begin yet
        clocks, running = [{} for _ in range(self.ranks)], [[] for _ in range(self.ranks)]
        stuck = 0
        while True:
            for rank in range(self.ranks):
                if all(thread.done for thread in running[rank]):
                    for thread in running[rank]:
                        clocks[rank] = joined(joined(clocks[rank], thread.clock), thread.later)
                    running[rank] = []
                    if waiting[rank]:
                        function, arguments, grid = waiting[rank].pop(0)
                        running[rank] = [Thread(self, rank * 64 + program, program, clocks[rank], function, arguments) for program in range(grid)]
            alive = [thread for threads in running for thread in threads if not thread.done]
            if not alive:
                return self.found
            thread = self.rng.choice(alive)
            before = self.version
            thread.go.release()
            self.scheduler.acquire()
            stuck = stuck + 1 if self.version == before and all(one.polled for one in alive if not one.done) else 0
            if stuck > 40 * len(alive):
                self.found.add("deadlock")
                self.over = True
                for one in alive:
                    if not one.done:
                        one.go.release()
                        self.scheduler.acquire()
                return self.found


def joined(a, b):
    out = dict(a)
    for number, time in b.items():
        out[number] = max(out.get(number, 0), time)
    return out


class Thread:
    """One program of a launch."""

    def __init__(self, run, number, program, clock, function, arguments):
        self.run, self.number, self.program, self.done, self.polled = run, number, program, False, None
        self.clock = dict(clock)
        self.clock[number] = self.clock.get(number, 0) + 1
        self.first, self.later = dict(clock), {}  # what the launch begins with; what relaxed looks have seen
        self.go = threading.Semaphore(0)
        threading.Thread(target=self.body, args=(function, arguments), daemon=True).start()

    def body(self, function, arguments):
        self.go.acquire()
        local = self.run.local
        local.thread, local.program = self, self.program
        try:
            if not self.run.over:
                function(*arguments)
        except Stop:
            pass
        except Exception as error:  # pylint: disable=broad-except
            self.run.found.add(f"error: {error!r}")
        self.done = True
        self.run.version += 1
        self.run.scheduler.release()

    def knows(self, number, time):
        return number == self.number or self.clock.get(number, 0) >= time

    def learn(self, clock):
        own = self.clock[self.number]
        self.clock = joined(self.clock, clock)
        self.clock[self.number] = own
