"""Partitions that move between log folders while they are in use: nothing acknowledged is lost,
whatever ends the process, and what a person asks for while a move is under way."""

from random import Random

import pytest
from core_world import NOW_MS, World, batch
from sim.disk import PAGE, PowerCut, SimDisk
from test_acknowledged import CONFIG, DATA, PARTITIONS, Story, fresh_table

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.base.retention_clock import RetentionClock
from appliance.base.space import SpaceGuard
from appliance.config.broker import BrokerConfig
from appliance.config.log_config import LogConfig
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from appliance.ioproc.durability.log_start_checkpoint import LogStartCheckpoint
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.log_folders import alter_log_dirs
from appliance.ioproc.log_folders.alter_log_dirs import LogDirMoves
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ioproc.turn.dispatch import Dispatcher
from appliance.ioproc.turn.job_context import JobContext
from appliance.metadata.log_dirs import LogDirs
from appliance.ring import partition_table as columns
from appliance.ring.messages import MOVE, MOVED
from appliance.shell.flusher import run
from appliance.shell.log import Log as EventLog
from tests.seeds import each_seed

IDS = (b"a" * 16, b"b" * 16)
DIRS = LogDirs((f"{DATA}/a", f"{DATA}/b"), IDS)
TOPIC_ID = b"t".ljust(16, b"\0")


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(alter_log_dirs, "NEAR", 2000)
    monkeypatch.setattr(alter_log_dirs.file_copy, "PIECE", 700)


class Jobs:
    """The threads of chores and of copying: one job at a time, when it is taken."""

    def __init__(self):
        self.jobs, self.done = [], []

    def submit(self, tag, job):
        self.jobs.append((tag, job))

    def run(self):
        while self.jobs:
            self.done.append(run(*self.jobs.pop(0)))

    wait = run

    def take_ended(self):
        self.run()
        done, self.done = self.done, []
        return done

    def outstanding(self):
        return len(self.jobs) + len(self.done)


class Control:
    """What the metadata says of where partitions are; it is told of changes, and may be slow."""

    def __init__(self):
        self.places = dict.fromkeys(range(PARTITIONS), 0)
        self.asked = []
        self.awake = True

    def assign(self, handle, number):
        if self.awake:
            self.places[handle] = number
        else:
            self.asked.append((handle, number))


def life(disk, control, table, tmp_log, ids=IDS):
    """An ioproc with all partitions open: (world, moves)."""
    dirs = LogDirs(DIRS.paths, ids)
    world = World(DATA, disk=disk, table=table, folders=dirs.paths)
    world.served.spaces = [world.space, world.space]
    config = BrokerConfig.of({"node.id": "1"})
    trims = LogStartCheckpoint(disk, Jobs(), dirs.paths)
    ground = JobContext(disk, dirs, world.core, tmp_log)
    keeping = Housekeeping(config, ground, Jobs(), trims, RetentionClock())
    left = JournalRecovery(disk, dirs.paths, clean=False)
    left.read_journals()
    opener = PartitionOpener(disk, dirs, table, left, clean=False)
    for index in range(PARTITIONS):
        rules, wanted = LogConfig(**CONFIG), DIRS.ids[control.places[index]]
        log, number, *_ = opener.open_log("t", index, TOPIC_ID, index, rules, NOW_MS, wanted)
        if log.recovery_point < log.end_offset:
            log.sync_now()
        partition = Partition(index, "t", index, TOPIC_ID, log, 1)
        partition.directory = number
        world.core.add(partition, world.now_ns)
    for stale in opener.stale:
        disk.rename(stale, f"{stale}-gone")
    moves = LogDirMoves(
        ground,
        keeping,
        Jobs(),
        control.assign,
        lambda partition: control.places[partition.index],
        lambda: 1 << 62,
        lambda: 1,
        iter(f"{n:032x}" for n in range(disk.steps * 1000, 1 << 60)).__next__,
    )
    find = world.core.partitions.get
    world.arrivals = Dispatcher(world.core, find, moves.begin_move, world.endings)
    moves.resume(NOW_MS)
    return world, moves, keeping


