"""The bytes of a transactional id's record, by hand: a transaction writes three.

The same bytes as `wire.declared` makes of the classes in `records`; a test compares them.
"""

from collections.abc import Collection
from struct import Struct
from typing import Final, NamedTuple

from appliance.coordinators.runtime.transaction_effects import Partition
from appliance.coordinators.transactions.records import WRITTEN, TransactionLogKey
from appliance.coordinators.transactions.states import EMPTY
from appliance.coordinators.transactions.transaction import NO_ID, Transaction
from appliance.wire.offset_messages import uvarint

_KEY_HEAD: Final = Struct(">hh")  # type, bytes of the id
_HEAD: Final = Struct(">hqhib")  # version, producer id, epoch, timeout, state
_TIMES: Final = Struct(">qq")
_INDEX: Final = Struct(">i")
_TAGGED_ID: Final = Struct(">BBq")  # number, 8 bytes
_TAGGED_VERSION: Final = Struct(">BBh")
_PREVIOUS, _NEXT, _VERSION = range(3)
_NULL: Final = b"\0"
_NO_TAGS: Final = b"\0"


def key_bytes(transactional_id: str) -> bytes:
    """The record's key."""
    encoded = transactional_id.encode()
    return _KEY_HEAD.pack(TransactionLogKey.TYPE, len(encoded)) + encoded


class EncodedPartitions(NamedTuple):
    """The partitions of a transaction, encoded: an array of so many topics. A topic may be there
    several times."""

    partitions: frozenset[Partition]
    topics: int
    body: bytes


NOBODY: Final = EncodedPartitions(frozenset(), 0, b"")
FEW: Final = 64
"""Partitions that are encoded anew for each record."""


def members(
    before: EncodedPartitions, to: Transaction, more: EncodedPartitions | None = None
) -> EncodedPartitions:
    """Those of the next record, more than FEW. more: what it adds to its transaction, encoded."""
    partitions = to.partitions
    if partitions is before.partitions:
        return before
    if more is not None:
        rest = partitions - more.partitions
        kept = before if rest == before.partitions else _encoded(rest)
    elif before.partitions and before.partitions < partitions:
        kept, more = before, _encoded(partitions - before.partitions)
    else:
        kept, more = NOBODY, _encoded(partitions)
    return EncodedPartitions(partitions, kept.topics + more.topics, kept.body + more.body)


def _encoded(partitions: frozenset[Partition]) -> EncodedPartitions:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    body = b"".join(topic_bytes(topic, found) for topic, found in topics.items())
    return EncodedPartitions(partitions, len(topics), body)


def value_bytes(of: Transaction, known: EncodedPartitions = NOBODY) -> bytes:
    """The record's value in version `WRITTEN`. known: its partitions, where they are many."""
    head = _HEAD.pack(WRITTEN, of.producer_id, of.epoch, of.timeout_ms, of.state)
    if of.state == EMPTY:
        partitions = _NULL
    elif known.partitions is of.partitions:
        partitions = uvarint(known.topics + 1) + known.body
    else:
        partitions = _partitions(of)
    tags, count = b"", 0
    if of.previous_id != NO_ID:
        tags, count = _TAGGED_ID.pack(_PREVIOUS, 8, of.previous_id), 1
    if of.next_id != NO_ID:
        tags, count = tags + _TAGGED_ID.pack(_NEXT, 8, of.next_id), count + 1
    if of.version:
        tags, count = tags + _TAGGED_VERSION.pack(_VERSION, 2, of.version), count + 1
    times = _TIMES.pack(of.updated_ms, of.started_ms)
    return head + partitions + times + uvarint(count) + tags


def _partitions(of: Transaction) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(of.partitions):
        topics.setdefault(topic, []).append(index)
    out = uvarint(len(topics) + 1)
    for topic, found in topics.items():
        name = topic.encode()
        out += uvarint(len(name) + 1) + name + uvarint(len(found) + 1)
        for index in found:
            out += _INDEX.pack(index)
        out += _NO_TAGS
    return out


def topic_bytes(topic: str, indexes: Collection[int]) -> bytes:
    """One topic of a transaction with these partitions."""
    name = topic.encode()
    out = uvarint(len(name) + 1) + name + uvarint(len(indexes) + 1)
    return out + b"".join(map(_INDEX.pack, indexes)) + _NO_TAGS
