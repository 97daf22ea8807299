# SPDX-License-Identifier: Apache-2.0
"""Triton-distributed: triton_dist.language, libshmem_device, language_extra, triton_dist.utils, and the modules of NVSHMEM and CUDA's
driver that its host code uses. The kernels (triton_dist.kernels, tutorials, tests) are the authors' text, from the path.

What NVSHMEM's calls mean here:
- A put has no order with other puts of its program: its write is a lane of its own, until fence (which orders later puts after it),
  quiet or a barrier. A blocking put has read its source when it returns, an nbi put has not.
- put with signal writes the data, then changes the signal, which releases. signal_wait_until and dl.wait acquire.
- signal_op and dl.notify release what the program stored before, but no put under way.
"""
from __future__ import annotations

import ast
import contextlib
import os
import sys
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from . import asm, core, data, program, spins, symm, tensor, torch
from . import triton as language
from .tensor import DTYPES, Tensor, empty
from .iris import translate
from .program import standin
from .torch import Nothing, decorator, nothing

RELATIONS = {0: "==", 1: "!=", 2: ">", 5: ">="}  # NVSHMEM_CMP_EQ, NE, GT, GE
SET, ADD = 9, 10                                  # NVSHMEM_SIGNAL_SET, NVSHMEM_SIGNAL_ADD


def number(value: Any) -> int:
    return int(data.tile(value))


# ---- language ----

def symm_at(pointer: Any, rank: Any) -> Any:
    """The same place of the symmetric memory of another rank."""
    return translate(pointer, core.rank().index, rank)


def wait(pointers: Any, count: Any, scope: str = "gpu", semantic: str = "acquire", waitValue: Any = 1) -> Any:  # noqa: N803
    """Until each of `count` signals equals the value."""
    for i in range(number(count)):
        _wait(pointers + i, "==", waitValue, semantic, scope)
    return data.tile(0)


def _wait(pointer: Any, relation: str, value: Any, semantic: Any = "acquire", scope: Any = "sys") -> None:
    spins.wait_for(pointer, relation, value, str(_plain(semantic)), spins.SCOPES[_plain(scope)])


def each(function: Callable[..., None]) -> Callable[..., None]:
    """A function of numbers: where an argument differs from thread to thread, every thread calls it."""
    def call(*args: Any, **named: Any) -> None:
        values = [spins.spread(data.tile(one)) if isinstance(one, data.Tile) else one for one in args]
        count = max((one.shape[0] for one in values if isinstance(one, data.Tile) and one.shape), default=0)
        if not count:
            function(*values, **named)
            return
        program_, rank = core.program(), core.rank()
        acting = program_.acting() or range(count)
        for at, thread in enumerate(acting):
            rank.lane = program_.thread(thread)
            try:
                function(*(data.Tile((), one.dtype, one.known[at].item()) if isinstance(one, data.Tile) and one.shape else one for one in values),
                         **named)
            finally:
                rank.lane = program_
    return call


def consume_token(value: Any, token: Any) -> Any:
    return value


@each
def notify(pointer: Any, rank: Any, signal: Any = 1, sig_op: str = "set", comm_scope: str = "inter_node") -> None:
    scope = "gpu" if comm_scope == "gpu" else "sys"
    spins.atomic(_plain(sig_op), pointer if scope == "gpu" else symm_at(pointer, rank), signal, sem="release", scope=scope)


@contextlib.contextmanager
def simt_exec_region() -> Iterator[Tuple[Any, Any]]:
    """Threads one by one: their number, and how many there are."""
    yield thread_index(), core.program().threads


# ---- memory ----

class Puts:
    """Operations of one program that are under way."""

    def __init__(self) -> None:
        self.lanes: List[core.Lane] = []    # under way
        self.fenced: List[core.Lane] = []   # of those: later ones come after them
        self.idle: List[core.Lane] = []     # completed
        self.launch: Any = None


def _puts(lane: core.Lane) -> Puts:
    owner = lane.program or lane
    puts = owner.__dict__.setdefault("puts", Puts())
    launch = getattr(owner, "opening", None)
    if puts.launch is not launch:  # what was under way is complete when a launch ends
        puts.idle, puts.lanes, puts.fenced, puts.launch = puts.idle + puts.lanes, [], [], launch
    return puts