@pytest.fixture
def tmp_log(tmp_path):
    with (tmp_path / "events").open("w") as file:
        yield EventLog("ioproc-0", fd=file.fileno(), journal=False)


def fresh_disk(rng):
    disk = SimDisk(rng)
    for path in (DATA, *DIRS.paths):
        disk.mkdir(path)
        disk.sync_dir(path.rpartition("/")[0] or "/")
    return disk


class MovingStory(Story):
    """The story of what is acknowledged, with partitions that go to and fro."""

    def __init__(self, seed, tmp_log):
        super().__init__(seed)
        self.disk = fresh_disk(self.rng)
        self.control = Control()
        self.tmp_log = tmp_log
        self.changes = 0

    def open(self):
        self.world, self.moves, self.keeping = life(
            self.disk, self.control, self.table, self.tmp_log
        )
        self.world.quiet = self.rng.random() < 0.3
        self.places = {i: p.directory for i, p in self.world.core.partitions.items()}

    def live(self, steps):
        for _ in range(steps):
            if self.rng.random() < 0.2:
                index = self.rng.randrange(PARTITIONS)
                partition = self.world.core.partitions[index]
                assert self.moves.begin_move(partition, self.rng.randrange(2), NOW_MS) == 0
            super().live(1)
            for _ in range(self.rng.randint(0, 4)):
                self.moves.tick(self.world.now_ns, NOW_MS)
            self.keeping.tick(self.world.now_ns, NOW_MS + self.rng.choice([0, 10**6]))
            for index, partition in self.world.core.partitions.items():
                assert partition.broken is None
                self.changes += partition.directory != self.places[index]
                self.places[index] = partition.directory


def test_nothing_acknowledged_is_lost_whatever_ends_a_move(tmp_log):
    changes = 0
    for seed in range(40):
        story = MovingStory(seed, tmp_log)
        for _ in range(5):
            story.disk.crash_at = story.disk.steps + story.rng.randint(1, 900)
            try:
                story.open()
                story.live(25)
            except PowerCut:
                story.disk.power_cut()
                story.table = fresh_table()
                safe = story.power_safe
            else:
                story.disk.process_death()
                safe = story.process_safe
                if story.rng.random() < 0.5:
                    story.table = fresh_table()
            story.disk.crash_at = -1
            story.asked.clear()
            story.open()
            story.check(safe)
            story.disk.process_death()
            story.table = fresh_table()
            story.process_safe = dict(story.process_safe)
        changes += story.changes
    assert changes > 100, "the partitions hardly ever moved"


@pytest.fixture
def moved(tmp_log):
    """(world, moves, control) with ten batches in partition 0."""
    control, disk = Control(), fresh_disk(Random(1))
    world, moves, _ = life(disk, control, fresh_table(), tmp_log)
    for n in range(10):
        world.append(0, batch(b"v" * 200), acks=-1, token=n)
        world.turn()
        world.threads.run_all()
        world.turn()
    return world, moves, control


def finish(world, moves):
    for _ in range(200):
        moves.tick(world.now_ns, NOW_MS)
        world.turn(ms=1100)
    assert not moves.under_way


def futures(world):
    return [n for path in DIRS.paths for n in world.disk.listdir(path) if n.endswith("-future")]


def test_a_move_is_asked_for_shown_and_done(moved):
    world, moves, control = moved
    world.ask(MOVE, 0, token=1, a=1)
    assert [(m.op, m.flags) for m in world.turn()] == [(MOVED, 0)]
    assert len(futures(world)) == 1
    row = world.table.read_row(0)
    assert (row[columns.DIRECTORY], row[columns.FUTURE] & 0xFF) == (0, 2)
    finish(world, moves)
    row = world.table.read_row(0)
    assert (row[columns.DIRECTORY], row[columns.FUTURE], control.places[0]) == (1, 0, 1)
    assert row[columns.LOG_END] == 10
    assert not futures(world)
    names = [n for n in world.disk.listdir(DIRS.paths[0]) if n.startswith("t-0")]
    assert [name.rpartition("-")[2] for name in names] == ["delete"]
    world.append(0, batch(b"w"), acks=1, token=7)
    assert [(m.token, m.flags, m.a) for m in world.turn()] == [(7, 0, 10)]


