# SPDX-License-Identifier: Apache-2.0
"""Semaphores and copies of Pallas kernels, and the barrier with which kernels begin.

Semaphores are cells: a signal adds, a wait takes what it waited for. A copy that is started is a lane of its own, which begins after
what the core has done so far, and ends by signalling its semaphores.
"""
from __future__ import annotations

import dataclasses
import functools
from typing import Any, Optional, Sequence, Tuple

import numpy

from . import core, jaxarray, pallas_tries, program
from .jaxarray import Array, peal_name
from .pallas_memory import CELL, Kernel, Ref, Shared, Storage, device_rank, kernel, on_core, shared, state, storage_for
from .pallas_types import DeviceIdType, MemorySpace, SemaphoreType
from .trees import leaves


# ---- where kernels begin ----

def communicate() -> None:
    """The kernel reaches another device: unless it has a barrier of its own, one was inserted where it began."""
    k, known = kernel(), shared()
    if k.params.collective_id is not None or k.params.skip_device_barrier or k.call in known.communicates:
        return
    known.communicates.add(k.call)
    for rank, line, members in known.starts.pop(k.call, []):
        rank.writer.lines[line] = barrier_text(rank, members)


def barrier_text(rank: core.Rank, members: Sequence[int]) -> str:
    """All devices of the mesh meet: each adds one at every other, and takes one of each."""
    rank.recording.assume("pallas_barrier", "that Pallas inserts a barrier of all devices of the mesh where a kernel begins that reaches "
                          "other devices and has no collective_id")
    box = storage_for("device_barrier", "device_barrier", MemorySpace.SEMAPHORE, (rank.recording.ranks,), SemaphoreType.BARRIER)
    lines = []
    for other in members:
        if other != rank.index:
            lines.append(notify_text(rank.recording, box.regions[other].address + CELL * rank.index, 1))
    for other in members:
        if other != rank.index:
            own = box.regions[rank.index].address + CELL * other
            lines += [f"wait {own:#x} {CELL} >= 1 acquire system", notify_text(rank.recording, own, -1)]
    return "\n".join(lines) or "# a barrier of one device"


def notify_text(recording: core.Recording, address: int, value: int) -> str:
    recording.cells.add((address, CELL))
    return f"notify {address:#x} {CELL} add {value} release system"


def begin_kernel(k: Kernel) -> None:
    known = shared()
    pallas_tries.begin(k, get_barrier_semaphore)
    if k.mesh is None or k.params.collective_id is not None or k.params.skip_device_barrier:
        return
    members = [device.id for device in k.mesh.devices.flat]
    if k.call in known.communicates:
        k.lane.say(barrier_text(k.rank, members))
    else:
        known.starts.setdefault(k.call, []).append((k.rank, k.lane.say("# the kernel begins"), members))


# ---- semaphores ----

def cell(sem: Any, rank: Optional[int] = None, core_at: Optional[int] = None) -> Tuple[int, Storage, int]:
    """Address of a single semaphore on a rank."""
    if not isinstance(sem, Ref) or not sem.is_semaphore():
        raise core.refuse("a semaphore is wanted here")
    if sem.shape and sem.size != 1:
        raise core.refuse(f"'{sem.name}' is {list(sem.shape)} semaphores: one is wanted, '{sem.name}.at[i]'")
    storage = on_core(sem.storage, core_at)
    return storage.regions[sem.rank if rank is None else rank].address + sem.offset, storage, sem.offset // CELL


@dataclasses.dataclass
class Account:
    """What a semaphore of a rank was given in a call of a kernel, and what waits took."""
    storage: Storage
    number: int
    kernel: str
    added: int = 0
    taken: int = 0
    place: core.Place = ("", 0)  # where that was last
    copy: Tuple[str, core.Place, str] = ("", ("", 0), "")  # the half of a copy that signals it, where that starts, what waits for it

    def name(self) -> str:
        return f"'{self.storage.name}'" if len(self.storage.shape) == 0 else f"'{self.storage.name}[{self.number}]'"


def account(storage: Storage, number: int, rank: int, added: int, taken: int,
            copy: Optional[Tuple[str, core.Place, str]] = None) -> None:
    k = kernel()
    if not shared().balance:
        k.rank.recording.at_end.append(functools.partial(check_balance, k.rank.recording, shared()))
    call = (None, 0) if storage.is_passed else k.call  # those are zero after the last kernel that has them
    entry = shared().balance.setdefault((call, id(storage), number, rank), Account(storage, number, k.name))
    entry.added += added
    entry.taken += taken
    entry.place = core.place()
    entry.copy = copy or entry.copy


