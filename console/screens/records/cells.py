"""A record as a row of the table, and as lines that show it whole."""

import time
from typing import Final

from console.model.decoding.choosing import Decoders
from console.model.decoding.decoded import HEX, Decoded
from console.model.records.found import Found
from console.model.records.leaf import Leaf
from console.screens.rows import Cell, Column
from console.show.figures import NOT_KNOWN, in_bytes

_WIDE: Final = 100
COLUMNS: Final = (
    Column("PART", 4, right=True),
    Column("OFFSET", 11, right=True),
    Column("TIME", 12, below_width=_WIDE),
    Column("TIME", 19, from_width=_WIDE),
    Column("KEY", 14),
    Column("VALUE", 0),
    Column("HEADERS", 7, right=True, from_width=120),
    Column("SIZE", 7, right=True, from_width=_WIDE),
)
_MOST: Final = 400
"""Characters of a cell that may be seen."""


def cells(one: Found, decoders: Decoders) -> tuple[Cell, ...]:
    """The cells of a record's row."""
    key, value = (
        None if data is None else _whole_letters(data, len(data) < size)
        for data, size in ((one.key, one.key_size), (one.value, one.value_size))
    )
    return (
        str(one.partition), str(one.offset), (_clock(one.timestamp), "dim"),
        (moment(one.timestamp), "dim"),
        _words(decoders.key(one.topic, key)), _words(decoders.value(one.topic, key, value)),
        str(one.headers or ""),
        in_bytes(max(0, one.value_size)),
    )  # fmt: skip


def by(one: Found, column: int) -> str | float:
    """The sort key of a column."""
    values: tuple[str | float, ...] = (
        one.partition, one.offset, *[-1 if one.timestamp is None else one.timestamp] * 2,
        repr(one.key), repr(one.value), one.headers, one.value_size,
    )  # fmt: skip
    return values[column]


def record_lines(leaf: Leaf, width: int, *, digits: bool = False, wraps: bool = True) -> list[Cell]:
    """A record, whole, as the lines of a table. width: in characters. digits: as bytes. wraps: long
    lines go on below."""
    found: list[Cell] = [(f"{name:<13} {what}", "dim") for name, what in leaf.facts]
    for part in leaf.digits if digits else leaf.decoded:
        found += ["", (part.title, "chart")]
        for line in part.lines:
            if not wraps or len(line) <= width // 2:
                found.append(line[: width * 2])  # the table cuts it where it ends, and says so
                continue
            # A letter may be two cells wide: who has such letters wraps at half of the width.
            size = width if line.isascii() else width // 2
            found += [line[at : at + size] for at in range(0, len(line), size)]
    return found


def moment(timestamp: int | None) -> str:
    """`11-22 18:04:05.123` of this year, else `2013-01-31 18:04:05`; of times that no calendar has
    the number."""
    if timestamp is None:
        return NOT_KNOWN
    try:
        then = time.localtime(timestamp // 1000)
    except (OverflowError, OSError, ValueError):
        return str(timestamp)
    if not 0 < then.tm_year <= 9999:
        return str(timestamp)
    if then.tm_year != time.localtime().tm_year:
        return time.strftime("%Y-%m-%d %H:%M:%S", then)
    return time.strftime("%m-%d %H:%M:%S", then) + f".{timestamp % 1000:03}"


def _clock(timestamp: int | None) -> str:
    """In twelve characters: `18:04:05.123` of today, else `11-22 18:04`, or the date."""
    told = moment(timestamp)
    if told.startswith(time.strftime("%m-%d ")):
        return told[6:]
    return told[:11] if told[2:3] == "-" else told[:10] if told[4:5] == "-" else told


def _whole_letters(data: bytes, is_cut: bool) -> bytes:
    """Cuts an incomplete last letter off: a cut may lie within a letter of UTF-8, of four bytes at
    most.
    """
    for back in range(1, 4) if is_cut else ():
        if data[-back] >= 0xC0:  # a letter begins here
            return data[:-back]
    return data


def _words(said: Decoded | None) -> Cell:
    if said is None:
        return "null", "dim"
    if said.decoder == HEX:
        return f"0x{said.data[:_MOST].hex()}", "dim"
    return said.line[:_MOST]
