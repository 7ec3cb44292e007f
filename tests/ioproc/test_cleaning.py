"""Compaction as an ioproc drives it: the choice, the swap between turns, and what may happen to the
partition, the cleaner and the disk meanwhile. The cleaner runs in this process."""

import errno

import pytest
from core_world import NOW_MS, HeldThreads, World

from appliance.base.errors import DiskFull, StorageFailed
from appliance.config.broker import BrokerConfig
from appliance.handlers.exchange import Route
from appliance.ioproc.coordination.coordinator_loading import load
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.retention.cleaner_process import Cleaner
from appliance.ioproc.retention.log_cleaner import LogCleaner
from appliance.ioproc.turn.job_context import JobContext
from appliance.metadata.log_dirs import LogDirs
from appliance.netproc.files.segment_files import SegmentFiles
from appliance.ring.partition_table import CLEANED_TO, LAYOUT, UNCLEANABLE
from appliance.wire.batch import NewRecord, build_batch, iter_records, read_header

COMPACT = {"compact": True, "delete": False, "segment_bytes": 3000, "index_interval_bytes": 300}


class HereLink:
    """The cleaner's process without the process. fail: what it raises next."""

    def __init__(self):
        self._cleaner = Cleaner()
        self.fail = None
        self.asked_to_clean = self.kills = 0

    def ask_cleaner(self, folder, question):
        if self.fail is not None:
            raise self.fail
        self.asked_to_clean += question["op"] == "clean"
        answer = self._cleaner.answer(question)
        if "failure" in answer:
            kind = DiskFull if answer["full"] else StorageFailed
            raise kind(answer["path"], answer["errno"], answer["failure"])
        return answer

    def kill(self):
        self.kills += 1

    def end_cleaner(self):
        return ""


class Events:
    def __init__(self):
        self.said = []

    def event(self, priority, event, /, **fields):
        self.said.append((event, fields))


class CleaningWorld(World):
    def __init__(self, folder, disk=None, **settings):
        super().__init__(folder, disk)
        self.link, self.events, self.work = HereLink(), Events(), HeldThreads()
        self.removals = []
        config = BrokerConfig.of({"log.cleaner.backoff.ms": "1000", **settings})
        self.cleaning = LogCleaner(
            lambda: config,
            JobContext(self.disk, LogDirs.of(self.folder), self.core, self.events),
            self.work,
            self.link,
            self.removals.append,
            1,
        )

    def fill(self, partition, count=60, keys=5):
        for n in range(count):
            key = b"k%d" % (n % keys)
            made = build_batch([NewRecord(NOW_MS, key, b"%d" % n * 100)])
            self.append(partition.handle, made, acks=1)
            self.turn()
        self.settle()

    def tick(self, seconds=0):
        self.now_ns += seconds * 1_000_000_000
        self.cleaning.tick(self.now_ns, NOW_MS)

    def run(self):
        """Until nothing is under way."""
        self.tick(1)
        while self.work.outstanding() or self.cleaning.busy:
            self.work.run_all()
            self.tick()

    def latest(self, partition):
        found = {}
        log = partition.log
        for segment in log.segments:
            file = log.disk.open_file(segment.path)
            data = file.pread(file.size(), 0)
            file.close()
            at = 0
            while at < len(data):
                header = read_header(data, at)
                if header.record_count:
                    for record in iter_records(data[at : at + header.size]):
                        found[record.key] = record.offset
                at += header.size
        return found


@pytest.fixture
def world(tmp_path):
    return CleaningWorld(tmp_path)


def test_a_log_is_cleaned_and_says_so(world):
    partition = world.add("t", **COMPACT)
    other = world.add("plain", segment_bytes=3000)
    world.fill(partition)
    world.fill(other)
    before, size = world.latest(partition), partition.log.size
    world.run()
    assert world.latest(partition) == before
    assert partition.log.size < size / 2
    end = partition.log.active_base
    assert world.table.read_column(partition.handle, CLEANED_TO) == end
    written = checkpoints.read(world.disk, world.folder, checkpoints.CLEANER)
    assert written == {("t", 0): end}
    assert checkpoints.read(world.disk, world.folder, checkpoints.RECOVERY_POINT)["t", 0] >= end
    assert [name for name, _ in world.events.said] == ["log-cleaned"]
    assert world.removals
    assert not partition.log.cleaning
    world.run()
    assert len(world.events.said) == 1, "nothing is dirty any more"


