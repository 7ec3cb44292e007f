"""A place found by stepping over batch headers is the place that a scan of the whole file finds."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.netproc.cursors import Cursors
from appliance.ring import partition_table as columns
from appliance.wire.batch import NewRecord, build_batch


def write(path, counts):
    """A segment with batches of so many records: [(base offset, end offset, position, length)]."""
    batches, offset, out = [], 0, b""
    for count in counts:
        records = [NewRecord(1, None, b"v" * (7 * count % 50)) for _ in range(count)]
        batch = build_batch(records, base_offset=offset)
        batches.append((offset, offset + count, len(out), len(batch)))
        out += batch
        offset += count
    path.write_bytes(out)
    return batches, offset, len(out)


def row(end, size, segment=0, high=None, log_start=0):
    found = [0] * columns.COLUMNS
    found[columns.STATUS] = columns.ONLINE
    found[columns.LOG_START] = log_start
    found[columns.LAYOUT] = 3
    found[columns.HIGH_WATERMARK] = end if high is None else high
    found[columns.LOG_END] = end
    found[columns.END_SEGMENT] = segment
    found[columns.VISIBLE_POSITION] = size
    return found


@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    known=st.integers(0, 29),
    ask=st.integers(0, 300),
    max_bytes=st.integers(0, 2000),
)
def test_a_glance_is_what_a_scan_finds_or_nothing(tmp_path_factory, counts, known, ask, max_bytes):
    path = tmp_path_factory.mktemp("cursor") / "log"
    batches, end, size = write(path, counts)
    start = batches[known % len(batches)]
    fd = os.open(path, os.O_RDONLY)
    try:
        cursors = Cursors()
        cursors.remember(5, 0, start[2], 3)
        found = cursors.locate(5, row(end, size), fd, ask, max_bytes)
        if ask >= end or ask < start[0]:
            assert found is None
            return
        _, _, position, length = next(batch for batch in batches if batch[1] > ask)
        expected = (0, position, max(length, min(max_bytes, size - position)), length, 3)
        assert found == expected
        assert cursors.locate(5, row(end, size), fd, ask, max_bytes) == expected, "from there again"
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    "changes",
    [
        {columns.STATUS: columns.OFFLINE},
        {columns.VERSION: 3},
        {columns.VISIBLE_POSITION: -1},
        {columns.LOG_START: 4},
        {columns.END_SEGMENT: 40},
        {columns.LAYOUT: 4},
    ],
    ids=[
        "offline",
        "being written",
        "high watermark too far behind",
        "deleted",
        "segment not wholly readable",
        "compacted",
    ],
)
def test_what_is_not_plain_is_left_to_the_home(tmp_path, changes):
    _, end, size = write(tmp_path / "log", [3, 3])
    fd = os.open(tmp_path / "log", os.O_RDONLY)
    try:
        cursors = Cursors()
        cursors.remember(0, 0, 0, 3)
        found = row(end, size)
        assert cursors.locate(0, found, fd, 1, 100) is not None
        for column, value in changes.items():
            found[column] = value
        assert cursors.locate(0, found, fd, 1, 100) is None
    finally:
        os.close(fd)


def test_an_older_segment_below_the_watermark_is_readable_to_its_end(tmp_path):
    _, end, size = write(tmp_path / "log", [3, 3])
    fd = os.open(tmp_path / "log", os.O_RDONLY)
    try:
        cursors = Cursors()
        cursors.remember(0, 0, 0, 3)
        found = cursors.locate(0, row(50, 10, segment=end), fd, 0, 10_000)
        assert found is not None
        assert found[2] == size
    finally:
        os.close(fd)


def test_records_beside_a_high_watermark_that_lags_are_found_up_to_it(tmp_path):
    """A producer whose records wait for their sync must not take the short way from readers."""
    batches, end, _ = write(tmp_path / "log", [3, 3, 2])
    seen, position = batches[1][1], batches[1][2] + batches[1][3]
    fd = os.open(tmp_path / "log", os.O_RDONLY)
    try:
        cursors = Cursors()
        cursors.remember(0, 0, 0, 3)
        found = cursors.locate(0, row(end, position, high=seen), fd, 0, 10_000)
        assert found is not None
        assert found[1:3] == (0, position)
        assert cursors.locate(0, row(end, position, high=seen), fd, seen, 10_000) is None
    finally:
        os.close(fd)
