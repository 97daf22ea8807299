# SPDX-License-Identifier: Apache-2.0
"""Tile programs executed as they are, one memory access at a time, in a random order; races are found by vector clocks.

Nothing of Peal is used: a tile is a list of numbers, a pointer an (array, element) pair, a program of the grid a thread that waits for its
turn before each access. Inline assembly is executed by the first thread of its program, or by thread k for element k, beside what the program
does with tiles: they meet at barriers and at the ends of the launch. A launch begins after the one before on its stream, and after what its
stream or the host waits for. What the text imports is what `modules` gives.
"""
import contextlib
import itertools
import re
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
        self.threads, self.over, self.numbers = [], False, itertools.count()
        self.launches = [[] for _ in range(ranks)]  # of each rank, in the order in which its host makes them
        for rank in range(ranks):
            exec(compile(text, "program", "exec"), self.modules(rank))  # pylint: disable=exec-used

    # -- the language --

    def modules(self, rank):
        run, host = self, Host()

        class Kernel:
            def __init__(self, function):
                self.function = function

            def __getitem__(self, grid):
                return lambda *args: run.launches[rank].append(Launch(
                    host, self.function, [a.tile() if isinstance(a, Memory) else Tile([a]) for a in args], grid[0]))

        tl = types.SimpleNamespace(
            program_id=lambda axis: Tile([run.local.program]), arange=lambda a, b: Tile(range(a, b)), load=self.load, store=self.store,
            atomic_add=self.add, atomic_xchg=self.exchange, atomic_cas=self.swap, debug_barrier=self.barrier, int32="int32",
            inline_asm_elementwise=self.assembly)
        return {"torch": types.SimpleNamespace(cuda=host.cuda()), "triton": types.SimpleNamespace(jit=Kernel), "tl": tl, "RANK": rank, "WORLD": self.ranks,
                "Memory": lambda kind, name, count, dtype, **_: Memory(run, rank, count), "calls": lambda: iter(range(run.calls)),
                "peer": lambda pointer, to: Tile((run.memory[to][int(array.name)], at) for array, at in pointer)}

    def assembly(self, text, constraints, args, dtype=None, is_pure=False, pack=1):
        """Each element's thread executes it, when it has done what it had to do before."""
        program, code, outputs = self.local.thread, parsed(text), constraints.count("=")
        elements = max(len(arg) if isinstance(arg, Tile) else 1 for arg in args)
        for element in range(elements):
            values = {f"${outputs + n}": arg[element % len(arg)] if isinstance(arg, Tile) else arg for n, arg in enumerate(args)}
            actor = program.apart.setdefault(element, Actor(program.actor.number + 1 + element, program.met, program.began))
            before = [program.last[element]] if element in program.last else []
            program.last[element] = Thread(self, actor, program.program, self.execute, (code, values), before)
            self.threads.append(program.last[element])

    def execute(self, code, values):
        labels = {one: at for at, one in enumerate(code) if isinstance(one, str)}
        at, value = 0, lambda word: values[word] if word in values else int(word)
        while at < len(code):
            one, at = code[at], at + 1
            if isinstance(one, str):
                continue
            guard, parts, operands = one
            order = next((part for part in parts if part in ("acquire", "release", "acq_rel")), "relaxed")
            pointer = next(([values[word[1:-1]]] for word in operands if word[0] == "["), None)
            if parts[0] == "bra":
                if guard is None or values[guard.lstrip("!")] != guard.startswith("!"):
                    at = labels[operands[0]]
            elif parts[0] == "setp":
                a, b = value(operands[1]), value(operands[2])
                values[operands[0]] = {"eq": a == b, "ne": a != b, "lt": a < b, "ge": a >= b}[parts[1]]
            elif parts[0] == "fence":
                me = self.local.thread.actor
                me.learn(me.later)
                me.first = dict(me.clock)
            elif parts[0] == "ld":
                self.turn(polls=True)
                values[operands[0]] = self.signal(pointer, order, lambda old: None, False)[0]
            elif parts[0] == "st" or "exch" in parts:
                self.exchange(pointer, value(operands[-1]), order)
            elif "cas" in parts:
                values[operands[0]] = self.swap(pointer, value(operands[2]), value(operands[3]), order)[0]
            else:
                assert parts[0] in ("red", "atom") and "add" in parts
                values["" if parts[0] == "red" else operands[0]] = self.add(pointer, value(operands[-1]), order)[0]

    def barrier(self):
        self.local.thread.meet()

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
        me = self.local.thread.actor
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
        (array, at), me = pointer[0], self.local.thread.actor
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
        waiting = [launch for launches in self.launches for launch in launches]
        stuck = 0
        while True:
            for launch in [one for one in waiting if all(other.is_done() for other in one.after)]:
                waiting.remove(launch)
                launch.begin(self)
            alive = [thread for thread in self.threads if not thread.done]
            if not alive:
                return self.found
            ready = [thread for thread in alive if all(other.done for other in thread.awaits)]
            thread = self.rng.choice(ready)
            before = self.version
            thread.go.release()
            self.scheduler.acquire()
            stuck = stuck + 1 if self.version == before and all(one.polled for one in ready if not one.done) else 0
            if stuck > 40 * len(ready):
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


