"""Groups as their coordinators see them, in shared memory: a region for each ioproc, written by it
every few seconds as a whole.

A row is one group's topic: by how many records its committed offsets are behind what can be read,
all partitions together. There are so many rows; when there are more groups, those that are furthest
behind have them, and it is said how many are left out. Behind them a shorter row for each group
that has members, those with most when there are more; the header says how many groups are in which
state. A region is read whole or not at all (a seqlock, x86-64 order); a successor of a dead ioproc
writes it anew.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

ROWS: Final = 336
STATES: Final = (
    "Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Dead", "Assigning",
    "Reconciling",
)  # fmt: skip
"""Kafka's words, in the order of the header's counts. None of ours is Dead: it is gone then."""

_HEADER: Final = 16
_VERSION: Final = 0
_COUNT: Final = 1
_LEFT_OUT: Final = 2
_GROUPS: Final = 3  # rows of groups
_GROUPS_LEFT_OUT: Final = 4
_STATES_AT: Final = 8

_LAG: Final = 0
_LENGTHS: Final = 1  # of the group, and of the topic << 32
_COMMITTED: Final = 2
_TEXTS_AT: Final = 3
_GROUP_BYTES: Final = 256
_TOPIC_BYTES: Final = 256
_ROW: Final = _TEXTS_AT + (_GROUP_BYTES + _TOPIC_BYTES) // 8
_GROUPS_AT: Final = _HEADER + ROWS * _ROW
_MEMBERS: Final = 0
_LENGTH: Final = 1
_NAME_AT: Final = 2
_GROUP_ROW: Final = _NAME_AT + _GROUP_BYTES // 8
_TRIES: Final = 100

_T = TypeVar("_T")

assert _STATES_AT + len(STATES) <= _HEADER, "each state has a word"


class Lag(NamedTuple):
    """group: cut after 256 bytes. records: 0 or more. committed: the sum of its offsets."""

    records: int
    group: str
    topic: str
    committed: int = 0


class Members(NamedTuple):
    """How many a group has, and who is about to join it. group: cut after 256 bytes."""

    members: int
    group: str


class GroupTotals(NamedTuple):
    """states: state → how many groups are in it. members: of groups that have any. left_out: how
    many of these are not among them."""

    states: Mapping[str, int]
    members: Sequence[Members]
    left_out: int


NO_GROUPS: Final = GroupTotals(MappingProxyType({}), (), 0)


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
        return ioprocs * (_GROUPS_AT + ROWS * _GROUP_ROW) * 8

    def write_lags(
        self, region: int, lags: Sequence[Lag], left_out: int, groups: GroupTotals = NO_GROUPS
    ) -> None:
        """Its ioproc: this is all there is, ROWS of each at most."""
        assert len(lags) <= ROWS and len(groups.members) <= ROWS
        assert groups.states.keys() <= set(STATES), f"a state without a word: {groups.states}"
        words, memory = self._regions[region]
        words[_VERSION] += 1 + (words[_VERSION] & 1)
        for row, one in enumerate(lags):
            at = _HEADER + row * _ROW
            group = _cut(one.group)
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
        _write_groups(words, memory, groups)
        words[_VERSION] += 1

    def read(self) -> tuple[dict[tuple[str, str], int], int]:
        """((group, topic) → records behind, how many groups' topics are left out) of all
        regions."""
        found, left_out = self.rows()
        return {(one.group, one.topic): one.records for one in found}, left_out

    def rows(self) -> tuple[list[Lag], int]:
        """(every group's topics, how many of them are left out) of all regions. A region whose
        ioproc is writing, or died of it, says nothing."""
        told = list(self._each(_read))
        return [one for lags, _ in told for one in lags], sum(missing for _, missing in told)

    def groups(self) -> GroupTotals:
        """The groups of all regions, every state with its count."""
        told = list(self._each(_read_groups))
        return GroupTotals(
            {state: sum(one.states[state] for one in told) for state in STATES},
            [one for groups in told for one in groups.members],
            sum(one.left_out for one in told),
        )

    def _each(self, read: Callable[[memoryview, memoryview], _T]) -> Iterable[_T]:
        for words, memory in self._regions:
            for _ in range(_TRIES):
                version = words[_VERSION]
                told = read(words, memory)
                if not version & 1 and words[_VERSION] == version:
                    yield told
                    break


def _cut(group: str) -> bytes:
    return group.encode(errors="replace")[:_GROUP_BYTES]


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


def _write_groups(words: memoryview, memory: memoryview, groups: GroupTotals) -> None:
    for at, state in enumerate(STATES, _STATES_AT):
        words[at] = groups.states.get(state, 0)
    for row, one in enumerate(groups.members):
        at = _GROUPS_AT + row * _GROUP_ROW
        name = _cut(one.group)
        words[at + _MEMBERS] = one.members
        words[at + _LENGTH] = len(name)
        start = (at + _NAME_AT) * 8
        memory[start : start + len(name)] = name
    words[_GROUPS] = len(groups.members)
    words[_GROUPS_LEFT_OUT] = groups.left_out


def _read_groups(words: memoryview, memory: memoryview) -> GroupTotals:
    states = dict(zip(STATES, words[_STATES_AT : _STATES_AT + len(STATES)], strict=True))
    members = []
    for row in range(min(words[_GROUPS], ROWS)):
        at = _GROUPS_AT + row * _GROUP_ROW
        start = (at + _NAME_AT) * 8
        name = bytes(memory[start : start + words[at + _LENGTH]]).decode(errors="replace")
        members.append(Members(words[at + _MEMBERS], name))
    return GroupTotals(states, members, words[_GROUPS_LEFT_OUT])
