"""How far groups are behind, in shared memory: a region for each ioproc, written by it every few
seconds as a whole.

A row is one group's topic: by how many records its committed offsets are behind what can be read,
all partitions together. There are so many rows; when there are more groups, those that are furthest
behind have them, and it is said how many are left out. A region is read whole or not at all (a
seqlock, x86-64 order); a successor of a dead ioproc writes it anew.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

ROWS: Final = 336
_HEADER: Final = 8
_VERSION: Final = 0
_COUNT: Final = 1
_LEFT_OUT: Final = 2

_LAG: Final = 0
_LENGTHS: Final = 1  # of the group, and of the topic << 32
_COMMITTED: Final = 2
_TEXTS_AT: Final = 3
_GROUP_BYTES: Final = 256
_TOPIC_BYTES: Final = 256
_ROW: Final = _TEXTS_AT + (_GROUP_BYTES + _TOPIC_BYTES) // 8
_TRIES: Final = 100


class Lag(NamedTuple):
    """group: cut after 256 bytes. records: 0 or more. committed: the sum of its offsets."""

    records: int
    group: str
    topic: str
    committed: int = 0


class LagTable:
    """The table over `bytes_needed(...)` bytes, all zero at first; untouched rows cost nothing."""

    __slots__ = ("_regions",)

    def __init__(self, memory: memoryview, ioprocs: int) -> None:
        assert len(memory) >= self.bytes_needed(ioprocs)
        size = self.bytes_needed(1)
        parts = [memory[n * size : (n + 1) * size] for n in range(ioprocs)]
        self._regions = [(part.cast("q"), part) for part in parts]

    @staticmethod
    def bytes_needed(ioprocs: int) -> int:
        """Size of the table's memory in bytes."""
        return ioprocs * (_HEADER + ROWS * _ROW) * 8

    def write(self, region: int, lags: Sequence[Lag], left_out: int) -> None:
        """Its ioproc: this is all there is, ROWS at most."""
        assert len(lags) <= ROWS
        words, memory = self._regions[region]
        words[_VERSION] += 1 + (words[_VERSION] & 1)
        for row, one in enumerate(lags):
            at = _HEADER + row * _ROW
            group = one.group.encode(errors="replace")[:_GROUP_BYTES]
            topic = one.topic.encode()[:_TOPIC_BYTES]
            words[at + _LAG] = one.records
            words[at + _COMMITTED] = one.committed
            words[at + _LENGTHS] = len(topic) << 32 | len(group)
            start = (at + _TEXTS_AT) * 8
            memory[start : start + len(group)] = group
            start += _GROUP_BYTES
            memory[start : start + len(topic)] = topic
        words[_COUNT] = len(lags)
        words[_LEFT_OUT] = left_out
        words[_VERSION] += 1

    def read(self) -> tuple[dict[tuple[str, str], int], int]:
        """((group, topic) → records behind, how many groups' topics are left out) of all
        regions."""
        found, left_out = self.rows()
        return {(one.group, one.topic): one.records for one in found}, left_out

    def rows(self) -> tuple[list[Lag], int]:
        """(every group's topics, how many of them are left out) of all regions. A region whose
        ioproc is writing, or died of it, says nothing."""
        found: list[Lag] = []
        left_out = 0
        for words, memory in self._regions:
            for _ in range(_TRIES):
                version = words[_VERSION]
                told, missing = _read(words, memory)
                if not version & 1 and words[_VERSION] == version:
                    found += told
                    left_out += missing
                    break
        return found, left_out


def _read(words: memoryview, memory: memoryview) -> tuple[list[Lag], int]:
    found = []
    for row in range(min(words[_COUNT], ROWS)):
        at = _HEADER + row * _ROW
        topic, group = divmod(words[at + _LENGTHS], 1 << 32)
        start = (at + _TEXTS_AT) * 8
        behind = start + _GROUP_BYTES
        texts = (memory[start : start + group], memory[behind : behind + topic])
        name, other = (bytes(one).decode(errors="replace") for one in texts)
        found.append(Lag(words[at + _LAG], name, other, words[at + _COMMITTED]))
    return found, words[_LEFT_OUT]
