"""Producers of a partition as they stand in an answer of DescribeProducers (61, version 0), and
that answer around them: its home makes the rows, and nobody looks into them again.

A row: the id (int64), epoch (int32), last sequence (int32), last timestamp (int64, ms), epoch of
the coordinator that ended its last transaction (int32), where its open one began (int64); -1 where
there is none; no tagged fields.
"""

from collections.abc import Generator, Iterable, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

from appliance.wire.varint import uvarint

Row = tuple[int, int, int, int, int, int]
"""Of one producer, in the order above."""

ROW: Final = Struct(">qiiqiqx")
SIZE: Final = ROW.size
"""Bytes of one of them."""
_PARTITION: Final = Struct(">ih")
_THROTTLE: Final = bytes(4)
_NO_TAGS: Final = b"\0"


class DescribedProducers(NamedTuple):
    """The DescribeProducers result of one partition. rows: bytes of `encode`, in pieces."""

    partition: int
    code: int
    message: str | None
    rows: Sequence[bytes]


def encode(rows: Iterable[Row]) -> bytes:
    """The rows of producers."""
    return b"".join([ROW.pack(*row) for row in rows])


def answer(topics: Sequence[tuple[str, Sequence[DescribedProducers]]]) -> list[Any]:
    """The body of the answer, in pieces. topics: by name, as they were asked for."""
    out: list[bytes] = []
    for _ in put_answer(out, topics):
        pass
    return out


def put_answer(
    out: list[bytes], topics: Sequence[tuple[str, Sequence[DescribedProducers]]]
) -> Generator[None, None, None]:
    """Appends the pieces of `answer` to `out`, and stops after each partition."""
    out += [_THROTTLE, uvarint(len(topics) + 1)]
    for name, partitions in topics:
        out += [_text(name), uvarint(len(partitions) + 1)]
        for one in partitions:
            out += [_PARTITION.pack(one.partition, one.code), _text(one.message)]
            out.append(uvarint(sum(map(len, one.rows)) // SIZE + 1))
            out += one.rows
            out.append(_NO_TAGS)
            yield
        out.append(_NO_TAGS)
    out.append(_NO_TAGS)


def _text(value: str | None) -> bytes:
    if value is None:
        return uvarint(0)
    encoded = value.encode()
    return uvarint(len(encoded) + 1) + encoded