def test_it_goes_on_where_the_checkpoint_says(world):
    partition = world.add("t", **COMPACT)
    world.fill(partition)
    checkpoints.merge(
        world.disk, world.folder, checkpoints.CLEANER, {("t", 0): partition.log.active_base}
    )
    world.run()
    assert world.events.said == []


def test_nothing_is_cleaned_when_that_is_off(tmp_path):
    world = CleaningWorld(tmp_path, **{"log.cleaner.enable": "false"})
    world.fill(world.add("t", **COMPACT))
    world.run()
    assert world.events.said == []


def test_a_failure_is_said_once_counted_and_tried_again(world):
    partition = world.add("t", **COMPACT)
    sound = world.add("u", **COMPACT)
    world.fill(partition)
    world.link.fail = StorageFailed("x", errno.EIO, "refused as the test wants")
    world.run()
    world.run()
    assert [name for name, _ in world.events.said] == ["cleaning-failed"]
    assert world.table.read_column(partition.handle, UNCLEANABLE) == 1, (
        "it waits before the second time"
    )
    world.tick(10)
    world.run()
    assert world.table.read_column(partition.handle, UNCLEANABLE) == 2
    assert len(world.events.said) == 1
    world.link.fail = None
    world.fill(sound)
    world.run()
    assert world.events.said[-1][1]["partition"] is sound, "others do not wait for it"
    world.tick(100)
    world.run()
    assert world.table.read_column(partition.handle, UNCLEANABLE) == 0
    assert world.events.said[-1][1]["partition"] is partition
    assert partition.broken is None


def test_a_partition_that_is_deleted_meanwhile_is_let_go(world):
    partition = world.add("t", **COMPACT)
    world.fill(partition)
    world.tick(2)
    world.work.run_all()  # the keys are known
    world.tick()
    world.core.remove(partition.handle, world.now_ns)
    partition.log.delete("0f" * 16, NOW_MS)
    world.run()
    assert world.events.said == []
    assert world.failures == []


def test_a_partition_that_moves_meanwhile_keeps_its_segments(world):
    partition = world.add("t", **COMPACT)
    world.fill(partition)
    bases = [segment.base for segment in partition.log.segments]
    world.tick(2)
    world.work.run_all()
    world.tick()
    world.work.run_all()  # the first group is decided
    partition.future = (1, 0, 0)
    world.run()
    assert [segment.base for segment in partition.log.segments] == bases
    names = world.disk.listdir(partition.log.path)
    assert not [name for name in names if name.endswith((".swap", ".cleaned"))]
    assert not partition.log.cleaning


def test_a_log_that_goes_back_is_cleaned_again_from_there(world):
    """What it gets instead of its end was never cleaned, here and after the next start."""
    partition = world.add("t", **COMPACT)
    world.fill(partition)
    world.run()
    end = partition.log.active_base
    world.cleaning.lower(partition, end + 1)
    assert world.table.read_column(partition.handle, CLEANED_TO) == end
    world.cleaning.lower(partition, 10)
    assert world.table.read_column(partition.handle, CLEANED_TO) == 10
    written = checkpoints.read(world.disk, world.folder, checkpoints.CLEANER)
    assert written == {("t", 0): 10}


def test_nobody_waits_long_for_a_cleaning(world):
    """A log that is to go back does not wait for it: the cleaner's process is killed, and the log
    is as it was, sound, and cleaned when it is time again."""
    partition = world.add("t", **COMPACT)
    world.fill(partition)
    before = [segment.base for segment in partition.log.segments]
    world.tick(1)
    assert partition.log.cleaning
    world.cleaning.cancel(partition)
    world.cleaning.cancel(partition)
    assert world.link.kills == 1
    world.work.run_all()
    world.tick()
    assert not partition.log.cleaning
    assert [segment.base for segment in partition.log.segments] == before
    assert world.events.said == []
    world.tick()
    assert not partition.log.cleaning, "not again at once: it goes back now"
    world.run()
    assert world.table.read_column(partition.handle, CLEANED_TO) == partition.log.active_base


def test_what_was_decided_of_a_cleaning_that_is_cancelled_is_taken_back(world):
    partition = world.add("t", **COMPACT)
    world.fill(partition)
    world.tick(1)
    while not world.link.asked_to_clean:
        world.work.run_all()
        world.tick()
    world.cleaning.cancel(partition)
    while partition.log.cleaning:
        world.work.run_all()
        world.tick()
    left = [name for name in world.disk.listdir(partition.log.path) if name.endswith(".swap")]
    assert left == []
    assert world.latest(partition)


