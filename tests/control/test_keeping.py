"""Who keeps the history: looks once a second, waits for no disk, and lets nothing that fails there
end anything."""

import errno
from types import SimpleNamespace

import pytest
from seats import Seats

from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.control.history.history_writer import Keeper
from appliance.history import format as layout
from appliance.history.format import MINUTE, SECOND
from appliance.history.history_reader import HistoryReader
from appliance.ring.process_table import CONTROL, Peer
from appliance.shell.flusher import run
from appliance.supervisor.layout import MIB, Layout

SECOND_NS = 1_000_000_000
BEGIN_MS = 1_000_020_000


class Threads:
    """One that works when the test says so, or when somebody waits."""

    def __init__(self):
        self.jobs, self.done = [], []

    def submit(self, tag, job):
        assert not self.jobs, "one at a time"
        self.jobs.append((tag, job))

    def work(self):
        self.done += [run(*job) for job in self.jobs]
        self.jobs.clear()

    def take_ended(self):
        taken, self.done = self.done, []
        return taken

    def outstanding(self):
        return len(self.jobs) + len(self.done)

    def wait(self):
        self.work()


class Disk(OsDisk):
    """One that fails when it is told to."""

    failure = None

    def _check(self):
        if self.failure is not None:
            raise self.failure

    def open_file(self, path, *, write=False):
        self._check()
        file = super().open_file(path, write=write)
        return self._failing(file)

    def create(self, path):
        self._check()
        return self._failing(super().create(path))

    def _failing(self, file):
        write = file.pwritev

        def pwritev(buffers, position):
            self._check()
            write(buffers, position)

        named = ("pread", "truncate", "size", "close", "path")
        kept = {name: getattr(file, name) for name in named}
        return SimpleNamespace(pwritev=pwritev, **kept)


class Kept:
    def __init__(self, path):
        self.events = []
        log = SimpleNamespace(event=lambda *args, **rest: self.events.append(args[1]))
        layout_ = Layout(arena_bytes=MIB * 8)
        self.seats = Seats(layout_, log, data_dir=str(path))
        self.now_ns = 0
        clock = SimpleNamespace(
            monotonic_ns=lambda: self.now_ns,
            wall_ms=lambda: BEGIN_MS + self.now_ns // 1_000_000,
        )
        self.threads, self.disk = Threads(), Disk()
        self.keeper = Keeper(
            self.seats.seat(Peer(CONTROL, 0)), self.disk, clock, lambda topic_id: "t",
            self.threads, log,
        )  # fmt: skip
        self.path = path

    def turn(self, seconds=1.0):
        self.now_ns += int(seconds * SECOND_NS)
        self.keeper.keep_due(self.now_ns)

    def times(self, step=SECOND):
        reader = HistoryReader(OsDisk(), str(self.path))
        found = [(one.at_ms - BEGIN_MS) / 1000 for one in reader.whole(step)]
        reader.close()
        return found


@pytest.fixture
def kept(tmp_path):
    one = Kept(tmp_path)
    yield one
    one.seats.close()


def test_it_looks_once_a_second_and_a_thread_writes(kept):
    kept.turn(0.5)
    kept.turn(0.4)
    assert not kept.threads.jobs
    kept.turn(0.1)
    assert kept.threads.jobs
    assert not (kept.path / layout.FILE).exists(), "only the thread touches the disk"
    for _ in range(3):
        kept.turn()
    assert len(kept.threads.jobs) == 1, "a disk that takes long is not given more"
    kept.threads.work()
    kept.turn(0.1)
    kept.threads.work()
    assert kept.times() == [1, 2, 3, 4]


def test_while_the_machine_stood_still_there_is_one_long_sample(kept):
    kept.turn(30)
    kept.turn(0.1)
    kept.threads.work()
    assert kept.times() == [30]


def test_of_what_no_disk_takes_a_minute_is_kept(kept):
    for _ in range(200):
        kept.turn()
    kept.threads.work()
    kept.turn(0.1)
    kept.threads.work()
    assert len(kept.times()) == 60 and kept.times()[-1] == 200


def test_a_full_disk_costs_samples_and_is_told_of_once(kept):
    kept.turn()
    kept.threads.work()
    kept.disk.failure = DiskFull("/d", errno.ENOSPC, "no room")
    for _ in range(5):
        kept.turn()
        kept.threads.work()
    kept.disk.failure = None
    kept.turn()
    kept.threads.work()
    kept.turn()
    kept.threads.work()
    assert kept.times() == [1, 7, 8]
    assert kept.events == ["history-not-kept"]


def test_a_disk_that_fails_is_left_alone_for_a_minute_and_then_tried_again(kept):
    kept.turn()
    kept.threads.work()
    kept.disk.failure = StorageFailed("/d", errno.EIO, "broken")
    kept.turn()
    kept.threads.work()
    kept.turn()
    assert not kept.threads.jobs
    kept.disk.failure = None
    for _ in range(61):
        kept.turn()
    kept.threads.work()
    assert kept.times()[0] == 1 and kept.times()[-1] == 63
    assert kept.events == ["history-not-kept"]


def test_a_bug_of_the_thread_is_not_swallowed(kept):
    kept.turn()
    kept.threads.done.append(run((), lambda: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        kept.turn()


def test_an_orderly_end_writes_the_minute_that_has_begun(kept):
    kept.turn()
    kept.now_ns += SECOND_NS // 2
    kept.keeper.close()
    assert kept.times() == [1, 1.5]
    assert kept.times(MINUTE) == [1.5]
