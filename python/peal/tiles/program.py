# SPDX-License-Identifier: Apache-2.0
"""Runs a program once per rank, and records the kernels that it launches.

The program is the author's: it allocates tensors, calls its kernels, and imports what it always imports. Stand-ins take the place of
`triton`, `torch`, `jax` and what belongs to them. Each rank is a thread, of which one runs at a time: the turn passes only where ranks meet on the
host (collectives, rendezvous, barriers). Modules of the program are each rank's own, as they are in processes.
"""
from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import queue
import sys
import threading
import types
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from ..record import OutOfTime
from . import contracts, core, ordered, statements
from .calls import MAX_PERIOD
from .core import Rank, Recording, Refused, Region, refuse
from .statements import Repeated

SMALL = 100_000   # lines of a rank, up to which more calls are recorded to see how they are alike

# What is imported by the name on the left comes from the module of this package on the right: its `modules()` gives modules by name.
STANDINS = {"triton": "triton", "torch": "torch", "iris": "iris", "jax": "jax", "triton_dist": "dist", "nvshmem": "dist", "cuda": "dist"}

MODELS: Dict[str, Dict[str, Any]] = {
    "triton-nvidia": {"threads": 32, "note": "memory orders and scopes are those of PTX"},
    "triton-amd": {"threads": 64, "note": "memory orders and scopes are those of LLVM for AMD GPUs"},
    "pallas-tpu": {"threads": 1, "note": "remote copies and semaphores are those of Pallas for TPUs"}}


class Options:
    """What the command line says: lines of KEY=VALUE."""

    def __init__(self, settings: str = "") -> None:
        self.calls = 3
        self.between = "none"
        self.model = "auto"
        self.in_order_copies = False
        self.inputs: Dict[str, str] = {}
        self.implements: Optional[str] = None
        self.arguments: List[str] = []
        self.tries: Dict[Tuple[str, core.Place], str] = {}
        self.edit = False                # the file is wanted with what is tried
        self.edits: List[Any] = []       # what the recorder says about that
        for line in settings.splitlines():
            name, _, value = line.partition("=")
            if name == "input":
                memory, _, file = value.partition("=")
                self.inputs[memory] = file
            elif name == "try":
                kind, number, what, file = value.split(" ", 3)
                self.tries[(kind, (file, int(number)))] = what
            elif name == "argument":
                self.arguments.append(value)
            elif name in ("calls", "in_order_copies", "edit"):
                setattr(self, name, int(value))
            elif name in ("between", "model", "implements"):
                setattr(self, name, value)
            else:
                raise Refused(f"'{line}' is no setting of a program")


def running_frame() -> Any:
    """What the rank whose turn it is does now."""
    thread = _world.threads[_world.turn] if _world is not None and _world.threads else None
    frames = sys._current_frames()  # pylint: disable=protected-access
    return frames.get(thread.ident) if thread is not None and thread.ident is not None else None


