"""A place found with nothing but the files is the place that a scan of the whole file finds."""

from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.handlers.exchange import Route
from appliance.netproc.files.fetch_cursors import FetchCursors
from appliance.netproc.files.segment_files import SegmentFiles
from appliance.ring import partition_table as columns
from appliance.ring.partition_table import PartitionTable
from appliance.wire.batch import NewRecord, build_batch

LAYOUT = 3
ROUTE = Route(0, 0, "flights", b"f" * 16, 0, 0)
TABLE = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(2))), 2)
TABLE.set(0, columns.LAYOUT, LAYOUT)


class World:
    """Segments in a folder: [(base offset, end offset, position, length)] of each one's batches."""

    def __init__(self, root):
        self.folder = Path(root) / "flights-0"
        self.folder.mkdir()
        self.segments = SegmentFiles(TABLE, [str(root)])
        self.cursors = FetchCursors()
        self.end = self.base = self.size = 0

    def write(self, counts, first=0, entry_every=1, end=None):
        """A segment with batches of so many records; every so manieth has an entry in its index."""
        batches, offset, out, index = [], first, b"", array("i")
        for number, count in enumerate(counts):
            records = [NewRecord(1, None, b"v" * (7 * count % 50)) for _ in range(count)]
            batch = build_batch(records, base_offset=offset)
            batches.append((offset, offset + count, len(out), len(batch)))
            if number and not number % entry_every:
                index.extend((offset + count - 1 - first, len(out)))
            out += batch
            offset += count
        index.byteswap()
        (self.folder / f"{first:020d}.log").write_bytes(out)
        (self.folder / f"{first:020d}.index").write_bytes(index.tobytes())
        self.base, self.end, self.size = first, offset, len(out)
        return batches

    def row(self, **changes):
        found = [0] * columns.COLUMNS
        found[columns.STATUS] = columns.ONLINE
        found[columns.LAYOUT] = LAYOUT
        found[columns.HIGH_WATERMARK] = found[columns.LOG_END] = self.end
        found[columns.VISIBLE_SEGMENT] = self.base
        found[columns.VISIBLE_POSITION] = self.size
        for name, value in changes.items():
            found[getattr(columns, name)] = value
        return found

    def told(self, position, length, segment=0):
        self.cursors.remember(0, segment, position, length, LAYOUT)

    def locate(self, offset, max_bytes, limit=None, **changes):
        """(segment, position, length, length of the first batch)."""
        row = self.row(**changes)
        limit = row[columns.HIGH_WATERMARK] if limit is None else limit
        found = self.cursors.locate(self.segments, ROUTE, row, offset, limit, max_bytes)
        if found is None:
            return None
        names = {one.fd: key[1] for key, one in self.segments._open.items()}
        return names[found[0].fd], *found[1:]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=40),
    known=st.integers(0, 39),
    length=st.integers(0, 5),
    ask=st.integers(0, 300),
    max_bytes=st.integers(0, 3000),
    entry_every=st.integers(1, 8),
)
def test_a_glance_is_whole_batches_that_a_scan_finds_or_nothing(
    tmp_path_factory, counts, known, length, ask, max_bytes, entry_every
):
    world = World(tmp_path_factory.mktemp("cursor"))
    batches = world.write(counts, entry_every=entry_every)
    begin = known % len(batches)
    told = batches[begin : begin + length]
    world.told(batches[begin][2], sum(batch[3] for batch in told))
    found = world.locate(ask, max_bytes)
    if ask >= world.end or ask < batches[begin][0]:
        assert found is None
        return
    at = next(n for n, batch in enumerate(batches) if batch[1] > ask)
    position, first = batches[at][2:]
    room = world.size - position
    if found is None:
        assert max_bytes < room, "all of it could be told"
        return
    assert found[:2] == (0, position)
    assert found[3] == first
    ends = [batch[2] + batch[3] - position for batch in batches[at:]]
    assert found[2] in ends, "whole batches"
    assert found[2] == first or found[2] <= max_bytes
    if room <= max_bytes:
        assert found[2] == room
    elif first < max_bytes:
        assert found[2] >= max_bytes // 2
    assert world.locate(ask, max_bytes) == found, "from there again"
    following = (
        ask
        if found[2] < first
        else next(b for b in batches[at:] if b[2] == position + first)[0]
        if first < room
        else -1
    )
    if following > 0:
        again = world.locate(following, max_bytes)
        assert again is None or again[1] == position + first, "the client took one batch only"


