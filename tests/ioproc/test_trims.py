"""DeleteRecords on many partitions: who is told when, and how many writes it takes."""

import pytest
from core_world import NOW_MS, HeldThreads, World, batch
from sim.disk import SimDisk
from test_home import Cluster

from appliance.ioproc.durability import checkpoints
from appliance.ioproc.durability.group_commit import EPOCHS_A_TURN
from appliance.ioproc.durability.log_start_checkpoint import A_JOB, LogStartCheckpoint
from appliance.logstore.removal import Removal
from appliance.ring.messages import DELETE_RECORDS


@pytest.fixture
def world():
    disk = SimDisk()
    disk.mkdir("/data")
    world = World("/data", disk=disk)
    world.held = HeldThreads()
    world.trims = LogStartCheckpoint(disk, world.held, ["/data"])
    world.questions.checkpoint = world.trims.add
    world.many = [world.add(index=index) for index in range(40)]
    for partition in world.many:
        world.append(partition.handle, batch(b"a", b"b"), acks=1)
    world.settle()
    return world


def trim(world, partitions, offset=1):
    for partition in partitions:
        world.ask(DELETE_RECORDS, partition.handle, token=partition.handle, a=offset)
    return told(world)


def told(world):
    world.trims.trim_next()
    return sorted(m.token for m in world.turn())


def saved(world):
    return checkpoints.read(world.disk, "/data", checkpoints.LOG_START)


def test_many_partitions_share_one_write_and_the_loop_makes_none(world):
    assert len(world.many) <= A_JOB
    before = world.disk.steps
    assert trim(world, world.many) == []
    assert world.disk.steps == before, "the turn changed nothing on the disk"
    assert len(world.held.jobs) == 1
    syncs = []
    change = world.disk.change
    world.disk.change = lambda path, kind: (syncs.append(kind), change(path, kind))
    world.held.run_all()
    assert syncs.count("sync") == 1 and syncs.count("sync_dir") == 1
    assert told(world) == [p.handle for p in world.many]
    assert len(saved(world)) == 40


def test_what_moves_meanwhile_is_in_the_next_write(world):
    first, second = world.many[:2]
    assert trim(world, [first]) == []
    assert trim(world, [second, first], offset=2) == []
    assert len(world.held.jobs) == 1, "one at a time"
    world.held.run_all()
    assert told(world) == [first.handle]
    assert first.start_unsaved, "it has moved again"
    world.held.run_all()
    assert told(world) == [first.handle, second.handle]
    assert set(saved(world).values()) == {2}
    assert not first.start_unsaved
    assert trim(world, [first], offset=2) == [first.handle], "it is durable already"


def test_who_asks_for_what_is_not_durable_yet_waits_too(world):
    first = world.many[0]
    assert trim(world, [first]) == []
    assert trim(world, [first]) == []
    world.held.run_all()
    assert told(world) == [first.handle]
    world.held.run_all()
    assert told(world) == [first.handle]


def test_a_netproc_that_died_is_not_told(world):
    assert trim(world, world.many[:1]) == []
    world.core.drop(world.core.askers[0])
    world.held.run_all()
    assert told(world) == []


def test_no_more_are_told_in_a_turn_than_are_in_one_write(world, monkeypatch):
    monkeypatch.setattr("appliance.ioproc.durability.log_start_checkpoint.A_JOB", 16)
    assert trim(world, world.many) == []
    counts = []
    while world.held.jobs:
        world.held.run_all()
        counts.append(len(told(world)))
    assert counts == [16, 16, 8]


def test_the_epochs_of_trimmed_logs_are_written_for_a_few_in_each_turn(world):
    assert trim(world, world.many) == []
    world.held.run_all()
    assert len(told(world)) == len(world.many)
    for partition in world.many:
        world.append(partition.handle, batch(b"c"), acks=-1, token=partition.handle)
    written = []
    change = world.disk.change
    world.disk.change = lambda path, kind: (written.append(kind), change(path, kind))
    counts, begun = [], []
    while world.core.syncing.wanted or not counts:
        assert world.turn() == []
        counts.append(written.count("rename"))
        begun.append(len(world.threads.jobs))
        written.clear()
    assert counts == [EPOCHS_A_TURN, len(world.many) - EPOCHS_A_TURN]
    assert begun == [EPOCHS_A_TURN, len(world.many)]
    world.threads.run_all()
    assert [m.token for m in world.turn()] == [p.handle for p in world.many]