def test_no_segment_is_dropped_while_it_is_cleaned(world):
    partition = world.add("t", **{**COMPACT, "delete": True, "retention_bytes": 1})
    world.fill(partition)
    while not partition.log.cleaning:  # the look for work has a budget of time, and may go on later
        world.tick(2)
    assert partition.log.retain(NOW_MS, partition.high_watermark) == []
    world.run()
    assert partition.log.retain(NOW_MS, partition.high_watermark)


def test_a_place_that_was_told_before_is_not_looked_up_in_the_new_file(world):
    partition = world.add("t", **COMPACT)
    world.fill(partition)
    handle = partition.handle
    world.read(handle, 0)
    told = world.turn()[0]
    assert told.i == world.table.read_column(handle, LAYOUT)
    segments = SegmentFiles(world.table, [world.folder])
    route = Route(handle, 0, "t", partition.topic_id, 0, 0)
    kept = segments.open_segment(route, told.d, 0, told.i)
    assert kept is not None
    world.run()
    assert segments.open_segment(route, told.d, 0, told.i) is kept, "the old file"
    assert SegmentFiles(world.table, [world.folder]).open_segment(route, told.d, 0, told.i) is None
    world.read(handle, 0)
    now = world.turn()[0]
    assert now.i > told.i
    fresh = segments.open_segment(route, now.d, 0, now.i)
    assert fresh is not None
    assert fresh is not kept


class Latest:
    """What a coordinator would keep: of every key the last offset."""

    def __init__(self):
        self.offsets = {}

    def replay(self, key, value, offset, producer_id):
        self.offsets[key] = offset

    def ended(self, producer_id, *, committed):
        raise AssertionError("there are no transactions")


def test_a_coordinator_that_loads_meanwhile_loads_every_latest_value(world):
    partition = world.add("t", **COMPACT)
    world.fill(partition)
    before = world.latest(partition)
    latest = Latest()
    steps = load(partition, latest)
    next(steps)
    next(steps)
    world.run()
    for _ in steps:
        pass
    assert latest.offsets == before


def test_an_end_in_the_middle_leaves_what_the_next_start_finishes(world):
    partition = world.add("t", **COMPACT)
    world.fill(partition)
    before = world.latest(partition)
    world.tick(2)
    world.work.run_all()
    world.tick()
    world.cleaning.stop()
    assert not partition.log.cleaning
    partition.log.close()
    log = type(partition.log).open_folder(
        world.disk,
        partition.log.path,
        partition.log.config,
        recovery_point=partition.log.recovery_point,
        log_start_offset=0,
        clean=True,
        machine_lived=False,
        now_ms=NOW_MS,
    )
    partition.log = log
    assert world.latest(partition) == before
    assert not [name for name in world.disk.listdir(log.path) if name.endswith(".swap")]
    log.close()


def test_compaction_asks_for_room_and_goes_on_when_there_is_some(world):
    partition = world.add("t", **COMPACT)
    world.fill(partition)
    before, size = world.latest(partition), partition.log.size
    world.space._keep_bytes = 2 << 20
    world.space.read_space(0, 1 << 40, 1 << 20)  # half of what must stay free may be used
    world.run()
    assert partition.log.size == size and not world.link.asked_to_clean
    assert [name for name, _ in world.events.said] == ["cleaning-waits"]
    assert "more must be free" in str(world.events.said[0][1]["cause"])
    assert world.table.read_column(partition.handle, UNCLEANABLE) == 0
    world.run()
    assert len(world.events.said) == 1, "it is said once"
    world.space.read_space(0, 1 << 40, (1 << 20) + (1 << 19))
    world.run()
    assert partition.log.size < size and world.latest(partition) == before


@pytest.mark.parametrize("at", ["keys", "clean"])
def test_no_room_while_it_compacts_is_no_failure_of_the_log(world, at):
    partition = world.add("t", **COMPACT)
    world.fill(partition)
    before, size = world.latest(partition), partition.log.size
    world.tick(1)
    if at == "clean":
        world.work.run_one()
        world.tick()
    world.link.fail = DiskFull(partition.log.path, errno.ENOSPC, "No space left on device")
    world.run()
    assert partition.broken is None and world.table.read_column(partition.handle, UNCLEANABLE) == 0
    assert [name for name, _ in world.events.said] == ["cleaning-waits"]
    world.link.fail = None
    world.tick(1)
    world.run()
    assert partition.log.size < size and world.latest(partition) == before