def test_a_reader_goes_through_all_segments_without_asking(world):
    every = []
    for first in (0, 120, 240):
        every += world.write([3] * 40, first, entry_every=2)
    world.told(0, 0)
    offset = asked = 0
    got = []
    while offset < world.end:
        found = world.locate(offset, 600)
        assert found is not None, offset
        segment, position, length, _ = found
        taken = [
            b
            for b in every
            if b[0] // 120 * 120 == segment and position <= b[2] < position + length
        ]
        assert taken[0][0] == offset
        got += taken
        offset = taken[-1][1]
        asked += 1
    assert got == every
    assert asked <= len(every) // 2


def test_an_index_that_lies_is_not_believed(world):
    world.write([3] * 40)
    path = world.folder / f"{0:020d}.index"
    numbers = array("i", path.read_bytes())
    numbers.byteswap()
    for at in range(1, len(numbers), 2):
        numbers[at] += 1
    numbers.byteswap()
    path.write_bytes(numbers.tobytes())
    world.told(0, 0)
    assert world.locate(0, 400) is None
    path.unlink()
    fresh = SegmentFiles(TABLE, [str(world.folder.parent)])
    assert world.cursors.locate(fresh, ROUTE, world.row(), 0, world.end, 400) is None
    found = world.cursors.locate(fresh, ROUTE, world.row(), 0, world.end, 100_000)
    assert found is not None, "all that is left needs no index"


@pytest.mark.parametrize(
    "changes",
    [
        {"STATUS": columns.OFFLINE},
        {"VERSION": 3},
        {"VISIBLE_POSITION": -1},
        {"LOG_START": 4},
        {"VISIBLE_SEGMENT": -1},
        {"LAYOUT": 4},
    ],
    ids=[
        "offline",
        "being written",
        "high watermark too far behind",
        "deleted",
        "high watermark nobody knows where",
        "compacted",
    ],
)
def test_what_is_not_plain_is_left_to_the_home(world, changes):
    world.write([3, 3])
    world.told(0, 0)
    assert world.locate(1, 1000) is not None
    assert world.locate(1, 1000, **changes) is None


def test_records_beside_a_high_watermark_that_lags_are_found_up_to_it(world):
    """A producer whose records wait for their sync must not take the short way from readers."""
    batches = world.write([3, 3, 2])
    lags = {"HIGH_WATERMARK": batches[1][1], "VISIBLE_POSITION": batches[2][2]}
    world.told(0, 0)
    assert world.locate(0, 10_000, **lags) == (0, 0, batches[2][2], batches[0][3])
    assert world.locate(batches[1][1], 10_000, **lags) is None
    assert world.locate(batches[1][1], 10_000) == (0, *batches[2][2:], batches[2][3])


def test_who_reads_committed_is_found_up_to_the_last_stable_offset(world):
    batches = world.write([3, 3, 2])
    row = {"STABLE_SEGMENT": 0, "STABLE_POSITION": batches[1][2]}
    world.told(0, 0)
    assert world.locate(0, 10_000, limit=3, **row) == (0, 0, batches[1][2], batches[0][3])
    assert world.locate(3, 10_000, limit=3, **row) is None
    assert world.locate(0, 10_000, limit=3, STABLE_SEGMENT=-1, STABLE_POSITION=-1) is None


def test_a_hole_that_compaction_left_is_left_to_the_home(world):
    world.write([3, 3])
    path = world.folder / f"{0:020d}.log"
    data = path.read_bytes()
    second = build_batch([NewRecord(1, None, b"v")], base_offset=9)
    path.write_bytes(data + second)
    world.end, world.size = 10, len(data) + len(second)
    world.told(0, len(data))
    assert world.locate(7, 10_000) is None
    assert world.locate(9, 10_000) is not None