def test_an_end_syncs_those_that_were_held_back_too(world):
    assert trim(world, world.many) == []
    for partition in world.many:
        world.append(partition.handle, batch(b"c"), acks=-1, token=partition.handle)
    world.core.settle_all(world.now_ns)
    assert len(world.answers()) == len(world.many)
    assert not world.core.syncing.busy()


def test_a_partition_whose_sync_was_held_back_can_go(world):
    assert trim(world, world.many) == []
    for partition in world.many:
        world.append(partition.handle, batch(b"c"), acks=-1, token=partition.handle)
    world.turn()
    last = world.many[-1]
    assert world.core.syncing.wanted and last.syncing
    world.core.remove(last.handle, world.now_ns)
    assert last.log.recovery_point == last.log.end_offset
    assert last.handle in [m.token for m in world.turn() if not m.flags]


def test_what_lies_below_many_log_starts_goes_a_few_in_each_turn(tmp_path, monkeypatch):
    monkeypatch.setattr("appliance.ioproc.retention.housekeeping.RETAIN_NS", 0)
    cluster = Cluster(tmp_path)
    cluster.topic("t", partitions=5)
    life = cluster.live()
    for handle in range(5):
        life.world.append(handle, batch(b"a"), acks=1)
        life.world.settle()
        life.world.ask(DELETE_RECORDS, handle, a=1)
        life.world.turn()
    rolled = []
    for turn in range(1, 6):
        assert not life.keeping.tick(turn * 10, NOW_MS)
        logs = [p.log for p in life.world.core.partitions.values()]
        rolled.append(sum(log.active_base == 1 for log in logs))
    assert rolled == [1, 2, 3, 4, 5]
    life.end()


def test_of_two_rounds_that_are_due_one_goes_on_in_a_turn_and_then_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr("appliance.ioproc.retention.housekeeping.RETAIN_NS", 0)
    cluster = Cluster(tmp_path)
    cluster.topic("t", partitions=5)
    life = cluster.live()
    looked_at = []
    monkeypatch.setattr(life.keeping, "_retain", lambda p, *now: looked_at.append(p.index))
    for handle in range(3):
        life.world.append(handle, batch(b"a"), acks=1)
        life.world.settle()
        life.world.ask(DELETE_RECORDS, handle, a=1)
        life.world.turn()
    steps = []
    while not life.keeping.tick(10, NOW_MS):
        steps.append(len(looked_at))
    assert steps[:9] == [1, 2, 3, 3, 4, 5, 6, 7, 8], "three that were trimmed, then all five"
    life.end()


@pytest.mark.parametrize("low", [False, True])
def test_what_is_over_goes_to_the_thread_a_few_at_a_time(tmp_path, monkeypatch, low):
    """low: the disk is nearly full, so that what was there at the last look does not wait."""
    monkeypatch.setattr("appliance.ioproc.retention.housekeeping.RETAIN_NS", 0)
    cluster = Cluster(tmp_path)
    life = cluster.live()
    held = life.keeping._chores = HeldThreads()
    for number in range(150):
        life.keeping.remove_later(Removal(NOW_MS, (), f"/nowhere/{number}"))
    if low:
        life.keeping._round = life.keeping._relieve(1, 0)
        life.keeping._fresh = 150
        life.world.space.low = True
    given = []
    idle = False
    while not idle:
        idle = life.keeping.tick(1, 0 if low else NOW_MS)
        given.append(len(held.jobs))
        held.jobs.clear()
    given = [count for count in given if count]  # the rounds that follow have nothing to do
    assert given == ([1] * 150 if low else [64, 64, 22])
    life.end()