class World:
    """All ranks of one run, and whose turn it is."""

    def __init__(self, path: str, ranks: int, options: Options, repeated: Optional[Repeated] = None, exact: bool = False) -> None:
        self.path, self.options, self.repeated, self.exact = path, options, repeated or Repeated(), exact  # exact: no more calls than asked for
        self.recording = Recording(ranks, os.path.splitext(os.path.basename(path))[0])
        for name, file in options.inputs.items():
            try:
                with open(file, "rb") as opened:
                    self.recording.inputs[name] = opened.read()
            except OSError as error:
                raise Refused(f"--input {name}: {error.strerror}: '{file}'") from None
        self.turns = [threading.Semaphore(0) for _ in range(ranks)]
        self.done: Set[int] = set()
        self.tested: Set[int] = set()       # ranks that have found nothing new since anything happened
        self.gives_up: Set[int] = set()     # ranks that wait for something that need not come
        self.failure: Optional[BaseException] = None
        self.finished: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.boxes: Dict[Any, Dict[int, Any]] = {}
        self.meetings: Dict[Any, int] = {}
        self.modules: List[Dict[str, Any]] = [{} for _ in range(ranks)]
        self.paths: List[List[str]] = [list(sys.path) for _ in range(ranks)]
        self.environment = dict(os.environ)
        self.calls_used = False
        self.more_calls = 0                 # than asked for: to see whether they are alike with a longer period
        self.recording.tries, self.recording.edits = options.tries, options.edits
        self.recording.instrument = ordered.asked if ordered.SETTING in options.tries else None
        self.recording.let_others_run = lambda ready: self.wait_until(ready, None)
        self.threads: List[threading.Thread] = []
        self.turn = 0

    def model(self) -> str:
        if self.options.model != "auto":
            return self.options.model
        return "pallas-tpu" if "jax" in _loaded else "triton-nvidia"

    # -- turns --

    def start(self) -> None:
        """Runs all ranks to their end; raises what one of them, or a thread that it started, raised."""
        threading.stack_size(16 << 20)
        threading.excepthook = self._failed
        self.threads = [threading.Thread(target=self._run, args=(index,), daemon=True) for index in range(self.recording.ranks)]
        for thread in self.threads:
            thread.start()
        self._enter(0)
        self.turns[0].release()
        self._await_end()
        if self.failure is not None:
            raise self.failure

    def _await_end(self) -> None:
        """A signal of a limit may come to the thread of a rank, but only this one can act on it: it looks now and then."""
        while True:
            try:
                self.finished.get(timeout=0.2)
                return
            except queue.Empty:
                continue

    def _failed(self, what: Any) -> None:
        """A thread of the program has failed, and what it would have done is missing."""
        if not issubclass(what.exc_type, SystemExit):
            self.failure = self.failure or (what.exc_value or what.exc_type()).with_traceback(what.exc_traceback)

    def _run(self, index: int) -> None:
        self.turns[index].acquire()
        if self.failure is None:
            core.set_rank(self.recording.rank[index])
            try:
                _run_file(self.path, self.options.arguments, self.repeated)
            except SystemExit as end:
                if end.code not in (None, 0):
                    self.failure = RuntimeError(f"the program ended with {end.code!r}").with_traceback(end.__traceback__)
            except BaseException as error:  # pylint: disable=broad-except
                self.failure = error
        self.done.add(index)
        self.tested.clear()
        if self.failure is not None or len(self.done) == self.recording.ranks:
            self.finished.put(None)
        else:
            self._pass_on(index)

    def _pass_on(self, index: int) -> None:
        """The next rank that is not at its end goes on."""
        following = (index + 1) % self.recording.ranks
        while following in self.done:
            following = (following + 1) % self.recording.ranks
        if following == index:
            return
        self._leave(index)
        self._enter(following)
        self.turns[following].release()

    def wait_until(self, ready: Callable[[], bool], what: Optional[str]) -> None:
        """Lets other ranks run until it is so. If it never is: refused, or with `what` None, given up."""
        index = core.rank().index
        self.tested.clear()
        if what is None:
            self.gives_up.add(index)
        while not ready():
            self.tested.add(index)
            stalled = len(self.tested | self.done) == self.recording.ranks
            if stalled and (what is None or not self.gives_up):  # those who can give up do so first
                if what is None:
                    self.gives_up.discard(index)
                    return
                ended = sorted(self.done)
                raise refuse(f"rank {index} waits for {what}, which never comes" + (f": rank {ended[0]} has ended" if ended else ""))
            self._pass_on(index)
            self.turns[index].acquire()
            if self.failure is not None:
                raise SystemExit(0)
        self.gives_up.discard(index)

    def exchange(self, value: Any, group: Optional[Sequence[int]] = None, what: str = "the other ranks") -> List[Any]:
        """What each rank of the group gives, for all of them; in the order of the group."""
        members = tuple(range(self.recording.ranks)) if group is None else tuple(group)
        index = core.rank().index
        turn = self.meetings.get((index, members), 0)
        self.meetings[(index, members)] = turn + 1
        box = self.boxes.setdefault((members, turn), {})
        box[index] = value
        self.wait_until(lambda: len(box) == len(members), what)
        return [box[member] for member in members]

    def wants_more_calls(self, number: int) -> bool:
        """Would more calls show with which period they are alike? All ranks ask."""
        if self.exact or self.recording.dry or not 1 < number < 2 * MAX_PERIOD:
            return False
        mine = core.rank()
        is_small = mine.line_count() < SMALL
        return any(self.exchange(is_small and not self.recording.alike(mine), what="the end of the calls on the other ranks"))

    # -- each rank's own view of modules --

    def _leave(self, index: int) -> None:
        own = [name for name in sys.modules if not _is_shared(name)]
        self.modules[index] = {name: sys.modules.pop(name) for name in own}
        self.paths[index] = list(sys.path)

    def _enter(self, index: int) -> None:
        self.turn = index
        sys.modules.update(self.modules[index])
        sys.path[:] = self.paths[index]
        size = self.recording.ranks
        os.environ.setdefault("TORCHELASTIC_RUN_ID", "none")  # there is a launcher
        os.environ.update(RANK=str(index), LOCAL_RANK=str(index), WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size),
                          MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")


