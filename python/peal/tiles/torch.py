# SPDX-License-Identifier: Apache-2.0
"""What scripts with symmetric memory use of `torch`, over tensor.py: PyTorch is not needed, and not imported.

Every rank is one process of the program with one device, cuda:RANK. A stream is a lane of its rank, ordered with others by events,
wait_stream and synchronize only. Collectives of torch.distributed on the host exchange Python objects; on tensors of the device they
are barriers of all ranks that read and write them. What is not here is refused by its name.
"""
from __future__ import annotations

import contextlib
import math
import types
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

import numpy

from . import core, program, symm, tensor
from .program import standin
from .tensor import BOOL, DTYPES, FLOAT32, INT64, Check, Tensor, Unknown, compute, device, dtype, empty as make, from_numbers, unpack

SMS = 132  # multiprocessors of the device that is reported


def is_amd() -> bool:
    return program.world().model() == "triton-amd"


def nothing(*_: Any, **__: Any) -> None:
    """What has no effect on a plan: seeds, profiler marks, memory statistics."""


class Nothing:
    """A context or a decorator without effect."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, function: Any = None, *_: Any, **__: Any) -> Any:
        return function

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing


def decorator(function: Any = None, *_: Any, **__: Any) -> Any:
    """@torch.compile, @torch.no_grad(), @torch.library.custom_op("...") and the like: the function as it is."""
    return function if callable(function) else lambda inner: inner


# ---- making tensors ----

def _made(size: Sequence[Any], named: Dict[str, Any], zeroed: bool = False) -> Tensor:
    return make([int(one) for one in unpack(size)], named.get("dtype") or _default(), _where(named), zeroed=zeroed)


def _where(named: Dict[str, Any]) -> device:
    given = named.get("device")
    return device(program.rank().state.get("torch.device", "cpu") if given is None else given)


def _default() -> dtype:
    return program.rank().state.get("torch.dtype", FLOAT32)


def _random(*size: Any, **named: Any) -> Tensor:
    return _made(size or named.pop("size"), named).random_data_()


def zeros(*size: Any, **named: Any) -> Tensor:
    return _made(size or named.pop("size"), named, True)


def full(size: Any, value: Any, **named: Any) -> Tensor:
    if not named.get("dtype") and not isinstance(value, float):
        named["dtype"] = BOOL if isinstance(value, bool) else INT64
    return _made(size if isinstance(size, (tuple, list)) else (size,), named).fill_(value)


def _like(function: Callable[..., Tensor], *before: Any) -> Callable[..., Tensor]:
    def like(other: Tensor, *args: Any, **named: Any) -> Tensor:
        named = {"dtype": named.get("dtype") or other.dtype, "device": named.get("device") or other.device}
        return function(tuple(other.shape), *args, *before, **named)
    return like


def new_tensor(data: Any, dtype: Optional[tensor.dtype] = None, **named: Any) -> Tensor:  # pylint: disable=redefined-outer-name
    """torch.tensor"""
    if isinstance(data, Tensor):
        return data.to(dtype or data.dtype, device=_where(named)) if named else data.clone()
    array = numpy.asarray(data)
    if array.dtype.kind == "O":
        array = numpy.asarray([one.item() if isinstance(one, Tensor) else one for one in data])
    return from_numbers(array, dtype or (FLOAT32 if array.dtype == numpy.float64 else None), _where(named))


def arange(*bounds: Any, dtype: Optional[tensor.dtype] = None, **named: Any) -> Tensor:  # pylint: disable=redefined-outer-name
    array = numpy.arange(*(one.item() if isinstance(one, Tensor) else one for one in bounds))
    return from_numbers(array, dtype or (FLOAT32 if array.dtype.kind == "f" else INT64), _where(named))


def randint(*bounds: Any, **named: Any) -> Tensor:
    """Integers of the program's own generator: they are given inputs, the same on every run."""
    low, high, size = bounds if len(bounds) == 3 else (0, *bounds) if len(bounds) == 2 else (0, bounds[0], named["size"])
    return from_numbers(_generator().integers(low, high, tuple(size)), named.get("dtype") or INT64, _where(named))


def _generator() -> Any:
    state = program.rank().state
    return state.setdefault("torch.generator", numpy.random.default_rng(program.rank().index))


def manual_seed(seed: int) -> Any:
    program.rank().state["torch.generator"] = numpy.random.default_rng(int(seed) & 0xFFFFFFFF)
    return Nothing()


def from_numpy(array: Any) -> Tensor:
    return from_numbers(array, None, device("cpu"))


