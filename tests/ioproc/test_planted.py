"""An exception in any function that is called by the work beside requests costs one partition, or
one run: it is told once, with its traceback; all else goes on, and what can be finished is."""

import itertools
import os
from functools import partial
from random import Random

import pytest
from core_world import NOW_MS, World, batch, registration
from made_up_leader import MadeUp, Poller
from planting import Planted, Plants, play
from pulling_world import SMALL, Follower, level, some, write
from test_acknowledged import fresh_table
from test_cleaning import COMPACT, CleaningWorld
from test_coordinating import Groups
from test_home import Cluster
from test_moving import Control, fresh_disk, life
from test_replicas_come_and_go import placed

from appliance.base import errors
from appliance.base.os_disk import OsDisk
from appliance.ioproc.coordination import coordinator_loading
from appliance.ioproc.deletion import deleted_folders, partition_deletion, undelete
from appliance.ioproc.durability import group_commit, journals, log_start_checkpoint
from appliance.ioproc.lifecycle import partition_manager, partition_roles, replica_rebuild
from appliance.ioproc.log_folders import alter_log_dirs, file_copy
from appliance.ioproc.replica_fetcher import (
    divergence,
    fetch_lanes,
    fetched_records,
    fetcher_context,
    fetchers,
)
from appliance.ioproc.replica_fetcher import leader_fetcher as leaders
from appliance.ioproc.retention import log_cleaner
from appliance.logstore import swap
from appliance.metadata.changes import PartitionAdded
from appliance.metadata.trash import bury, entry
from appliance.metadata.trash import write_trash as write_list
from appliance.peers.link import Link
from appliance.ring.partition_table import CLEANED_TO
from appliance.shell.bugs import Bugs
from tests.netproc.netproc_world import World as NetprocWorld
from tests.seats import log_file

pytestmark = pytest.mark.interpreted("plants exceptions in parts")


class Told:
    """The events of one play."""

    def __init__(self, folder):
        folder.mkdir()
        self.fd, log = log_file(folder, "ioproc")
        self.log = log
        self.path, self.bugs = folder / "log", Bugs(log)

    def check(self, plants):
        lines = [line for line in self.path.read_text().splitlines() if " bug " in line]
        os.close(self.fd)
        assert len(lines) == plants.raised, lines
        assert all("Traceback" in line and "planted" in line for line in lines)


# Partitions that come and go ----------------------------------------------------------------------

HOME = (
    partition_manager,
    partition_deletion,
    undelete,
    partition_roles,
    deleted_folders,
    log_start_checkpoint,
    replica_rebuild,
)


def settle(life, plants):
    """All that there is to do, within a bound, in the guards of `Chores`."""
    bugs = life.keeping.trims.bugs
    for _ in range(60):
        done = []
        go_on = partial(life.home.open_slice, life.world.now_ns, NOW_MS)
        with plants.chores():
            bugs.guard("come and go", lambda done=done, go_on=go_on: done.append(go_on()))
            bugs.guard("log starts", life.keeping.trims.trim_next)
        life.keeping.tick(0, NOW_MS)
        life.world.threads.run_all()
        life.world.core.finish(life.world.now_ns)
        life.world.now_ns += 2_000_000_000
        if done == [True] and not life.home.busy:
            return
    raise AssertionError("something is never finished")


def comes_and_goes(folder, plants):
    """Topics are made, deleted and brought back, others are led by other nodes."""
    folder.mkdir()
    cluster = Cluster(folder)
    cluster.image.brokers[1] = registration()
    sound, topic = cluster.topic("sound"), cluster.topic("t", partitions=2)
    one = cluster.live()
    told = Told(folder / "said")
    one.world.core.barrier.bugs = one.keeping.trims.bugs = told.bugs
    one.world.append(1, batch(b"v"), acks=1)
    one.world.settle()
    new = cluster.topic("new")
    one.home.apply([PartitionAdded("new", new.topic_id, 0)], 10)
    settle(one, plants)
    listed = entry(bury(cluster.image, topic, NOW_MS, size=70, records=1))
    write_list(OsDisk(), str(folder), [listed], {})
    one.home.apply([cluster.remove("t")], 40)
    settle(one, plants)
    cluster.image.topics_by_name["t"] = cluster.image.topics_by_id[topic.topic_id] = topic
    one.home.apply([PartitionAdded("t", topic.topic_id, index) for index in range(2)], 50)
    settle(one, plants)
    change = placed(cluster, 1, 2, leader=2, epoch=3, name="new")
    one.home.roles.queue_role((change.topic_id, 0))
    with plants.chores():
        told.bugs.guard("roles", one.home.roles.tell_roles)
    one.home.roles.tell_roles()
    settle(one, plants)
    handle = cluster.handles[sound.topic_id, 0]
    one.world.append(handle, batch(b"other"), acks=1, token=99)
    assert (errors.NONE, 99) in {(m.flags, m.token) for m in one.world.settle()}
    told.check(plants)
    one.end()
    for partition in one.world.core.partitions.values():
        partition.log.let_go()
    second = cluster.live()  # whatever was left half done is found and mended
    assert all(p.broken is None for p in second.world.core.partitions.values())
    assert len(second.world.core.partitions) == 4
    assert second.world.core.partitions[1].log.end_offset == 1
    second.end()