def parsed(text):
    """Labels, and instructions: a guard, the parts of a name, operands."""
    code = []
    for statement in re.split(r"[;{}\n]", text):
        label, colon, rest = statement.rpartition(":")
        if colon:
            code.append(label.strip())
        found = re.fullmatch(r"(?:@(\S+)\s+)?(\w[\w.]*)\s*(.*)", rest.strip())
        if found:
            code.append((found.group(1), found.group(2).split("."), [word.strip() for word in found.group(3).split(",") if word.strip()]))
    return code


class Host:
    """What a rank gives its streams."""

    def __init__(self):
        self.tails, self.known, self.number = [[]], [], 0  # of each stream: what its next launch comes after. What the host knows to be done

    def cuda(self):
        host = self

        class Event:
            def record(self, stream=None):
                self.tail = list(host.tails[stream.number if stream else host.number])

            def wait(self, stream=None):
                host.tails[stream.number if stream else host.number] += self.tail

            def synchronize(self):
                host.known += self.tail

        class Stream:
            def __init__(self, number=None):
                self.number = len(host.tails) if number is None else number
                if number is None:
                    host.tails.append([])

            def wait_stream(self, other):
                host.tails[self.number] += host.tails[other.number]

            def wait_event(self, event):
                event.wait(self)

            def synchronize(self):
                host.known += host.tails[self.number]

        @contextlib.contextmanager
        def inside(stream):
            before, host.number = host.number, stream.number
            yield
            host.number = before

        return types.SimpleNamespace(Stream=Stream, Event=Event, stream=inside, current_stream=lambda: Stream(host.number),
                                     synchronize=lambda: [Stream(n).synchronize() for n in range(len(host.tails))])


class Launch:
    """A kernel with its grid, given to the current stream of a host."""

    def __init__(self, host, function, arguments, grid):
        self.function, self.arguments, self.grid, self.threads = function, arguments, grid, None
        self.after = [*host.tails[host.number], *host.known]
        host.tails[host.number] = [self]

    def begin(self, run):
        clock = {}
        for other in self.after:
            for thread in other.threads:
                for actor in (thread.actor, *thread.apart.values()):
                    clock = joined(joined(clock, actor.clock), actor.later)
        self.threads = [Thread(run, Actor(next(run.numbers) * 16, clock, clock), pid, self.function, self.arguments) for pid in range(self.grid)]
        run.threads += self.threads

    def is_done(self):
        return self.threads is not None and all(thread.done for thread in self.threads)


class Actor:
    """Who does something, in an order: all threads of a program that work on tiles, or one thread."""

    def __init__(self, number, clock, first):
        self.number, self.clock = number, dict(clock)
        self.clock[number] = self.clock.get(number, 0) + 1
        self.first, self.later = dict(first), {}  # what the last fence knew, and what relaxed looks have seen since the launch began

    def knows(self, number, time):
        return number == self.number or self.clock.get(number, 0) >= time

    def learn(self, clock):
        own = self.clock[self.number]
        self.clock = joined(self.clock, clock)
        self.clock[self.number] = own


class Thread:
    """Executes one program of a launch, or a piece of assembly of one of its threads."""

    def __init__(self, run, actor, program, function, arguments, awaits=()):
        self.run, self.actor, self.program, self.done, self.polled, self.awaits = run, actor, program, False, None, list(awaits)
        self.began = self.met = dict(actor.first)  # what was known there
        self.apart, self.last = {}, {}  # of a program: its threads that did something alone, and the last piece of each
        self.go = threading.Semaphore(0)
        threading.Thread(target=self.body, args=(function, arguments), daemon=True).start()

    def body(self, function, arguments):
        self.go.acquire()
        local = self.run.local
        local.thread, local.program = self, self.program
        try:
            if not self.run.over:
                function(*arguments)
                self.meet()
        except Stop:
            pass
        except Exception as error:  # pylint: disable=broad-except
            self.run.found.add(f"error: {error!r}")
        self.done = True
        self.run.version += 1
        self.run.scheduler.release()

    def meet(self):
        """All threads of the program."""
        if self.last:
            self.awaits = list(self.last.values())
            self.run.turn()
        everybody = [self.actor, *self.apart.values()]
        for one in everybody:
            self.actor.learn(one.clock)
        self.met = dict(self.actor.clock)
        for one in everybody:
            one.learn(self.met)
            one.clock[one.number] += 1