_STDLIB = getattr(sys, "stdlib_module_names", None)
_shared: Dict[str, bool] = {}


def _is_shared(name: str) -> bool:
    """Is it a module that all ranks may share: the standard library, numpy, a stand-in?"""
    found = _shared.get(name)
    if found is None:
        top = name.partition(".")[0]
        if name == "__main__":
            found = False
        elif top in ("numpy", "peal") or name in _loaded:
            found = True
        elif _STDLIB is not None:
            found = top in _STDLIB
        else:
            file = getattr(sys.modules.get(name), "__file__", None) or ""
            found = not file or file.startswith(os.path.dirname(os.__file__))
        _shared[name] = found
    return found


def _run_file(path: str, arguments: Sequence[str], repeated: Repeated) -> None:
    """The file as a program."""
    module = types.ModuleType("__main__")
    module.__file__ = os.path.abspath(path)
    module.__dict__.update(zip(statements.NAMES, (_loop, _statement, calls)))
    sys.modules["__main__"] = module
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    are_marked = repeated.end > 0 or world().recording.dry
    exec(statements.marked(os.path.abspath(path), repeated, are_marked), module.__dict__)  # pylint: disable=exec-used


def _statement(function: int, number: int) -> Iterator[None]:
    """A statement of the program while it is executed. In the first run, one that launches and makes symmetric memory is executed again:
    does it set up each time, or only the first?"""
    mine = core.rank()
    if mine.lane is not None:
        yield  # of a kernel
        return
    entry, depth = (function, number), len(mine.statements)
    mine.statements.append(entry)
    try:
        yield
        path = tuple(mine.statements)
        if world().recording.dry and any(made[:depth + 1] == path for made in mine.symmetric_by) and any(
                launch[0][:depth + 1] == path for launch in mine.launches):
            mine.symmetric_by = [made for made in mine.symmetric_by if made[:depth + 1] != path]
            launches, mine.launches = mine.launches, []
            yield
            mine.launches = launches
    finally:
        if len(mine.statements) > depth and mine.statements[depth] is entry:
            del mine.statements[depth:]


def _repeated(here: World) -> Repeated:
    ranks = here.recording.rank
    if here.calls_used:
        return Repeated()
    return statements.choose(here.path, [each.launches for each in ranks], [made for each in ranks for made in each.symmetric_by])


# ---- stand-ins ----

_loaded: Dict[str, types.ModuleType] = {}


def _provider(name: str) -> Optional[str]:
    """The longest name of STANDINS that the module is, or is a part of."""
    while name:
        if name in STANDINS:
            return name
        name = name.rpartition(".")[0]
    return None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins before anything that is installed."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        provider = _provider(fullname)
        if provider is None:
            return None
        if provider not in _loaded or fullname not in _loaded:
            _loaded.update(importlib.import_module(f".{STANDINS[provider]}", __package__).modules())
        if fullname not in _loaded:
            parent = fullname.rpartition(".")[0]
            while parent and parent not in _loaded:
                parent = parent.rpartition(".")[0]
            if parent and getattr(_loaded[parent], "__path__", None):
                return None  # the stand-in has folders of the author's: they are searched
            raise ModuleNotFoundError(f"'{fullname}' is not known to Peal", name=fullname)
        found = _loaded[fullname]
        spec = importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        spec.submodule_search_locations = list(getattr(found, "__path__", []))
        return spec

    def create_module(self, spec: Any) -> Any:
        return _loaded[spec.name]

    def exec_module(self, module: Any) -> None:
        if not hasattr(module, "__path__"):
            module.__path__ = []