def test_partitions_come_and_go(tmp_path, monkeypatch):
    numbers = itertools.count()
    names = play(
        monkeypatch, HOME, lambda plants: comes_and_goes(tmp_path / str(next(numbers)), plants)
    )
    assert {
        "PartitionDeletion._let_go",
        "DeletedFolders.expire_folders",
        "PartitionRoles._tell",
        "PartitionManager._open",
    } <= set(names)


# Syncs, and groups in journals --------------------------------------------------------------------


def syncs(folder, plants):
    """Acknowledged by syncs of files, by groups, and by what is synced in the background."""
    folder.mkdir()
    world, told = World(folder), Told(folder / "said")
    world.core.barrier.bugs = world.journals.bugs = told.bugs
    p, q, r = (world.add(name, flush_policy="group") for name in "pqr")
    answers = {}

    def turn():
        with plants.chores():
            sent = world.turn()
        answers.update({m.token: m.flags for m in sent})
        world.threads.run_all()
        world.journal_writes.run_all()
        world.now_ns += 60_000_000

    for number in range(8):
        world.quiet = number == 3
        for partition in (p,) if world.quiet else (p, q):
            world.append(
                partition.handle, batch(b"v"), acks=-1, token=10 * number + partition.handle
            )
        world.append(r.handle, batch(b"v"), acks=1, token=10 * number + 9)
        turn()
    for _ in range(80):
        turn()
    broken = [one for one in (p, q, r) if one.broken is not None]
    assert len(broken) <= plants.raised
    assert len(answers) == 8 * 3 - 1, "somebody waits for ever"
    assert set(answers.values()) <= {errors.NONE, errors.KAFKA_STORAGE_ERROR}
    for one in (p, q, r):
        assert one in broken or not (one.unseen or one.syncing), one
    told.check(plants)


BARRIERS = (
    "GroupCommit._sync",
    "ReplicaFetchers.run_once",
    "Loading.load_slice",
    "LeaderFetcher._hear",
)
"""Functions that catch what others raise, and the one that a loop calls, which catches it."""


def test_syncs(tmp_path, monkeypatch):
    numbers = itertools.count()
    names = play(
        monkeypatch,
        (group_commit, journals),
        lambda plants: syncs(tmp_path / str(next(numbers)), plants),
        BARRIERS,
    )
    assert {
        "GroupCommit.begin_syncs",
        "GroupCommit._end",
        "Journals._begin",
        "GroupCommit.tick",
    } <= set(names)


# Compaction ---------------------------------------------------------------------------------------


def cleans(folder, plants):
    folder.mkdir()
    world, told = CleaningWorld(folder), Told(folder / "said")
    world.core.barrier.bugs = told.bugs
    parts = [world.add(name, **COMPACT) for name in "tu"]
    for one in parts:
        world.fill(one, count=30)
    before = [world.latest(one) for one in parts]
    for _ in range(40):
        with plants.chores():
            told.bugs.guard("compaction", lambda: world.tick(20))
            world.work.run_all()
        world.core.finish(world.now_ns)
    broken = [one for one in parts if one.broken is not None]
    assert len(broken) <= plants.raised
    assert [world.latest(one) for one in parts] == before
    assert all(one in broken or world.table.read_column(one.handle, CLEANED_TO) for one in parts)
    assert not any(one.log.cleaning for one in parts)
    told.check(plants)


def test_compaction(tmp_path, monkeypatch):
    numbers = itertools.count()
    names = play(
        monkeypatch,
        (log_cleaner, swap),
        lambda plants: cleans(tmp_path / str(next(numbers)), plants),
    )
    assert {"LogCleaner._choose", "LogCleaner._replace", "LogCleaner._keys", "swap.replace"} <= set(
        names
    )


# Moves between log folders ------------------------------------------------------------------------


def moves(folder, plants):
    folder.mkdir()
    disk, control, table = fresh_disk(Random(1)), Control(), fresh_table()
    told = Told(folder / "said")
    world, moved, keeping = life(disk, control, table, told.log)
    world.core.barrier.bugs = keeping.trims.bugs = told.bugs
    parts = list(world.core.partitions.values())
    for one in parts:
        for number in range(6):
            world.append(one.handle, batch(b"%d" % number * 300), acks=1)
            world.turn()
    world.settle()
    ends = [one.log.end_offset for one in parts]
    assert (
        moved.begin_move(parts[0], 1, NOW_MS)
        == moved.begin_move(parts[1], 1, NOW_MS)
        == errors.NONE
    )
    for _ in range(100):
        world.now_ns += 100_000_000
        with plants.chores():
            told.bugs.guard("moves", lambda: moved.tick(world.now_ns, NOW_MS))
        world.threads.run_all()
        world.core.finish(world.now_ns)
    assert not moved.under_way
    broken = [one for one in parts if one.broken is not None]
    assert len(broken) <= plants.raised
    assert plants.raised or [one.directory for one in parts[:2]] == [1, 1]
    told.check(plants)
    for one in parts:
        one.log.let_go()
    disk.process_death()
    second, _, _ = life(disk, control, fresh_table(), tmp_log_of(folder))
    assert [one.log.end_offset for one in second.core.partitions.values()] == ends