def cat(parts: Sequence[Tensor], dim: int = 0, **_: Any) -> Tensor:
    parts = [one for one in parts if one.numel() or one.ndim > 1] or list(parts)[:1]
    shape = list(parts[0].shape)
    shape[dim] = sum(one.shape[dim] for one in parts)
    out, at = make(shape, parts[0].dtype, parts[0].device), 0
    for one in parts:
        out.narrow(dim % len(shape), at, one.shape[dim]).copy_(one)
        at += one.shape[dim]
    return out


def stack(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    return cat([one.unsqueeze(dim) for one in parts], dim)


# ---- tests of data ----

def allclose(result: Tensor, golden: Tensor, **_: Any) -> Any:
    """Do they hold the same? If what `golden` holds is known as a formula of inputs, that is a contract, which is proved."""
    if result.numbers() is not None and golden.numbers() is not None:
        return bool(numpy.allclose(result.numbers(), golden.numbers()))
    for one, other in ((result, golden), (golden, result)):
        formula = other._storage.holds()
        own = one._storage.holds()
        if formula and formula.contract and not (own and own.contract) and one.is_cuda and one.nbytes == one._storage.nbytes:
            program.implements(formula.contract, formula.source, one)
            return True
    return bool(Check(make((), BOOL, "cpu"), True))


def assert_close(result: Any, golden: Any, **_: Any) -> None:
    if isinstance(result, (list, tuple)):
        for one, other in zip(result, golden):
            assert_close(one, other)
    elif not allclose(result, golden):
        raise AssertionError("Tensor-likes are not close!")


# ---- torch.cuda ----

class Stream:
    """A queue of the device: a lane of its rank."""

    def __init__(self, *_: Any, number: Optional[int] = None, **__: Any) -> None:
        state = program.rank().state
        state["torch.streams"] = count = state.get("torch.streams", 0) + (number is None)
        self.number = count if number is None else number
        self.cuda_stream = self.number + 1
        program.rank().stream(self.number)  # it is there: the host can wait for it, and it for others
        if number is None and "torch.synchronized" in state:
            rank = program.rank()
            rank.host(self.number).after(state["torch.synchronized"])
            rank.stream(self.number).hub_ahead = True
        self.stream_id, self.device = self.number, device("cuda")

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and other.number == self.number

    def __hash__(self) -> int:
        return self.number

    def wait_stream(self, other: Stream) -> None:
        """What the other stream has been given so far comes before what this one is given from here on."""
        if other != self:
            _order(other.number, self.number)

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def record_event(self, event: Optional[Event] = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        synchronize_streams([self.number])

    def query(self) -> bool:
        raise core.refuse("Stream.query: what it says depends on the time")

    def __enter__(self) -> Stream:
        rank = program.rank()
        self._before = rank.stream_number
        rank.stream_number = self.number
        return self

    def __exit__(self, *_: Any) -> None:
        program.rank().stream_number = self._before


class Event:
    """A place in a stream. It stands for all that the stream has been given when it is waited for, at the latest."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.flag: Optional[Tuple[int, core.Lane]] = None

    def record(self, stream: Optional[Stream] = None) -> None:
        number = stream.number if stream else program.rank().stream_number
        rank = program.rank()
        self.flag = (number, rank.host(number).fork("event"))
        rank.stream(number).hub_ahead = True

    def wait(self, stream: Optional[Stream] = None) -> None:
        self._before(stream.number if stream else program.rank().stream_number)

    def _before(self, number: int) -> None:
        if self.flag and self.flag[0] != number:
            rank = program.rank()
            rank.host(number).after(self.flag[1])
            rank.stream(number).hub_ahead = True

    def synchronize(self) -> None:
        for number in list(program.rank().streams):
            self._before(number)

    def elapsed_time(self, _: Event) -> Unknown:
        return Unknown()

    def query(self) -> bool:
        raise core.refuse("Event.query: what it says depends on the time")


def synchronize_streams(numbers: Optional[Sequence[int]] = None) -> None:
    """The host waits: what streams have been given comes before whatever any stream is given from here on."""
    rank = program.rank()
    if rank.is_fresh():
        return
    if numbers is None:
        rank.meet_all()
        return
    for other in numbers:
        for number in list(rank.streams):
            if number != other:
                _order(other, number)
    if numbers is None:  # for streams that are made later
        if "torch.synchronized" not in rank.state:
            rank.state["torch.synchronized"] = rank.host(0).fork("synchronized")
        rank.state["torch.synchronized"].after(rank.host(0))


def _order(first: int, second: int) -> None:
    """What the first stream has been given comes before what the second is given from here on."""
    rank = program.rank()
    before = rank.host(first)
    rank.host(second).after(before)
    rank.stream(second).hub_ahead = True


def current_stream(*_: Any) -> Stream:
    return Stream(number=program.rank().stream_number)


@contextlib.contextmanager
def in_stream(stream: Optional[Stream]) -> Iterator[Any]:
    """torch.cuda.stream"""
    if stream is None:
        yield None
    else:
        with stream:
            yield stream


def set_stream(stream: Stream) -> None:
    program.rank().stream_number = stream.number


class Properties:
    """What get_device_properties says, of a device with the memory model that was asked for."""
    multi_processor_count, total_memory, warp_size, name, major, minor = SMS, 80 << 30, 32, "Peal", 9, 0
    gcnArchName = "gfx942"
    shared_memory_per_block_optin = shared_memory_per_multiprocessor = 232448
    max_threads_per_multi_processor, L2_cache_size = 2048, 50 << 20


class Graph(Nothing):
    """torch.cuda.CUDAGraph: what is captured is refused, because it is not run where it is written."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise core.refuse("torch.cuda.CUDAGraph is not known")


# ---- torch.nn, autograd, library ----

class Function:
    """torch.autograd.Function: forward, at once."""

    @classmethod
    def apply(cls, *args: Any, **named: Any) -> Any:
        context = types.SimpleNamespace(save_for_backward=nothing, mark_dirty=nothing, mark_non_differentiable=nothing,
                                        set_materialize_grads=nothing, needs_input_grad=(False,) * len(args))
        return cls.forward(context, *args, **named)  # type: ignore[attr-defined] # pylint: disable=no-member


class NNModule:
    """torch.nn.Module: attributes, forward, parameters."""
    training = False

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.forward(*args, **named)  # type: ignore[attr-defined] # pylint: disable=no-member

    def register_buffer(self, name: str, value: Any, *_: Any, **__: Any) -> None:
        setattr(self, name, value)

    register_parameter = register_buffer

    def parameters(self) -> Iterator[Tensor]:
        for value in list(vars(self).values()):
            if isinstance(value, Tensor):
                yield value
            elif isinstance(value, NNModule):
                yield from value.parameters()

    def to(self, *_: Any, **__: Any) -> NNModule:
        return self

    cuda = eval = train = requires_grad_ = to


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    out = compute("matmul", x, weight.T)
    return out if bias is None else compute("add", out, bias)


# ---- the modules ----

def _functions() -> Dict[str, Any]:
    made: Dict[str, Any] = {name: (lambda *args, name=name, out=None, **named: out.copy_(compute(name, *args, **named)) if out is not None
                                   else compute(name, *args, **named)) for name in tensor.FUNCTIONS}
    made.update({name: (lambda t, dim=None, keepdim=False, name=name, **_: tensor.reduce(name, t, dim, keepdim, None))
                 for name in (*tensor.REDUCTIONS, "sum", "all", "any")})
    for name in ("reshape", "permute", "transpose", "flatten", "squeeze", "unsqueeze", "split", "chunk", "unbind", "clone", "narrow", "select",
                 "nonzero", "numel", "t"):
        made[name] = (lambda t, *args, name=name, **named: getattr(t, name)(*args, **named))
    for name, value in DTYPES.items():
        made[name] = value
    made.update({"float": FLOAT32, "double": DTYPES["float64"], "half": DTYPES["float16"], "int": DTYPES["int32"], "long": INT64,
                 "short": DTYPES["int16"], "uint8": DTYPES["uint8"], "bool": BOOL, "dtype": dtype})
    return made


def _info(element: dtype) -> Any:
    given = {"bfloat16": (3.3895313892515355e38, 0.0078125), "float8_e4m3fn": (448.0, 0.125)}.get(element.name)
    if given:
        return types.SimpleNamespace(max=given[0], min=-given[0], eps=given[1], tiny=0.0, bits=8 * element.itemsize)
    return numpy.finfo(element.numpy) if element.is_floating_point else numpy.iinfo(element.numpy)


def _set(key: str) -> Callable[[Any], None]:
    return lambda value: program.rank().state.__setitem__(key, value)


def modules() -> Dict[str, types.ModuleType]:
    """All modules of the stand-in by their names."""
    own = lambda: program.rank().index  # noqa: E731
    cuda = standin(
        "torch.cuda", Stream=Stream, Event=Event, ExternalStream=Stream, stream=in_stream, set_stream=set_stream, current_stream=current_stream,
        default_stream=lambda *_: Stream(number=0), synchronize=lambda *_: synchronize_streams(), set_device=nothing, current_device=own,
        device_count=lambda: program.world_size(), is_available=lambda: True, empty_cache=nothing, manual_seed=nothing, manual_seed_all=nothing,
        get_device_properties=lambda *_: Properties, get_device_capability=lambda *_: (9, 0), get_device_name=lambda *_: "Peal", init=nothing,
        is_current_stream_capturing=lambda: False, CUDAGraph=Graph, graph=Graph, _sleep=nothing, device=Nothing, nvtx=Nothing(),
        reset_peak_memory_stats=nothing, max_memory_allocated=lambda *_: 0, memory_allocated=lambda *_: 0, clock_rate=lambda *_: 1000,
        is_bf16_supported=lambda *_: True, Device=Nothing)
    cuda.streams = standin("torch.cuda.streams", Stream=Stream, Event=Event)
    cuda.amp = standin("torch.cuda.amp", autocast=Nothing, custom_fwd=decorator, custom_bwd=decorator)
    functional = standin("torch.nn.functional", linear=linear, relu=lambda t: compute("relu", t), softmax=lambda t, dim=-1, **_:
                        tensor.reduce("softmax", t, dim, False, None))
    nn = standin("torch.nn", Module=NNModule, Parameter=lambda t, *_, **__: t, functional=functional)
    testing = standin("torch.testing", assert_close=assert_close, assert_allclose=assert_close)
    named: Dict[str, Any] = _functions()
    named.update(
        Tensor=Tensor, Size=tensor.Size, device=device, tensor=new_tensor, as_tensor=new_tensor, empty=lambda *s, **n: _made(s or n.pop("size"), n),
        zeros=zeros, ones=lambda *s, **n: full(unpack(s), 1, **{**n, "dtype": n.get("dtype") or _default()}), full=full, arange=arange, randint=randint,
        rand=_random, randn=_random, normal=lambda *a, size=None, **n: _random(size or a[-1], **n), from_numpy=from_numpy, cat=cat, concat=cat,
        stack=stack, empty_like=_like(lambda s, **n: _made(s, n)), zeros_like=_like(zeros), ones_like=_like(full, 1), full_like=_like(full),
        rand_like=_like(_random), randn_like=_like(_random), randperm=lambda n, **m: from_numbers(_generator().permutation(n), INT64, _where(m)),
        empty_strided=lambda s, t, **n: make([1 + sum((a - 1) * b for a, b in zip(s, t))], n.get("dtype"), _where(n)).as_strided(s, t),
        allclose=allclose, manual_seed=manual_seed, seed=nothing, set_printoptions=nothing, use_deterministic_algorithms=nothing,
        set_default_dtype=_set("torch.dtype"), get_default_dtype=_default, set_default_device=_set("torch.device"), Generator=Nothing,
        is_tensor=lambda t: isinstance(t, Tensor), no_grad=Nothing, inference_mode=Nothing, enable_grad=Nothing, set_grad_enabled=Nothing,
        compile=decorator, finfo=_info, iinfo=_info, strided="strided", inf=math.inf, nan=math.nan, pi=math.pi, version=types.SimpleNamespace(
            cuda=None if is_amd() else "12.8", hip="6.4" if is_amd() else None, git_version=""), __version__="2.9.0",
        cuda=cuda, nn=nn, testing=testing, distributed=symm.distributed(), autograd=standin("torch.autograd", Function=Function),
        multiprocessing=standin("torch.multiprocessing", spawn=symm.spawn, set_start_method=nothing),
        library=standin("torch.library", custom_op=lambda *_, **__: decorator, register_fake=lambda *_, **__: decorator,
                       triton_op=lambda *_, **__: decorator, Library=Nothing, wrap_triton=lambda k: k),
        profiler=standin("torch.profiler", profile=Nothing, record_function=Nothing, schedule=nothing, tensorboard_trace_handler=nothing,
                        ProfilerActivity=types.SimpleNamespace(CPU=0, CUDA=1)),
        backends=Nothing(), utils=standin("torch.utils", deterministic=types.SimpleNamespace()), layout=type("layout", (), {}),
        ops=standin("torch.ops"), amp=standin("torch.amp", custom_fwd=lambda *_, **__: decorator, custom_bwd=lambda *_, **__: decorator),
        _assert=nothing, are_deterministic_algorithms_enabled=lambda: False, get_device_module=lambda *_: cuda)
    torch = standin("torch", **named)
    found: Dict[str, types.ModuleType] = {}

    def collect(module: types.ModuleType) -> None:
        found[module.__name__] = module
        for value in list(vars(module).values()):
            if isinstance(value, types.ModuleType) and value.__name__.startswith("torch") and value.__name__ not in found:
                collect(value)
    collect(torch)
    found.update(symm.test_harness())
    return found