@pytest.mark.parametrize("movers", [1, 3])
def test_processes_that_move_something_share_the_limit(moved, movers):
    world, moves, _ = moved
    moves._limit, moves._movers = lambda: 1000, lambda: movers
    size = world.core.partitions[0].log.size
    world.ask(MOVE, 0, token=1, a=1)
    world.turn()
    began_ns = world.now_ns
    while moves.under_way:
        moves.tick(world.now_ns, NOW_MS)
        world.turn(ms=50)
    took_s = (world.now_ns - began_ns) / 1e9
    least = (size - 700) * movers / 1000  # nothing has to be waited for behind the last piece
    assert least < took_s < least + 4, (size, took_s)


def test_epochs_that_no_flush_has_written_down_go_along(moved):
    """All of the copy lies below its recovery point: nobody reads them from the batches again."""
    world, moves, _ = moved
    partition = world.core.partitions[0]
    partition.lead(3)
    world.append(0, batch(b"w"), acks=1, token=7)
    world.turn()
    partition.log.epochs.changed = True  # as without a sync on the way
    epochs = partition.log.epochs.encode()
    assert b"3 10" in epochs
    world.ask(MOVE, 0, token=1, a=1)
    world.turn()
    finish(world, moves)
    assert partition.directory == 1 and partition.log.epochs.encode() == epochs


def test_one_whose_log_goes_back_is_copied_from_the_beginning(moved):
    """It follows, and its leader has other records at the end: what was copied of those is old."""
    world, moves, control = moved
    partition = world.core.partitions[0]
    world.ask(MOVE, 0, token=1, a=1)
    world.turn()
    while not moves._moves[partition].copied:
        moves.tick(world.now_ns, NOW_MS)
        world.turn()
    (first,) = futures(world)
    world.core.follow(partition, 2)
    moves.begin_again(partition, NOW_MS)
    partition.log.recovery_point = 0
    assert partition.log.truncate_to(5, NOW_MS) == 5
    partition.progress.truncated(5, {})
    assert first not in futures(world)
    world.now_ns += 10**10
    moves.tick(world.now_ns, NOW_MS)
    assert futures(world)
    finish(world, moves)
    assert control.places[0] == partition.directory == 1
    assert partition.log.end_offset == 5


def test_where_it_lies_or_goes_already_changes_nothing(moved):
    world, moves, _ = moved
    partition = world.core.partitions[0]
    assert moves.begin_move(partition, 0, NOW_MS) == 0
    assert not moves.under_way
    for _ in range(2):
        assert moves.begin_move(partition, 1, NOW_MS) == 0
        assert len(futures(world)) == 1
    assert moves.begin_move(partition, 7, NOW_MS) == errors.LOG_DIR_NOT_FOUND
    assert moves.begin_move(partition, 0, NOW_MS) == 0, "back where it lies: the move is given up"
    assert not futures(world) and not moves.under_way
    assert world.table.read_column(0, columns.FUTURE) == 0 or world.turn() == []


def test_control_decides_when_the_copy_takes_over(moved):
    world, moves, control = moved
    control.awake = False
    assert moves.begin_move(world.core.partitions[0], 1, NOW_MS) == 0
    for _ in range(100):
        moves.tick(world.now_ns, NOW_MS)
        world.turn(ms=100)
    assert world.core.partitions[0].directory == 0
    assert 2 < len(control.asked) < 15, "asked again, now and then"
    assert set(control.asked) == {(0, 1)}
    control.places[0] = 1
    finish(world, moves)
    assert world.core.partitions[0].directory == 1


def test_a_folder_that_refuses_ends_the_move_and_nothing_else(moved):
    world, moves, _ = moved
    world.disk.refusing[f"{DIRS.paths[1]}/t-0", "write"] = 28
    assert moves.begin_move(world.core.partitions[0], 1, NOW_MS) in (0, errors.KAFKA_STORAGE_ERROR)
    finish(world, moves)
    assert world.core.partitions[0].directory == 0
    assert world.core.partitions[0].broken is None
    world.disk.refusing.clear()
    assert moves.begin_move(world.core.partitions[0], 1, NOW_MS) == 0
    finish(world, moves)
    assert world.core.partitions[0].directory == 1


