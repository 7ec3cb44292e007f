"""All shared memory of an appliance: one segment for tables and rings, one per receive arena.

Segments are created with posix_ipc, mode 0600, under a random name that is unlinked before anyone
else can use it; children inherit the mapping by being forked. The tables come first in theirs: who
may look into this process finds it among its descriptors, since a mapping keeps one
(`observer/door.py`), and reads them without asking. /dev/shm is asked first whether it
holds what we may touch, since touching more kills the process that does (SIGBUS).
"""

import mmap
import os
import secrets
from collections.abc import Iterator
from typing import Final

import posix_ipc

from appliance.ring.process_table import CONTROL, Peer, linked, peers_of
from appliance.ring.ring import clear_ring, ring_bytes
from appliance.ring.settings_area import SettingsArea
from appliance.ring.tables import SEGMENT, Shape, Tables
from appliance.shell.log import WARNING, Log
from appliance.shell.seat import RingPair
from appliance.supervisor.layout import MIB, CannotStart, Layout

_LINE: Final = 4096  # every part begins on a page of its own
_LAST_WORDS: Final = 512
LEAST_ARENA: Final = 8 * MIB


class NoMemory(CannotStart):
    """Shared memory is too small even for the least; the text says what to do."""


class SharedMemory:
    """Tables, rings, arenas and the last words of each child."""

    def __init__(self, layout: Layout, log: Log, *, shm_dir: str = "/dev/shm") -> None:
        self.layout = layout
        self.peers = peers_of(layout.ioprocs, layout.netprocs)
        parts = self._plane_parts()
        plane_bytes = sum(parts)
        arena_bytes = fit_arenas(layout, plane_bytes, _available(shm_dir), log)
        plane = _segment(plane_bytes, SEGMENT)
        cut = iter(_cut(plane, parts))
        self.tables = tables = Tables(next(cut), self._shape())
        self.processes, self.partitions = tables.processes, tables.partitions
        self.quotas, self.counters = tables.quotas, tables.counters
        self.clients, self.lags = tables.clients, tables.lags
        self.pushes, self.events = tables.pushes, tables.events
        self.settings = SettingsArea(next(cut), self.processes)
        self._last_words = {peer: next(cut) for peer in self.peers}
        self._rings = {pair: next(cut) for pair in self._pairs()}
        self.arenas = tuple(_segment(arena_bytes) for _ in range(layout.netprocs))

    def rings_of(self, me: Peer) -> dict[Peer, RingPair]:
        """The rings of one place: to and from every peer that it is linked with."""
        return {
            peer: RingPair(out=self._rings[me, peer], into=self._rings[peer, me])
            for peer in self.peers
            if linked(me, peer)
        }

    def clear_rings_of(self, me: Peer) -> None:
        """Empty both rings of every pair with `me`: nobody holds an end of them at this moment."""
        for (source, target), memory in self._rings.items():
            if me in (source, target):
                clear_ring(memory, self.layout.ring_slots)

    def say_last_words(self, me: Peer, text: str) -> None:
        """A child that ends by an exception leaves its cause here."""
        words = text.encode()[:_LAST_WORDS]
        self._last_words[me][:_LAST_WORDS] = words.ljust(_LAST_WORDS, b"\0")

    def take_last_words(self, me: Peer) -> str:
        """Returns and clears the last message of a child; empty when it was killed."""
        words = bytes(self._last_words[me][:_LAST_WORDS]).rstrip(b"\0")
        self._last_words[me][:_LAST_WORDS] = bytes(_LAST_WORDS)
        return words.decode(errors="replace")

    def _shape(self) -> Shape:
        layout = self.layout
        return Shape(
            layout.ioprocs, layout.netprocs, layout.partition_rows, layout.quota_windows,
            layout.quota_rows, layout.push_rows,
        )  # fmt: skip

    def _pairs(self) -> Iterator[tuple[Peer, Peer]]:
        return ((a, b) for a in self.peers for b in self.peers if linked(a, b))

    def _plane_parts(self) -> list[int]:
        layout = self.layout
        parts = [Tables.bytes_needed(self._shape())]
        parts.append(SettingsArea.BYTES)
        parts += [_LAST_WORDS] * len(self.peers)
        for a, b in self._pairs():
            parts.append(ring_bytes(layout.ring_slots, _payload_bytes(layout, a, b)))
        return [(part + _LINE - 1) // _LINE * _LINE for part in parts]


def _payload_bytes(layout: Layout, source: Peer, target: Peer) -> int:
    if CONTROL in (source.kind, target.kind):
        return layout.payload_bytes
    if source.kind == target.kind:
        return 0  # markers are numbers
    return layout.group_payload_bytes


def fit_arenas(layout: Layout, plane_bytes: int, available: int, log: Log) -> int:
    """Bytes of each arena so that everything fits into `available`. Raises NoMemory below 8 MiB
    each."""
    spare = available - available // 16 - plane_bytes
    each = min(layout.arena_bytes, spare // layout.netprocs // MIB * MIB)
    if each < min(LEAST_ARENA, layout.arena_bytes):
        raise NoMemory(
            f"/dev/shm has {available // MIB} MiB free; at least "
            f"{(plane_bytes + layout.netprocs * LEAST_ARENA) // MIB + 1} MiB are needed. "
            "Enlarge it (mount -o remount,size=512M /dev/shm) or remove what fills it."
        )
    if each < layout.arena_bytes:
        log.event(
            WARNING,
            "arena-shrunk",
            asked_mib=layout.arena_bytes // MIB,
            given_mib=each // MIB,
            cause="/dev/shm is small",
        )
    return each


def _available(shm_dir: str) -> int:
    stat = os.statvfs(shm_dir)
    return stat.f_bavail * stat.f_frsize


def _segment(size: int, name: str = "penstock-") -> memoryview:
    shared = posix_ipc.SharedMemory(
        f"/{name}{secrets.token_hex(16)}", posix_ipc.O_CREX, mode=0o600, size=size
    )
    try:
        shared.unlink()
        return memoryview(mmap.mmap(shared.fd, size))
    finally:
        shared.close_fd()


def _cut(plane: memoryview, parts: list[int]) -> Iterator[memoryview]:
    at = 0
    for part in parts:
        yield plane[at : at + part]
        at += part
