"""A time at which no transaction was being decided, for a restore to a point in time.

Between the record that decides a transaction and the one that completes it its markers are written,
in several partitions and by processes whose clocks were read a little earlier or later. At a time
between such spans every transaction is either whole, everywhere, or open.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from appliance.base.errors import PeerError
from appliance.coordinators.transactions.records import RECORDS, TransactionLogKey
from appliance.coordinators.transactions.states import PREPARE_ABORT, PREPARE_COMMIT
from appliance.wire.batch_header import CONTROL_BIT, HEADER, HEADER_SIZE, LENGTH_PREFIX
from appliance.wire.records import iter_records

MARGINS_MS: Final = (50, 20, 5, 1)
"""How far from each span it should be, the best first."""
FARTHEST_MS: Final = 10_000
_NEVER: Final = 1 << 62


class Step(NamedTuple):
    """A record of a coordinator: where a transactional id is since then. state: -1: forgotten."""

    ms: int
    transactional_id: str
    producer_id: int
    state: int


def steps(batch: bytes | memoryview) -> Iterator[Step]:
    """Those of one batch of `__transaction_state`."""
    if HEADER.unpack_from(batch)[5] & CONTROL_BIT:
        return
    for record in iter_records(memoryview(batch)):
        try:
            found = RECORDS.decode(record.key, record.value)
        except PeerError:
            continue
        if found is None or not isinstance(found[0], TransactionLogKey):
            continue
        key, value = found
        producer, state = (value.producer_id, value.transaction_status) if value else (-1, -1)
        yield Step(record.timestamp, key.transactional_id, producer, state)


def steps_of(segment: bytes) -> Iterator[Step]:
    """Those of a whole segment."""
    view, at = memoryview(segment), 0
    while at + HEADER_SIZE <= len(view):
        size = HEADER.unpack_from(view, at)[1] + LENGTH_PREFIX
        yield from steps(view[at : at + size])
        at += size


def time_before(to_ms: int, taken: Iterable[Step]) -> int:
    """The latest time up to `to_ms` that is in no span; `to_ms` when the ten seconds before it
    have none. taken: in the order of each partition."""
    spans = sorted(_spans(taken), reverse=True)
    for margin in MARGINS_MS:
        at = to_ms
        for end, begin in spans:
            if begin - margin <= at <= end + margin:
                at = begin - margin - 1
        if at >= to_ms - FARTHEST_MS and not any(
            begin - margin <= at <= end + margin for end, begin in spans
        ):
            return at
    return to_ms


def _spans(taken: Iterable[Step]) -> Iterator[tuple[int, int]]:
    """(end, begin) of each decision."""
    begun: dict[str, int] = {}
    for step in taken:
        begin = begun.pop(step.transactional_id, -1)
        if step.state in (PREPARE_COMMIT, PREPARE_ABORT):
            begun[step.transactional_id] = step.ms if begin < 0 else begin
        elif begin >= 0:
            yield max(step.ms, begin), begin
    yield from ((_NEVER, begin) for begin in begun.values())