def tmp_log_of(folder):
    return log_file(folder, "ioproc-1")[1]


def test_moves(tmp_path, monkeypatch):
    monkeypatch.setattr(alter_log_dirs, "NEAR", 2000)
    monkeypatch.setattr(alter_log_dirs.file_copy, "PIECE", 700)
    numbers = itertools.count()
    names = play(
        monkeypatch,
        (alter_log_dirs, file_copy),
        lambda plants: moves(tmp_path / str(next(numbers)), plants),
    )
    assert {
        "LogDirMoves._change",
        "LogDirMoves._copy_rest",
        "file_copy.seal",
        "LogDirMoves._open",
    } <= set(names)


# Fetching from leaders ----------------------------------------------------------------------------


def fetches(folder, plants):
    """Two partitions of a leader, one of them with a log that parts from the leader's."""
    folder.mkdir()
    poller, told = Poller(), Told(folder / "said")
    leader = MadeUp(poller)
    follower = Follower(folder, leader)
    follower.core.barrier.bugs = follower.trims.bugs = told.bugs
    led = [leader.add(name, **SMALL) for name in ("t", "u")]
    parts = [follower.add(one) for one in led]
    rng = Random(2)
    for one in led:
        write(one.log, *some(rng, 6), epoch=0)

    def is_over(one, partition):
        return partition.broken is not None or level(one, partition)()

    def turns(until):
        for _ in range(3000):
            with plants.chores():
                follower.turn()
            if until():
                return
        raise AssertionError(f"not fetched: {follower.said.lines}")

    turns(lambda: all(map(is_over, led, parts)))
    if parts[0].broken is None:  # it led, and has what nobody else has
        follower.lead(parts[0], 1)
        write(parts[0].log, *some(rng, 2), epoch=1)
        parts[0].log.sync_now()
        led[0].epoch = 2
        led[0].log.begin_epoch(2)
        write(led[0].log, *some(rng, 3), epoch=2)
        follower.follow(parts[0], 2)
    write(led[1].log, *some(rng, 3), epoch=0)
    turns(lambda: all(map(is_over, led, parts)))
    assert len([one for one in parts if one.broken is not None]) <= plants.raised
    told.check(plants)
    follower.pulling.close()
    leader.close()


def test_fetching(tmp_path, monkeypatch):
    monkeypatch.setattr(leaders, "AFTER_BUG_MS", 20)  # each story would wait for a second
    numbers = itertools.count()
    modules = (fetchers, leaders, divergence, fetched_records, fetch_lanes, fetcher_context)
    names = play(
        monkeypatch, modules, lambda plants: fetches(tmp_path / str(next(numbers)), plants),
        BARRIERS,
    )  # fmt: skip
    assert {
        "LeaderFetcher._take_records",
        "DivergenceTruncation._go_back",
        "fetched_records.append_fetched",
    } <= set(names)


# Loading of coordinators --------------------------------------------------------------------------


def loads(folder, plants):
    folder.mkdir()
    world = Groups(folder)
    world.commit(1, token=1)
    world.turn()
    world.threads.run_all()
    world.turn()
    host = world.core.coordinators[world.partition.topic]
    world.core.follow(world.partition, 2)
    world.core.lead(world.partition, 3)
    with plants.chores():
        for _ in range(5):
            host.run_once(NOW_MS)
    bugs = [cause for _, event, cause in world.events.said if event == "bug"]
    assert len(bugs) == plants.raised and all("planted" in cause for cause in bugs)
    assert world.partition.broken is None
    world.core.follow(world.partition, 4)
    world.core.lead(world.partition, 5)
    for _ in range(5):
        host.run_once(NOW_MS)
    assert host.shards(), "the next epoch loads it"


def test_loading(tmp_path, monkeypatch):
    numbers = itertools.count()
    names = play(
        monkeypatch, (coordinator_loading,),
        lambda plants: loads(tmp_path / str(next(numbers)), plants), BARRIERS,
    )  # fmt: skip
    assert {"coordinator_loading.load", "Loads.replay", "coordinator_loading._take"} <= set(names)


def test_a_link_whose_handler_raises_is_hung_up(tmp_path):
    world, told = NetprocWorld(tmp_path), Told(tmp_path / "said")
    process = world.io_process()
    process.raise_barriers(told.bugs)
    hung_up = []

    class Broken(Link):
        def __init__(self):
            """Without a connection."""

        def close(self):
            hung_up.append(self)
            raise Planted("planted")

    try:
        raise Planted("planted")
    except Planted as bug:
        process.on_failure(Broken(), bug)
    assert len(hung_up) == 1
    told.check(Plants(raised=2))
    world.close()