def _lane(name: str) -> core.Lane:
    """A lane for an operation that begins now."""
    own = core.current()
    puts = _puts(own)
    if puts.idle:
        lane = puts.idle.pop()
        if own.stream is not None:
            own.stream.forked.append(lane)
        lane.after(own)
    else:
        lane = own.fork(name)
    for earlier in puts.fenced:
        lane.after(earlier)
    puts.lanes.append(lane)
    return lane


def fence(*_: Any, **__: Any) -> None:
    core.current().fence("acq_rel", "system")
    puts = _puts(core.current())
    puts.fenced = list(puts.lanes)


def quiet(*_: Any, **__: Any) -> None:
    own = core.current()
    puts = _puts(own)
    for lane in puts.lanes:
        own.after(lane)
    puts.idle += puts.lanes
    puts.lanes, puts.fenced = [], []
    own.fence("acq_rel", "system")


def _bytes(pointer: Any, nbytes: Any) -> core.Span:
    """A range of memory; in elements of the pointer's type if it is a whole number of them."""
    pointer, nbytes = data.tile(pointer), number(nbytes)
    element = pointer.dtype.element_ty
    peal, size = (element.peal, element.itemsize) if nbytes % element.itemsize == 0 else ("u8", 1)
    address = pointer.number()
    core.rank().at(address, max(nbytes, 1))
    return core.Span(peal, address, nbytes // size)


def _move(to: core.Span, of: core.Span) -> Tuple[core.Span, core.Span]:
    """Both in the smaller type: a copy of bytes, not a conversion."""
    if to.dtype == of.dtype:
        return to, of
    peal = "u8" if core.SIZES[to.dtype] != core.SIZES[of.dtype] else of.dtype
    size = core.SIZES[peal]
    return (core.Span(peal, to.address, to.count * core.SIZES[to.dtype] // size), core.Span(peal, of.address, of.count * core.SIZES[of.dtype] // size))


def _put(blocking: bool, dest: Any, source: Any, nbytes: Any, pe: Any) -> Optional[core.Lane]:
    to, of = _move(_bytes(symm_at(dest, pe), nbytes), _bytes(source, nbytes))
    if not of.count:
        return None
    if blocking:
        held = core.Span(of.dtype, core.current().scratch(of.count, of.dtype), of.count)
        core.current().copy(held, of)
        of = held
    lane = _lane("put")
    lane.copy(to, of)
    return lane


def _get(blocking: bool, dest: Any, source: Any, nbytes: Any, pe: Any) -> None:
    to, of = _move(_bytes(dest, nbytes), _bytes(symm_at(source, pe), nbytes))
    if of.count:
        (core.current() if blocking else _lane("get")).copy(to, of)


def _signal(lane: core.Lane, address: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    cell = symm_at(address, pe)
    lane.notify(cell.number(), cell.dtype.element_ty.itemsize, {SET: "set", ADD: "add"}[number(sig_op)], number(signal), "release", "system")


def _put_signal(blocking: bool, dest: Any, source: Any, nbytes: Any, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    lane = _put(blocking, dest, source, nbytes, pe) or _lane("put")
    _signal(lane, sig_addr, signal, sig_op, pe)


@each
def signal_op(sig_addr: Any, signal: Any, sig_op: Any, pe: Any, *_: Any) -> None:
    core.rank().recording.assume("signal_op", "signal_op and dl.notify release what their program stored before, puts excepted")
    if _puts(core.current()).fenced:  # it comes after what was fenced
        _signal(_lane("signal"), sig_addr, signal, sig_op, pe)
        return
    spins.atomic({SET: "set", ADD: "add"}[number(sig_op)], symm_at(sig_addr, pe), signal, sem="release", scope="sys")


def signal_wait_until(sig_addr: Any, cmp_: Any, cmp_val: Any) -> Any:
    relation = RELATIONS.get(number(cmp_))
    if relation is None:
        raise core.refuse("signal_wait_until with 'less than': ==, !=, > and >= are possible")
    _wait(sig_addr, relation, cmp_val)
    return cmp_val


def barrier_all(*_: Any) -> None:
    """All programs that call it, one per rank, meet; their puts are complete."""
    quiet()
    core.rank().recording.meet("shmem_barrier", core.rank(), core.current)


@each
def _int_p(dest: Any, value: Any, pe: Any, *_: Any) -> None:
    data.store(symm_at(dest, pe), value)


def _shmem() -> Dict[str, Any]:
    """The functions of libshmem_device, for threads, warps and blocks."""
    found: Dict[str, Any] = {
        "my_pe": lambda: data.tile(core.rank().index), "n_pes": lambda: data.tile(program.world_size()), "fence": fence, "quiet": quiet,
        "team_my_pe": lambda team: data.tile(core.rank().index), "team_n_pes": lambda team: data.tile(program.world_size()),
        "remote_ptr": symm_at, "signal_op": signal_op, "signal_wait_until": signal_wait_until, "int_p": _int_p, "quiet_pe": quiet,
        "uint64_wait_until_equals": lambda a, v: signal_wait_until(a, 0, v), "set_rocshmem_ctx": nothing}
    for unit in ("", "_block", "_warp", "_wave", "_wg"):
        for nbi in (False, True):
            for forms in ((f"_nbi{unit}", f"{unit}_nbi") if nbi else (unit,)):
                found[f"putmem{forms}"] = lambda *a, nbi=nbi: each(_put)(not nbi, *a[:4])
                found[f"getmem{forms}"] = lambda *a, nbi=nbi: each(_get)(not nbi, *a[:4])
                found[f"putmem_signal{forms}"] = lambda *a, nbi=nbi: each(_put_signal)(not nbi, *a[:7])
        for name in ("barrier_all", "sync_all", "barrier"):
            found[f"{name}{unit}"] = barrier_all
    for prefix in ("NVSHMEM", "ROCSHMEM", "MORI"):
        values = {"EQ": 0, "NE": 1, "GT": 2, "LE": 3, "LT": 4, "GE": 5}
        found.update({f"{prefix}_CMP_{name}": value for name, value in values.items()})
        found.update({f"{prefix}_SIGNAL_SET": SET, f"{prefix}_SIGNAL_ADD": ADD})
    found.update(NVSHMEM_TEAM_WORLD=0, NVSHMEM_TEAM_SHARED=1, NVSHMEMX_TEAM_NODE=2)
    return found


# ---- language_extra ----

def thread_index(axis: Any = 0) -> Any:
    return asm.identity("%tid." + "xyz"[number(axis)])


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)


def _ld(pointer: Any, scope: Any = "gpu", semantic: Any = "relaxed") -> Any:
    return spins.load_flag(pointer, _plain(semantic) or "relaxed", spins.SCOPES[_plain(scope) or "gpu"])


def _st(pointer: Any, value: Any, scope: Any = "gpu", semantic: Any = "relaxed") -> None:
    spins.atomic("set", pointer, value, sem=_plain(semantic) or "relaxed", scope=_plain(scope) or "gpu")


def _atomic_add(pointer: Any, value: Any, scope: Any = "gpu", semantic: Any = "relaxed") -> Any:
    return spins.atomic("add", pointer, value, sem=semantic, scope=scope)


def _atomic_cas(pointer: Any, compare: Any, value: Any, scope: Any = "gpu", semantic: Any = "relaxed") -> Any:
    return spins.atomic("cas", pointer, value, compare, sem=semantic, scope=scope)


def _wait_eq(pointer: Any, thread: Any, value: Any, scope: Any = "gpu") -> None:
    """One thread waits, then all meet."""
    _wait(pointer, "==", value, "acquire", scope)
    core.program().barrier()


def _arrive(pointer: Any, thread: Any, value: Any, scope: Any = "gpu") -> None:
    """All threads meet, then one adds."""
    core.program().barrier()
    spins.atomic("add", pointer, value, sem="release", scope=scope)


def _extra() -> Dict[str, Any]:
    threads = lambda: core.program().threads  # noqa: E731
    return {
        "tid": thread_index, "ntid": lambda axis=0: data.tile(threads() if not number(axis) else 1), "num_threads": threads,
        "laneid": lambda: thread_index() % 32, "threads_per_warp": lambda: 32, "num_warps": lambda: threads() // 32,
        "__syncthreads": lambda: core.program().barrier(), "__fence": lambda semantic="sc", scope="gpu": core.current().fence(
            "seq_cst" if _plain(semantic) == "sc" else "acq_rel", spins.SCOPES[_plain(scope)]),
        "fence": lambda semantic="acq_rel", scope="agent", *_: core.current().fence("acq_rel", "system"),
        "membar": lambda scope="gl": core.current().fence("seq_cst", {"cta": "block", "gl": "device"}.get(_plain(scope), "system")),
        "ld": _ld, "st": _st, "ld_acquire": lambda p, scope="gpu": _ld(p, scope, "acquire"), "ld_b32": lambda p: _ld(p), "st_b32": _st,
        "atomic_add": _atomic_add, "atomic_cas": _atomic_cas, "wait_eq": _wait_eq, "arrive_inc": _arrive, "arrive_inc_asm": _arrive,
        "red_release": lambda p, value, scope="gpu": spins.atomic("add", p, value, sem="release", scope=scope)}


# ---- the grid barrier ----

def barrier_on_this_grid(*_: Any) -> None:
    """kernels/nvidia/common_ops: all programs of the launch meet, through a lane that waits for all and then lets all go."""
    own = core.program()
    own.barrier()
    total = own.grid[0] * own.grid[1] * own.grid[2]
    if total == 1:
        return
    stream = own.stream
    hub = stream.__dict__.setdefault("grid_hub", None) or stream.__dict__.update(grid_hub=core.rank().new_lane("grid", None)) or stream.grid_hub
    own.flag_set(hub, 0)
    if own.index == total - 1:
        for lane in stream.programs[:total]:
            hub.flag_wait(lane, 0)
        for lane in stream.programs[:total]:
            hub.flag_set(lane, 0)
    own.flag_wait(hub, 0)
    own.barrier()


language.HANDSHAKES.update({f"triton_dist.kernels.nvidia.common_ops.{name}": barrier_on_this_grid for name in (
    "unsafe_barrier_on_this_grid", "cooperative_barrier_on_this_grid", "barrier_on_this_grid")})


# ---- the host: CUDA's driver, NVSHMEM, triton_dist.utils ----

def _on(stream: Any) -> core.Lane:
    """The lane of a stream, given as torch's stream or as its number for the driver."""
    rank = program.rank()
    handle = number_of(stream)
    before, rank.stream_number = rank.stream_number, rank.stream_number if not handle else handle - 1
    try:
        return tensor.host_lane()
    finally:
        rank.stream_number = before


def number_of(stream: Any) -> int:
    return int(getattr(stream, "cuda_stream", None) or getattr(stream, "handle", None) or (stream if isinstance(stream, int) else 0))


def _write_value(nbytes: int) -> Callable[..., Tuple[int]]:
    def write(stream: Any, address: Any, value: Any, *_: Any) -> Tuple[int]:
        _on(stream).notify(int(address), nbytes, "set", int(value), "release", "system")
        return (0,)
    return write


def _wait_value(nbytes: int) -> Callable[..., Tuple[int]]:
    def wait_value(stream: Any, address: Any, value: Any, flags: Any = 0) -> Tuple[int]:
        relation = {0: ">=", 1: "=="}.get(int(flags))
        if relation is None:
            raise core.refuse("cuStreamWaitValue with this flag: GEQ and EQ are possible")
        _on(stream).wait(int(address), nbytes, relation, int(value), "acquire", "system")
        return (0,)
    return wait_value


def _memcpy(to: Any, of: Any, nbytes: int, *rest: Any) -> Tuple[int]:
    stream = rest[-1] if rest else 0
    for address in (int(to), int(of)):
        program.rank().at(address, max(int(nbytes), 1))
    kinds = [kind for kind in (program.rank().at(int(of)).dtype, program.rank().at(int(to)).dtype) if int(nbytes) % core.SIZES[kind] == 0]
    peal = max(kinds or ["u8"], key=lambda kind: core.SIZES[kind])  # bytes are what has no other type
    count = int(nbytes) // core.SIZES[peal]
    _on(stream).copy(core.Span(peal, int(to), count), core.Span(peal, int(of), count))
    return (0,)


def _create(shape: Any, dtype: Any = None, *_: Any, **__: Any) -> Tensor:
    made = empty((shape,) if isinstance(shape, int) else tuple(shape), dtype, "cuda", shared=True)
    if made.itemsize >= 4 and not made.dtype.is_floating_point:
        program.rank().recording.assume("shmem", "that symmetric memory of NVSHMEM is zero when it is new, where it is of integers")
        made._storage.region.zeroed = True
    return made


def _peer(own: Tensor, pe: int) -> Tensor:
    if pe == program.rank().index:
        return own
    address = own.data_ptr() - core.heap(program.rank().index) + core.heap(pe)
    program.exchange(None)
    region = program.rank().at(address)
    return Tensor(tensor.Storage.of(region), own.dtype, own.shape, own.stride(), address - region.address)


def _create_all(shape: Any, dtype: Any, rank: int, local_world_size: int, *_: Any) -> List[Tensor]:
    own = _create(shape, dtype)
    return [_peer(own, pe) for pe in range(rank - rank % local_world_size, rank - rank % local_world_size + local_world_size)]


def _barrier_on_stream(stream: Any = None, *_: Any) -> None:
    rank = program.rank()
    handle = number_of(stream)
    before, rank.stream_number = rank.stream_number, rank.stream_number if not handle else handle - 1
    try:
        program.barrier()
    finally:
        rank.stream_number = before


def _initialize(*_: Any, **__: Any) -> symm.Group:
    symm.init_process_group()
    return symm.new_group()


class Allocator:
    """NVSHMEMLazyAllocator: tensors at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def create_tensor(self, name: Any, shape: Any = None, dtype: Any = None, fill_value: Any = None, **_: Any) -> Tensor:
        if not isinstance(name, str):
            shape, dtype = name, shape
        made = _create(shape, dtype)
        return made if fill_value is None else made.fill_(fill_value)

    def __getattr__(self, name: str) -> Any:
        return nothing


def _tuned(config_space: Sequence[Any] = (), **_: Any) -> Callable[..., Any]:
    """triton_dist.tune.autotune: the first of the configurations."""
    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            named.pop("autotune", None)
            named.pop("autotune_pg", None)
            given = {} if named or not config_space else dict(config_space[0])
            return function(*args, **{**given, **named})
        return call
    return wrap


def _perf_func(func: Callable[[], Any], iters: int = 1, warmup_iters: int = 0, *_: Any, **__: Any) -> Tuple[Any, float]:
    """As many calls as are to be recorded, one after the other."""
    found = None
    for _call in range(program.options().calls):
        found = func()
    return found, 1.0


def _lazy_package(name: str, folder: str) -> types.ModuleType:
    """A package whose names are imported from the author's files when they are asked for, as its __init__ says."""
    package = standin(name)
    package.__path__ = [folder]
    package.__file__ = os.path.join(folder, "__init__.py")
    with open(package.__file__, encoding="utf-8") as file:
        homes = {alias.asname or alias.name: (node.module, alias.name) for node in ast.walk(ast.parse(file.read()))
                 if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module for alias in node.names}

    def get(asked: str) -> Any:
        if asked not in homes:
            raise AttributeError(asked)
        module, inner = homes[asked]
        __import__(f"{name}.{module}")
        if module in homes:
            package.__dict__.pop(module, None)  # the module has the name of what is in it
        return getattr(sys.modules[f"{name}.{module}"], inner)
    package.__dict__["__getattr__"] = get
    return package


# ---- the modules ----

def _host() -> Dict[str, Any]:
    """The names of triton_dist.utils."""
    driver, runtime = _driver()
    group = lambda: program.rank().state.setdefault("triton_dist.world", symm.new_group())  # noqa: E731
    return dict(
        cuda=driver, cudart=runtime, CUDA_CHECK=nothing, HIP_CHECK=lambda found: found[1:] if len(found) > 2 else found[-1],
        NVSHMEM_SIGNAL_DTYPE=DTYPES["int64"], MORI_SHMEM_SIGNAL_DTYPE=DTYPES["uint64"], nvshmem_create_tensor=_create,
        nvshmem_create_tensors=_create_all, nvshmem_free_tensor_sync=nothing, nvshmem_free_lazy_tensor=nothing,
        nvshmem_barrier_all_on_stream=_barrier_on_stream, initialize_distributed=_initialize, finalize_distributed=nothing,
        init_nvshmem_by_torch_process_group=nothing, get_triton_dist_world=group, get_triton_dist_local_world_size=program.world_size,
        is_cuda=lambda: not torch.is_amd(), is_hip=torch.is_amd, is_maca=lambda: False, is_ascend=lambda: False, get_shmem_backend=lambda: (
            "rocshmem" if torch.is_amd() else "nvshmem"), is_rocshmem=torch.is_amd, is_mori_shmem=lambda: False,
        is_shmem_initialized=lambda: True, dist_print=nothing, sleep_async=nothing, supports_p2p_native_atomic=lambda: True,
        requires_p2p_native_atomic=decorator, requires=lambda *_: decorator, has_tma=lambda: False, has_fullmesh_nvlink=lambda: True,
        is_nvshmem_multimem_supported=lambda: False, has_nvshmemi_bc_built=lambda: False, launch_cooperative_grid_options=dict,
        support_launch_cooperative_grid=lambda: False, get_device_property=lambda *_: torch.Properties, torch_stream_max_priority=lambda: -1,
        get_device_max_shared_memory_size=lambda *_: 232448, get_numa_node_count_in_group=lambda *_: 1, get_group_numa_world_size=lambda g: g.size(),
        cuda_occupancy_max_activate_blocks_per_multiprocessor=lambda *_, **__: 1, get_max_gpu_clock_rate_in_khz=lambda *_: 1,
        wait_until_max_gpu_clock_or_warning=nothing, barrier_async=nothing, init_seed=nothing, generate_data=_generate,
        rand_tensor=lambda shape, dtype, device="cuda": empty(shape, dtype, device).random_data_(), get_bool_env=_env, get_int_env=_env,
        is_fp8_dtype=lambda d: d.itemsize == 1 and d.is_floating_point, warn_if_cuda_launch_blocking=nothing,
        NVSHMEMLazyAllocator=Allocator, LazyAllocator=Allocator, TorchStreamWrapper=lambda stream: stream, get_cpu_info_linux=lambda: "",
        rocshmem_barrier_all_on_stream=_barrier_on_stream, mori_shmem_barrier_all_on_stream=_barrier_on_stream,
        mori_shmem_create_tensor=_create, mori_shmem_free_tensor_sync=nothing)


def _env(name: str, fallback: Any) -> Any:
    return fallback


def _generate(configs: Sequence[Any]) -> Iterator[Any]:
    while True:
        yield tuple(empty([one() if callable(one) else one for one in config[0]], config[1]).random_data_() if config else None
                    for config in configs)


def _driver() -> Tuple[types.ModuleType, types.ModuleType]:
    flags = types.SimpleNamespace(CU_STREAM_WAIT_VALUE_GEQ=0, CU_STREAM_WAIT_VALUE_EQ=1, CU_STREAM_WAIT_VALUE_AND=2, CU_STREAM_WAIT_VALUE_NOR=3)
    written = types.SimpleNamespace(CU_STREAM_WRITE_VALUE_DEFAULT=0, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER=1)
    driver = standin("cuda.bindings.driver", cuStreamWriteValue32=_write_value(4), cuStreamWriteValue64=_write_value(8),
                    cuStreamWaitValue32=_wait_value(4), cuStreamWaitValue64=_wait_value(8), CUstreamWaitValue_flags=flags,
                    CUstreamWriteValue_flags=written, CUresult=types.SimpleNamespace(CUDA_SUCCESS=0))
    runtime = standin("cuda.bindings.runtime", cudaMemcpyAsync=_memcpy, cudaFree=lambda *_: (0,), cudaError_t=types.SimpleNamespace(cudaSuccess=0),
                     cudaMemcpyKind=types.SimpleNamespace(cudaMemcpyDefault=4, cudaMemcpyDeviceToDevice=3, cudaMemcpyHostToDevice=1,
                                                          cudaMemcpyDeviceToHost=2), cudaStreamSynchronize=lambda *_: (0,))
    return driver, runtime


def _jit(function: Any = None, **named: Any) -> Any:
    return language.jit(function, **named) if function is not None else lambda inner: language.jit(inner, **named)


def _authors(top: str) -> List[str]:
    """Where the authors' package of that name is on the path."""
    return [folder for folder in (os.path.join(one, top) for one in sys.path) if os.path.isdir(folder)]


def later(name: str, **members: Any) -> types.ModuleType:
    """A module from which anything can be imported; what it does not have is refused where it is called."""
    module = types.ModuleType(name)
    module.__dict__.update(members)

    def missing(attribute: str) -> Any:
        if attribute.startswith("__") and attribute.endswith("__"):
            raise AttributeError(attribute)

        def refused(*_: Any, **__: Any) -> Any:
            raise core.refuse(f"{name}.{attribute} is not known to Peal")
        return refused
    module.__dict__["__getattr__"] = missing
    return module


def modules() -> Dict[str, types.ModuleType]:
    own, extra, shmem = {"wait": wait, "notify": notify, "symm_at": symm_at, "consume_token": consume_token,
                         "rank": lambda *_: data.tile(core.rank().index), "num_ranks": lambda *_: data.tile(program.world_size()),
                         "simt_exec_region": simt_exec_region}, _extra(), _shmem()
    driver, runtime = _driver()
    packages = _authors("triton_dist")
    made = [
        standin("triton_dist", jit=_jit, language=None), later("triton_dist.jit", jit=_jit), later("triton_dist.language", **own),
        later("triton_dist.language.smem_ops"), later("triton_dist.language.tma"), later("triton_dist.language.extra.cuda.tma_language"),
        later("triton_dist.language.extra"), later("triton_dist.language.extra.language_extra", **extra),
        later("triton_dist.language.extra.libshmem_device", **shmem), later("triton_dist.language.extra.cuda"),
        later("triton_dist.language.extra.hip"), later("triton_dist.language.extra.cuda.language_extra", **extra),
        later("triton_dist.language.extra.hip.language_extra", **extra), later("triton_dist.language.extra.cuda.libnvshmem_device", **shmem),
        later("triton_dist.language.extra.hip.librocshmem_device", **shmem), later("triton_dist.utils", **_host()),
        later("triton_dist.tools", aot_compile_spaces=lambda *_, **__: decorator), later("triton_dist.tune", autotune=_tuned, to_hashable=str),
        later("triton_dist.autotuner", contextual_autotune=lambda *_, **__: decorator), later("triton_dist.tools.profiler", Profiler=Nothing),
        later("triton_dist.profiler_utils", perf_func=_perf_func, group_profile=Nothing, get_torch_prof_ctx=Nothing),
        later("nvshmem"), later("nvshmem.core", init=nothing, finalize=nothing, tensor=_create, free_tensor=nothing, get_peer_tensor=_peer,
                                  get_unique_id=nothing, barrier=lambda team=None, stream=None: _barrier_on_stream(stream), Teams=Nothing()),
        later("nvshmem.bindings"), later("nvshmem.bindings.nvshmem", my_pe=lambda: program.rank().index, n_pes=program.world_size,
                                           team_my_pe=lambda *_: program.rank().index, team_n_pes=lambda *_: program.world_size(),
                                           barrier_all=lambda: program.barrier()),
        standin("cuda", cuda=driver, cudart=runtime), standin("cuda.bindings", driver=driver, runtime=runtime), driver, runtime,
        standin("cuda.core", Device=Nothing), standin("packaging"), standin("packaging.version", Version=str, parse=str)]
    found = {one.__name__: one for one in made}
    for name, module in found.items():
        parent, _, last = name.rpartition(".")
        if parent in found and last not in vars(found[parent]) or last == "language":
            setattr(found[parent], last, module)
    for folder in packages[:1]:
        found["triton_dist"].__path__ = [folder]
        for vendor in ("nvidia", "amd"):
            path = os.path.join(folder, "kernels", vendor)
            if os.path.exists(os.path.join(path, "__init__.py")):
                found[f"triton_dist.kernels.{vendor}"] = _lazy_package(f"triton_dist.kernels.{vendor}", path)
    return found