def test_a_partition_that_is_deleted_takes_its_copy_along(moved):
    world, moves, _ = moved
    partition = world.core.partitions[0]
    moves.begin_move(partition, 1, NOW_MS)
    moves.tick(world.now_ns, NOW_MS)
    moves.give_up(partition, NOW_MS)
    world.core.remove(0, world.now_ns)
    moves.tick(world.now_ns, NOW_MS)
    assert not futures(world) and not moves.under_way


def test_a_partition_whose_live_folder_is_away_is_not_taken_from_its_copy(moved, tmp_log):
    world, moves, control = moved
    control.awake = False
    moves.begin_move(world.core.partitions[0], 1, NOW_MS)
    for _ in range(100):
        moves.tick(world.now_ns, NOW_MS)
        world.turn(ms=10)
    control.places[0] = 1  # written down, and then all ended
    world.disk.process_death()
    dirs = LogDirs(DIRS.paths, (None, IDS[1]))
    opener = PartitionOpener(world.disk, dirs, fresh_table(), clean=False)
    with pytest.raises(StorageFailed, match="offline"):
        opener.open_log("t", 0, TOPIC_ID, 0, LogConfig(**CONFIG), NOW_MS, IDS[1])
    again, moves, _ = life(world.disk, control, fresh_table(), tmp_log)
    assert again.core.partitions[0].directory == 0
    finish(again, moves)
    assert again.core.partitions[0].directory == 1
    assert again.core.partitions[0].log.end_offset == 10


MIB = 1 << 20


def guarded(world, free):
    """Another guard for the second folder: so many bytes are free, 10 MiB must be."""
    guard = SpaceGuard(10 * MIB, 0)
    guard.read_space(0, 1 << 40, free)
    world.served.spaces = [world.space, guard]
    return guard


def test_a_move_into_a_folder_without_room_is_refused(moved):
    world, moves, _ = moved
    guarded(world, 10 * MIB)
    assert moves.begin_move(world.core.partitions[0], 1, NOW_MS) == errors.KAFKA_STORAGE_ERROR
    assert not futures(world) and not moves.under_way


def test_a_copy_gives_way_when_room_is_needed_and_begins_again_when_there_is_some(moved):
    world, moves, _ = moved
    guard = guarded(world, 100 * MIB)
    partition = world.core.partitions[0]
    assert moves.begin_move(partition, 1, NOW_MS) == 0
    moves.tick(world.now_ns, NOW_MS)
    assert futures(world)
    guard.read_space(0, 1 << 40, 9 * MIB)
    for _ in range(20):
        moves.tick(world.now_ns, NOW_MS)
        world.turn(ms=1100)
    assert not futures(world) and partition.future == (0, 0, 0)
    guard.read_space(0, 1 << 40, 100 * MIB)
    for _ in range(5):
        moves.tick(world.now_ns, NOW_MS)
        world.turn(ms=1100)
    finish(world, moves)
    assert partition.directory == 1 and partition.log.end_offset == 10


@each_seed(20)
def test_a_disk_that_fills_at_any_moment_of_a_move_costs_no_record(moved, seed):
    world, moves, _ = moved
    rng, partition = Random(seed), world.core.partitions[0]
    for _ in range(60):
        if rng.random() < 0.3:
            moves.begin_move(partition, rng.randrange(2), NOW_MS)
        world.disk.foreign = 0
        if rng.random() < 0.5:
            world.disk.foreign = world.disk.free() - rng.randint(0, 8) * PAGE
        moves.tick(world.now_ns, NOW_MS)
        world.turn(ms=rng.choice((1, 1100)))
        assert partition.broken is None
    world.disk.foreign = 0
    if partition.directory == 0:
        moves.begin_move(partition, 1, NOW_MS)
    finish(world, moves)
    assert partition.log.end_offset == 10
