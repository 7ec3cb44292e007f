"""What the kernel says of a file's pages, and staying ahead of a reader."""

import os

import pytest

from appliance.netproc.files.page_cache import AHEAD_BYTES, PATIENCE_NS, PageCache, ReadAhead


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(os.urandom(3 << 20))
    fd = os.open(path, os.O_RDWR)
    yield fd
    os.close(fd)


def test_what_was_just_written_is_there(file):
    cache = PageCache()
    assert cache.holds(file, 0)
    assert cache.holds(file, (3 << 20) - 1)
    assert cache.holds(file, 3 << 20), "behind the end nothing is waited for"


def test_what_was_dropped_comes_back_when_it_is_fetched(file):
    cache = PageCache()
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    if cache.holds(file, 1 << 20):
        pytest.skip("this file system keeps everything in memory, or cannot tell")
    cache.fetch(file, 0, 3 << 20)
    while not cache.holds(file, (3 << 20) - 1):
        os.sched_yield()
    assert cache.holds(file, 1 << 20)


def test_a_kernel_that_cannot_tell_is_asked_once(file, monkeypatch):
    asked = []

    def refuse(fd, buffers, position, flags):
        asked.append(position)
        raise OSError(95, "not supported")

    monkeypatch.setattr(os, "preadv", refuse)
    cache = PageCache()
    assert cache.holds(file, 7)
    assert cache.holds(file, 8)
    assert asked == [7]


class Notes(PageCache):
    def __init__(self):
        super().__init__()
        self.ranges = []

    def fetch(self, fd, position, length):
        self.ranges.append((fd, position, position + length))


def test_a_reader_in_sequence_is_stayed_ahead_of_without_gaps():
    notes = Notes()
    ahead = ReadAhead(notes)
    step = 1 << 20
    assert not ahead.missed(3, 0, step, 1)
    for end in range(step, 40 * step, step):
        ahead.passed(3, end)
        assert notes.ranges[-1][2] - end >= AHEAD_BYTES // 2
    assert notes.ranges[0][1] == 0
    for before, after in zip(notes.ranges, notes.ranges[1:], strict=False):
        assert after[1] == before[2], "neither a gap nor a page twice"


def test_who_never_missed_is_not_read_ahead_for():
    notes = Notes()
    ReadAhead(notes).passed(3, 1 << 20)
    assert not notes.ranges


@pytest.mark.parametrize("start", [0, 1 << 30])
def test_a_jump_is_fetched_anew(start):
    notes = Notes()
    ahead = ReadAhead(notes)
    ahead.missed(3, 1 << 27, (1 << 27) + 4096, 1)
    ahead.passed(3, (1 << 27) + 4096)
    assert not ahead.missed(3, start, start + 4096, 2)
    assert notes.ranges[-1][1] == start


def test_patience_begins_anew_with_every_range():
    ahead = ReadAhead(Notes())
    assert not ahead.missed(3, 0, 10, 1)
    ahead.passed(3, 10)
    assert not ahead.missed(3, 10, 20, 1 + PATIENCE_NS)
    assert ahead.missed(3, 10, 20, 1 + 2 * PATIENCE_NS)


def test_where_the_c_library_cannot_ask_everything_counts_as_present(monkeypatch, tmp_path):
    """As with musl before 1.2.5."""
    monkeypatch.delattr(os, "RWF_NOWAIT")
    path = tmp_path / "cold"
    path.write_bytes(b"x")
    with path.open("rb") as file:
        assert PageCache().holds(file.fileno(), 0)