def standin(name: str, doc: str = "", **members: Any) -> types.ModuleType:
    """A module that stands in for another one: what it does not have is refused by name, with the author's line."""
    module = types.ModuleType(name, doc)
    module.__dict__.update(members)

    def missing(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        known = _loaded.get(f"{name}.{attribute}")
        if known is not None:
            return known
        raise Missing(str(refuse(f"{name}.{attribute} is not known to Peal")))
    module.__dict__["__getattr__"] = missing
    return module


class Missing(Refused, AttributeError):
    """A stand-in does not have it. hasattr() and getattr() with a default see an ordinary attribute that is not there."""


# ---- what stand-ins and programs use ----

_world: Optional[World] = None


def world() -> World:
    if _world is None:
        raise Refused("this is for programs that 'peal record' or 'peal verify' runs")
    return _world


def rank() -> Rank:
    return core.rank()


def world_size() -> int:
    return world().recording.ranks


def options() -> Options:
    return world().options


def model() -> Dict[str, Any]:
    return MODELS[world().model()]


def exchange(value: Any, group: Optional[Sequence[int]] = None) -> List[Any]:
    """All ranks meet on the host; each gets what all gave. Nothing is recorded."""
    return world().exchange(value, group)


def barrier(group: Optional[Sequence[int]] = None, blocks: bool = True) -> None:
    """All ranks meet, and so do their devices: what was launched before on the stream comes before what is launched after, on all of them.
    If that blocks the host, before what is launched after on any stream."""
    fresh = world().exchange(rank().is_fresh(), group, "the other ranks at a barrier")
    if not all(fresh):
        world().recording.host_barrier(rank(), group, blocks)


def _loop(iterable: Iterable[Any], line: int) -> Iterable[Any]:
    """A `for` of the program's. One that launches kernels again and again makes the calls, if the program does not say what its calls are."""
    mine = core.rank()
    if mine.lane is not None:
        return iterable  # of a kernel
    times = mine.state.setdefault("loops", {})
    times[line] = times.get(line, 0) + 1
    return _iterations(iterable, (line, times[line]), world().repeated.loop == (line, times[line]))


def _iterations(iterable: Iterable[Any], loop: Tuple[int, int], are_calls: bool) -> Iterator[Any]:
    here, mine = world(), core.rank()
    here.calls_used |= are_calls
    try:
        for number, value in enumerate(_more(iterable) if are_calls else iterable):
            if are_calls:
                mine.begin_call()
            mine.loops.append((*loop, number))
            yield value
            mine.loops.pop()
            if are_calls and here.options.between == "barrier":
                barrier()
    finally:
        del mine.loops[next((at for at, one in enumerate(mine.loops) if one[:2] == loop), len(mine.loops)):]
        if are_calls:
            mine.end_calls()


def _more(iterable: Iterable[Any]) -> Iterator[Any]:
    """The calls of the program. Numbers go on as they do where these do not show with which period calls are alike: a period has to be seen
    twice, and 2 is the usual one."""
    yield from iterable
    if not isinstance(iterable, range):
        return
    here, number = world(), len(iterable)
    here.recording.asked = number
    for count in (4, 2 * MAX_PERIOD):
        if number < count and here.wants_more_calls(number):
            here.more_calls = count
            yield from (iterable.start + iterable.step * at for at in range(number, count))
            number = count


def calls() -> Iterator[int]:
    """`for _ in peal.calls():` marks what the program repeats; memory from before it is kept."""
    world().calls_used = True
    return _iterations(range(world().options.calls), (0, 0), True)


# ---- contracts ----

class Part:
    """A tensor of one rank, in what is expected; sums and lists of these are contracts."""

    def __init__(self, region: Region, rank_: int, how: str = "part") -> None:
        self.region, self.rank, self.how = region, rank_, how

    def __add__(self, other: Any) -> Any:
        return _Sum([self]) + other

    __radd__ = __add__


class _Sum:
    def __init__(self, parts: List[Part]) -> None:
        self.parts = parts

    def __add__(self, other: Any) -> Any:
        if isinstance(other, (int, float)) and other == 0:
            return self
        if isinstance(other, (_Sum, Part)):
            return _Sum(self.parts + (other.parts if isinstance(other, _Sum) else [other]))
        raise refuse("a contract is a sum, or a list, of what peal.of_ranks gives")

    __radd__ = __add__


def of_ranks(x: Any) -> List[Part]:
    """The tensor x of every rank, to say what is expected: peal.expect(y, sum(peal.of_ranks(x)))."""
    region = region_of(x)
    return [Part(region, index) for index in range(world_size())]


def region_of(x: Any) -> Region:
    """The memory of a tensor."""
    found = x if isinstance(x, Region) else rank().find(int(x.data_ptr()))
    if found is None:
        raise refuse("this is no tensor of the program")
    return found


def expect(y: Any, value: Any) -> None:
    """What y holds at the end of each call: sum(parts) on every rank is an allreduce, the list of parts an allgather."""
    parts = value.parts if isinstance(value, _Sum) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, Part) for part in parts) or (
            [part.rank for part in parts] != list(range(world_size()))):
        raise refuse("a contract is the sum, or the list, of what peal.of_ranks gives")
    implements("allreduce" if isinstance(value, _Sum) else "allgather", parts[0].region, y)


