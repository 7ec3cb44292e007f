"""How old the oldest record of each topic is, by its own timestamp: read from the heads of the
files that an appliance of this host keeps, a few bytes of each partition.

A partition that was trimmed in the middle of a segment is told to be as old as the segment.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from struct import Struct
from typing import Final

MOST: Final = 2000
"""Partitions that are looked at in one round; of topics beyond that nothing is known."""
_HEAD: Final = Struct(">16xb10xq")
"""Of a batch (KIP-98): its magic, and the timestamp of its first record in ms."""
_MAGIC: Final = 2


def oldest_ms(log_dirs: Sequence[str], topics: Mapping[str, int]) -> dict[str, int]:
    """Topic → timestamp of its oldest record in ms, of topics that have one. topics: how many
    partitions each has."""
    found: dict[str, int] = {}
    left = MOST
    for topic, partitions in topics.items():
        left -= partitions
        if left < 0:
            break
        stamps = (_stamp(log_dirs, f"{topic}-{n}") for n in range(partitions))
        known = [stamp for stamp in stamps if stamp is not None and stamp >= 0]
        if known:
            found[topic] = min(known)
    return found


def _stamp(log_dirs: Sequence[str], name: str) -> int | None:
    for folder in log_dirs:
        path = os.path.join(folder, name)
        with suppress(OSError):
            stamp = _first(path, sorted(one for one in os.listdir(path) if one.endswith(".log")))
            if stamp is not None:
                return stamp
    return None


def _first(folder: str, segments: Iterable[str]) -> int | None:
    for segment in segments:
        with open(os.path.join(folder, segment), "rb") as file:
            head = file.read(_HEAD.size)
        if len(head) == _HEAD.size:
            magic, stamp = _HEAD.unpack(head)
            if magic == _MAGIC:
                return int(stamp)
    return None