def check_balance(recording: core.Recording, known: Shared) -> None:
    """Semaphores must be zero when a kernel ends: what is left over is said as a wait that does not end."""
    left = {key: entry for key, entry in known.balance.items() if entry.added > entry.taken}  # too many waits do not end anyway
    if not left or pallas_tries.drain(recording, known):
        return
    (_, which, number, rank), entry = min(left.items(), key=lambda item: (item[0][0][1], item[1].place, item[0][3]))
    recording.note(f"{entry.name()} of rank {rank} holds {entry.added - entry.taken} when '{entry.kernel}' ends, after {core.told(entry.place)}: "
                   f"it was given {entry.added} and waits took {entry.taken}; Pallas wants 0, and a kernel that leaves more is shown as one "
                   "that does not end")
    total = sum(entry.added - entry.taken for key, entry in known.balance.items() if key[1:] == (which, number, rank))
    owner = recording.rank[rank]
    owner.writer.say(f"lane {owner.host().number}", entry.place)
    owner.last_lane = None
    owner.writer.say(f"wait {entry.storage.regions[rank].address + CELL * number:#x} {CELL} >= {total + 1} acquire system", entry.place)


def semaphore_signal(sem: Any, inc: Any = 1, *, device_id: Any = None, device_id_type: Any = DeviceIdType.MESH,
                     core_index: Any = None) -> None:
    k = kernel()
    rank, core_at = device_rank(device_id, device_id_type)
    core_at = jaxarray.as_int(core_index) if core_index is not None else core_at
    amount = jaxarray.as_int(inc)
    if isinstance(sem, Ref) and sem.dtype is SemaphoreType.DMA:
        raise core.refuse(f"'{sem.name}' is a DMA semaphore: only copies signal it")
    if amount < 0:
        raise core.refuse(f"a signal of {amount}: semaphores are raised by signals and lowered by waits")
    address, storage, number = cell(sem, rank, core_at)
    if rank is not None and rank != k.rank.index:
        communicate()
    if amount:
        k.lane.notify(address, CELL, "add", amount)
        account(storage, number, k.rank.index if rank is None else rank, amount, 0)


def semaphore_wait(sem: Any, value: Any = 1, *, decrement: bool = True) -> None:
    if isinstance(sem, Ref) and sem.dtype is SemaphoreType.DMA:
        raise core.refuse(f"'{sem.name}' is a DMA semaphore: the copies that signal it are waited for by their descriptors")
    take(sem, jaxarray.as_int(value), decrement)


def take(sem: Any, amount: int, decrement: bool = True) -> None:
    """Blocks until the semaphore of this core has that much, and takes it."""
    k = kernel()
    lane = k.lane
    address, storage, number = cell(sem)
    if k.trial:
        amount = k.trial.amount(amount)
    if amount > 0:
        lane.wait(address, CELL, ">=", amount)
        if decrement:
            lane.notify(address, CELL, "add", -amount)
            account(storage, number, k.rank.index, 0, amount)


def semaphore_read(sem: Any) -> Any:
    """A look at its value, which no recording knows."""
    address, _, _ = cell(sem)
    kernel().lane.read(core.Span("i64", address))
    return jaxarray.opaque("semaphore_read", [], (), numpy.dtype("int32"))


def get_barrier_semaphore() -> Ref:
    k = kernel()
    if k.params.collective_id is None:
        raise core.refuse("get_barrier_semaphore in a kernel without a collective_id in its CompilerParams")
    return Ref.of(storage_for(("barrier", k.params.collective_id, k.core_index), f"barrier_{k.params.collective_id}",
                              MemorySpace.SEMAPHORE, (),
                              SemaphoreType.BARRIER))


# ---- copies ----