def implements(contract: str, x: Any, y: Any, op: str = "sum", root: Optional[int] = None) -> None:
    """y is what a collective makes of x."""
    source, target = region_of(x), region_of(y)
    for region, kind in (source, "inout"), (target, "inout" if target is source else "out"):
        if region.kind != "inout":
            region.kind = kind
        region.shared, region.kept, region.zeroed = True, True, False
    world().recording.contract(contract, source.name, target.name, op, root)


# ---- the whole ----

def record(path: str, ranks: int, given: Options) -> str:
    """The recording of a program, for one number of ranks. What its calls are is found out by a first run, in which kernels do nothing."""
    repeated = Repeated()
    if given.calls > 1 and not _imports_jax(path):
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # what the program prints is printed once for each rank, by the second run
                repeated = _run(World(path, ranks, given), True, _repeated)
        except OutOfTime:
            raise
        except Exception:  # pylint: disable=broad-except
            pass  # the second run says it better
    here = World(path, ranks, given, repeated)
    try:
        text: str = _run(here, False, _finish)
        if here.recording.is_folded or not here.more_calls:
            return text
    except Exception:
        if not here.more_calls:
            raise
    return _run(World(path, ranks, given, repeated, exact=True), False, _finish)  # more calls than the program makes tell nothing, or fail


def _imports_jax(path: str) -> bool:
    """In JAX a program launches nothing by itself: all of it is one call."""
    with open(path, encoding="utf-8") as file:
        return any(line.split()[:1] in (["import"], ["from"]) and line.split()[1].startswith("jax") for line in file if len(line.split()) > 1)


def _run(here: World, dry: bool, then: Callable[[World], Any]) -> Any:
    global _world  # pylint: disable=global-statement
    finder, modules, paths, environment = _Finder(), dict(sys.modules), list(sys.path), dict(os.environ)
    sys.meta_path.insert(0, finder)
    for public in (calls, expect, implements, of_ranks):
        setattr(sys.modules["peal"], public.__name__, public)
    _shared.clear()
    _world, here.recording.dry = here, dry
    hook = threading.excepthook
    try:
        here.start()
        return then(here)
    finally:
        sys.meta_path.remove(finder)
        threading.excepthook = hook
        for name in [name for name in sys.modules if name not in modules and not _is_shared(name)]:
            del sys.modules[name]
        sys.path[:] = paths
        os.environ.clear()
        os.environ.update(environment)
        _world = None


def _check_inputs(here: World) -> None:
    names = {region.name for region in here.recording.rank[0].regions if region.kind != "private"}
    for name in here.options.inputs:
        if name not in names:
            raise Refused(f"--input {name}: the program has no such memory; it has {', '.join(sorted(names))}")


def _promise(recording: Recording, wanted: str) -> None:
    """--implements allreduce, or allreduce:x,y with the names of its tensors."""
    name, source, target = contracts.choose(recording, wanted)
    for rank_ in recording.rank:
        found = {region.name: region for region in rank_.regions}
        if source not in found or target not in found:
            raise Refused(f"--implements {wanted}: rank {rank_.index} has no '{target if source in found else source}'")
        core.set_rank(rank_)
        implements(name, found[source], found[target])
    recording.note(f"'{source}' is changed in place" if source == target else f"'{source}' is the input, '{target}' the output")


def _finish(here: World) -> str:
    recording, given = here.recording, here.options
    if not any(each.line_count() for each in recording.rank):
        raise Refused(f"{here.path}: it launches no kernel, and there is no function 'kernel'")
    _check_inputs(here)
    if given.implements and recording.promise is None:
        _promise(recording, given.implements)
    if not here.calls_used and given.between == "barrier" and given.calls != 1:
        for each in recording.rank:
            core.set_rank(each)
            recording.host_barrier(each)
    core.set_rank(None)
    recording.note(f"model {here.model()}: {MODELS[here.model()]['note']}")
    recording.note("between calls: " + ("a barrier of the host" if given.between == "barrier" else "nothing but what the program does"))
    return recording.text()
