"""One record as lines to read: what is known of it, then key, headers and value.

Lines are as long as they come, escaped, and no more than so many of each part: who shows them wraps
or cuts them. What is left out is said.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from console.model.decoding.choosing import Decoders
from console.model.decoding.decoded import KEY, VALUE, Decoded, Tried, Unfit, hexed
from console.model.decoding.plain_forms import likely_text
from console.model.records.one import Whole

LINES_MOST: Final = 50_000
"""Lines of a key, a value or a header that are shown."""


_TITLE_MOST: Final = 200


@dataclass(slots=True, frozen=True)
class Part:
    """title: a line above it. lines: what it says; none for null."""

    title: str
    lines: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class Leaf:
    """whole: the record. facts: (name, what) of it, in order. decoded, digits: its parts as
    decoders read them and as bytes. tried: (KEY or VALUE, what became of a decoder)."""

    whole: Whole
    facts: tuple[tuple[str, str], ...]
    decoded: tuple[Part, ...]
    digits: tuple[Part, ...]
    tried: tuple[tuple[str, Tried], ...]


def leaf(whole: Whole, decoders: Decoders, escaped: Callable[[str], str]) -> Leaf:
    """A record's lines. escaped: makes a line fit to be shown."""
    record = whole.record
    parts = [
        ("Key", decoders.key(record.topic, record.key)),
        *((f"Header {name}", _header(data)) for name, data in record.headers),
        ("Value", decoders.value(record.topic, record.key, record.value)),
    ]
    return Leaf(
        whole, tuple(_facts(whole)),
        tuple(_part(title, one, escaped) for title, one in parts),
        tuple(_part(title, one and hexed(one.data), escaped) for title, one in parts),
        tuple(
            (part, one)
            for part in (VALUE, KEY)
            for one in decoders.why(record.topic, part, record.key, record.value)
        ),
    )  # fmt: skip


def _header(data: bytes | None) -> Decoded | None:
    if data is None:
        return None
    try:
        return likely_text(data)
    except Unfit as why:
        return hexed(data, str(why))


def _part(title: str, said: Decoded | None, escaped: Callable[[str], str]) -> Part:
    title = escaped(title[:_TITLE_MOST])
    if said is None:
        return Part(f"{title}  null", ())
    data = said.data
    told = [escaped(line) for line in islice(said.lines(), LINES_MOST + 1)]
    size = f"{len(data):,} byte{'s'[: len(data) != 1]}"
    form = f"{said.decoder}  {escaped(said.reason)}"
    if len(told) > LINES_MOST:
        told[-1] = f"… and more than these {LINES_MOST:,} lines: an export has all lines"
    return Part(f"{title}  {size}  {form}", tuple(told))


def _facts(whole: Whole) -> Iterable[tuple[str, str]]:
    record, batch = whole.record, whole.batch
    yield "Place", f"{record.topic}  partition {record.partition}  offset {record.offset}"
    if record.timestamp is None:
        yield "Timestamp", "none"
    else:
        yield (
            "Timestamp",
            (f"{_moment(record.timestamp)}{record.timestamp} ms  {whole.timestamp_type}"),
        )
    if whole.leader_epoch is not None:
        yield "Leader epoch", str(whole.leader_epoch)
    if batch is None:
        yield (
            "Batch",
            "not known: its leader is asked by a request of our own, not over SASL",
        )
        return
    yield (
        "Batch",
        (
            f"offset {batch.first} on, {batch.records} record{'s'[: batch.records != 1]},"
            f" {batch.size:,} bytes, compression {batch.compression}"
        ),
    )
    if batch.producer_id is not None:
        kind = "  in a transaction" if batch.is_transactional else ""
        yield "Producer", f"id {batch.producer_id}  epoch {batch.producer_epoch}{kind}"


def _moment(timestamp: int) -> str:
    try:
        then = datetime.fromtimestamp(timestamp / 1000, UTC).astimezone()
        return f"{then.isoformat(' ', 'milliseconds')}  "
    except (OverflowError, OSError, ValueError):
        return ""