class AsyncCopy:
    """A descriptor: what is copied where, and which semaphores say so."""

    def __init__(self, src: Ref, dst: Ref, recv_sem: Any, send_sem: Any = None, device_id: Any = None,
                 device_id_type: Any = DeviceIdType.MESH) -> None:
        for one, what in ((src, "source"), (dst, "destination")):
            if not isinstance(one, Ref) or one.is_semaphore():
                raise core.refuse(f"the {what} of a copy is a {type(one).__name__}; a reference to memory is wanted")
        self.src_ref, self.dst_ref, self.dst_sem, self.src_sem = src, dst, recv_sem, send_sem
        self.device_id, self.device_id_type = device_id, device_id_type

    is_remote = property(lambda self: self.src_sem is not None)

    @staticmethod
    def amount(sem: Any, ref: Ref) -> int:
        """What a copy of that much gives: bytes for DMA semaphores, one for others."""
        return ref.nbytes if isinstance(sem, Ref) and sem.dtype is SemaphoreType.DMA else 1

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        src, dst = self.src_ref, self.dst_ref
        if src.shape != dst.shape or src.dtype != dst.dtype:
            raise core.refuse(f"a copy of {jaxarray.shown(src)}, {src.dtype}, to {jaxarray.shown(dst)}, {dst.dtype}")
        if kernel().trial:
            kernel().trial.starts(self)
        if self.is_remote:
            self._start_remote(add)
        else:
            self._start_local(add)

    def _start_local(self, add: bool) -> None:
        lane = kernel().lane.fork("copy")
        move(lane, self.dst_ref, self.src_ref, add)
        self._signal(lane, "recv", None, None)
        numbers = self.src_ref.known()
        if numbers is not None and numbers[1].all() and not add:
            self.dst_ref.became(numbers[0])
        else:
            self.dst_ref.became(jaxarray.Array(None, 0, (), self.dst_ref.dtype))

    def _start_remote(self, add: bool) -> None:
        """The source is read, which the send semaphore says; later the destination is written, which the receive semaphore of
        the target says."""
        k = kernel()
        rank, core_at = device_rank(self.device_id, self.device_id_type)
        assert rank is not None
        if rank != k.rank.index:
            communicate()
        target = self.dst_ref.on(rank)
        target.storage = on_core(target.storage, core_at)
        target.storage.reach()
        lane = k.lane.fork("copy")
        flight = in_flight(lane, self.src_ref)
        move(lane, flight, self.src_ref, False)
        self._signal(lane, "send", None, None)
        if program.options().in_order_copies:
            k.rank.recording.assume("in_order_copies",
                                    "that copies from one device to the same other one arrive in the order in which they were started")
            arrivals = state()["arrivals"]
            if rank not in arrivals:
                arrivals[rank] = k.rank.new_lane(f"to{rank}", k.lane.block)
                arrivals[rank].stream = k.lane.stream
            arrivals[rank].after(lane)
            lane = arrivals[rank]
        else:
            k.rank.recording.note("remote copies arrive in any order")
        move(lane, target, flight, add)
        self._signal(lane, "recv", rank, core_at)

    def halves(self) -> Sequence[str]:
        return ("recv", "send") if self.is_remote else ("recv",)

    def half(self, which: str) -> Tuple[Any, Ref]:
        """The semaphore of the half, and the memory that it is about."""
        return (self.dst_sem, self.dst_ref) if which == "recv" else (self.src_sem, self.src_ref)

    def call(self, which: str) -> str:
        """How the author waits for it."""
        return f"wait_{which}()" if self.is_remote else "wait()"

    def _semaphore(self, which: str, starts: bool) -> Any:
        trial = kernel().trial
        return trial.semaphore(self, which, starts) if trial else self.half(which)[0]

    def _signal(self, lane: core.Lane, which: str, rank: Optional[int], core_at: Optional[int]) -> None:
        address, storage, number = cell(self._semaphore(which, True), rank, core_at)
        amount = self.amount(*self.half(which))
        if amount:
            lane.notify(address, CELL, "add", amount)
            account(storage, number, kernel().rank.index if rank is None else rank, amount, 0,
                    (which, core.place(), self.call(which)))

    def take(self, which: str) -> None:
        """Waits for one half."""
        trial = kernel().trial
        if trial is None or not trial.is_done(self, which):
            take(self._semaphore(which, False), self.amount(*self.half(which)))

    def wait(self) -> None:
        if self.is_remote:
            self.wait_send()
        self.wait_recv()

    def wait_recv(self) -> None:
        self.take("recv")

    def wait_send(self) -> None:
        if not self.is_remote:
            raise core.refuse("wait_send of a copy within the device")
        self.take("send")


def move(lane: core.Lane, dst: Any, src: Any, add: bool) -> None:
    if not add:
        jaxarray.copy_view(lane, dst, src)
        return
    for offsets, count, rows, strides in jaxarray.pieces(dst.shape, [(dst.strides, dst.dtype.itemsize), (src.strides, src.dtype.itemsize)]):
        lane.accumulate("add", jaxarray.span(dst, offsets[0], count, rows, strides[0]),
                        jaxarray.span(src, offsets[1], count, rows, strides[1]))


def in_flight(lane: core.Lane, ref: Ref) -> Array:
    """Memory for what has left its source and has not arrived: every copy has its own."""
    assert lane.stream is not None
    address = lane.stream.allocate(max(ref.size, 1), peal_name(ref.dtype))
    return Array(None, address, ref.shape, ref.dtype)


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopy:
    return AsyncCopy(src_ref, dst_ref, sem)


def make_async_remote_copy(src_ref: Any, dst_ref: Any, send_sem: Any, recv_sem: Any, device_id: Any,
                           device_id_type: Any = DeviceIdType.MESH) -> AsyncCopy:
    return AsyncCopy(src_ref, dst_ref, recv_sem, send_sem, device_id, device_id_type)


def async_copy(src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False) -> AsyncCopy:
    found = make_async_copy(src_ref, dst_ref, sem)
    found.start(priority, add=add)
    return found


def async_remote_copy(src_ref: Any, dst_ref: Any, send_sem: Any, recv_sem: Any, device_id: Any,
                      device_id_type: Any = DeviceIdType.MESH) -> AsyncCopy:
    found = make_async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type)
    found.start()
    return found


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """A copy that is waited for at once, by a semaphore that nothing else uses: done by the core."""
    for src, dst in zip(leaves(src_ref), leaves(dst_ref)):
        if src.shape != dst.shape or src.dtype != dst.dtype:
            raise core.refuse(f"a copy of {jaxarray.shown(src)}, {src.dtype}, to {jaxarray.shown(dst)}, {dst.dtype}")
        numbers = src.known()
        move(jaxarray.device_lane(), dst, src, add)
        dst.became(numbers[0] if numbers is not None and numbers[1].all() and not add else Array(None, 0, (), dst.dtype))
