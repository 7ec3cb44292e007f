"""Which partitions are served, what a start may trust, and what a deletion leaves: real files, no
processes."""

import json
import os
import re
import types
from random import Random

import pytest
from core_world import NOW_MS, World, batch, seat_of, stays
from sim.disk import SimDisk

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.base.home import home_of
from appliance.base.os_disk import OsDisk, OsFile
from appliance.base.retention_clock import RetentionClock
from appliance.config.broker import BrokerConfig
from appliance.config.log_config import LogConfig
from appliance.ioproc.deletion.deleted_folders import DeletedFolders
from appliance.ioproc.deletion.partition_deletion import PartitionDeletion
from appliance.ioproc.deletion.undelete import PartitionUndelete
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from appliance.ioproc.durability.log_start_checkpoint import LogStartCheckpoint
from appliance.ioproc.lifecycle.partition_manager import PartitionManager
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ioproc.turn.dispatch import Dispatcher
from appliance.ioproc.turn.job_context import JobContext
from appliance.logstore.log import PartitionLog
from appliance.metadata.changes import (
    ConfigChanged,
    PartitionAdded,
    PartitionChanged,
    TopicRemoved,
)
from appliance.metadata.image import TOPIC, MetadataImage
from appliance.metadata.log_dirs import LogDirs
from appliance.metadata.parts import PartitionImage, TopicImage
from appliance.ring import partition_table as columns
from appliance.ring.messages import DELETE_RECORDS
from appliance.ring.partition_table import PartitionTable
from appliance.shell.flusher import run
from appliance.shell.log import Log as EventLog


def topic_id(name):
    return name.encode().ljust(16, b"\0")


class Chores:
    """The chores' thread, whose jobs run when they are taken."""

    def __init__(self):
        self.jobs = []

    def submit(self, tag, job):
        self.jobs.append((tag, job))

    def take_ended(self):
        jobs, self.jobs = self.jobs, []
        return [run(*job) for job in jobs]

    def outstanding(self):
        return len(self.jobs)

    def wait(self):
        pass

    def close(self):
        self.take_ended()


class Life:
    """One life of an ioproc over a folder; `table` given: its predecessor died alone."""

    def __init__(
        self,
        folder,
        image,
        handles,
        table=None,
        clean=False,
        ioprocs=1,
        dirs=None,
        disk=None,
        **settings,
    ):
        disk = disk or OsDisk()
        dirs = dirs or LogDirs.of(str(folder))
        self.world = World(folder, disk, table=table, folders=dirs.paths)
        self.lines, self.written = os.pipe()
        events = EventLog("ioproc-0", fd=self.written, journal=False)
        config = BrokerConfig.of({"node.id": "1", **settings})
        seat = seat_of(folder, config, ioprocs)
        self.follower = types.SimpleNamespace(image=image, handles=handles)
        core = self.world.core
        self.chores = Chores()
        self.world.served.spaces = [self.world.space for _ in dirs.paths]
        trims = LogStartCheckpoint(disk, Chores(), dirs.paths)
        ground = JobContext(disk, dirs, core, events)
        self.keeping = Housekeeping(config, ground, self.chores, trims, RetentionClock())
        self.world.questions.checkpoint = self.now(self.keeping.trims.add)
        left = JournalRecovery(disk, [path for _, path in dirs.online()], clean=clean)
        opener = PartitionOpener(disk, dirs, self.world.table, left, clean=clean)
        online = [path for _, path in dirs.online()]
        trash = DeletedFolders(disk, lambda: online, 0, ioprocs)
        leaving = PartitionDeletion(
            ground, self.keeping, trash, Chores(), lambda partition, now_ms: None
        )
        self.returning = PartitionUndelete(ground, trash, Chores())
        self.back = []  # what was in the trash
        parts = self.follower, self.keeping, opener, leaving, self.returning, self.back.append
        self.looked = []  # at what changed
        self.home = PartitionManager(seat, ground, *parts, lambda *what: self.looked.append(what))
        self.world.arrivals = Dispatcher(core, self.home.fetch, stays, self.world.endings)
        self.home.open_all(0, NOW_MS)

    def now(self, moved):
        """Durable before anything else happens."""

        def checkpoint(partition, told):
            moved(partition, told)
            self.keeping.trims.finish_trims()

        return checkpoint

    def settle(self, now_ms=NOW_MS):
        """Turn until nothing is left to do."""
        while not self.home.open_slice(self.world.now_ns, now_ms) or self.home.busy:
            self.keeping.tick(0, now_ms)
            self.keeping.trims.trim_next()
            self.world.threads.run_all()
            self.world.core.finish(self.world.now_ns)

    def said(self):
        os.write(self.written, b".")  # so that there is something to read
        return os.read(self.lines, 1 << 16)[:-1].decode()

    def end(self):
        os.close(self.lines)
        os.close(self.written)


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.image = MetadataImage()
        self.handles = {}
        self.lives = []

    def topic(self, name, partitions=1, identity=None):
        found = TopicImage(name, identity or topic_id(name))
        for index in range(partitions):
            found.partitions.append(
                PartitionImage(
                    index=index,
                    leader=1,
                    leader_epoch=0,
                    partition_epoch=0,
                    replicas=(1,),
                    isr=(1,),
                )
            )
            self.handles[found.topic_id, index] = len(self.handles)
        self.image.topics_by_name[name] = self.image.topics_by_id[found.topic_id] = found
        return found

    def remove(self, name):
        found = self.image.topics_by_name.pop(name)
        del self.image.topics_by_id[found.topic_id]
        return TopicRemoved(name, found.topic_id, len(found.partitions))

    def live(self, **rest):
        life = Life(self.folder, self.image, self.handles, **rest)
        self.lives.append(life)
        return life


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    for life in cluster.lives:
        life.end()


def produce(life, handle, count, **rest):
    for _ in range(count):
        life.world.append(handle, batch(b"v"), acks=1, **rest)
        (answer,) = life.world.turn()
        assert answer.flags == 0
    return life.world.core.partitions[handle]


def synced(life):
    life.world.turn(ms=3000)  # the background sync
    life.world.threads.run_all()
    life.world.turn()


def refuse(patch, kind, method):
    def call(file, *_):
        raise StorageFailed(file.path, 5, "Input/output error")

    patch.setattr(kind, method, call)


def cut(path, size):
    with open(path, "r+b") as file:
        file.truncate(size)


def spoil(path, position):
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 0xFF]))


def log_file(cluster, name="t-0"):
    return cluster.folder / name / f"{0:020d}.log"


def test_a_partition_is_opened_by_the_ioproc_its_hash_names(cluster):
    cluster.topic("t", partitions=20)
    life = cluster.live(ioprocs=3)
    ours = {n for n in range(20) if home_of(topic_id("t"), n, 3) == 0}
    assert {p.index for p in life.world.core.partitions.values()} == ours
    assert 0 < len(ours) < 20


def test_after_the_death_of_the_process_alone_nothing_synced_is_doubted(cluster):
    cluster.topic("t")
    first = cluster.live()
    produce(first, 0, 3)
    synced(first)
    produce(first, 0, 2)
    assert checkpoints.read(OsDisk(), str(cluster.folder), checkpoints.RECOVERY_POINT) == {}
    spoil(log_file(cluster), 65)  # would be taken for a torn tail if it were checked
    second = cluster.live(table=first.world.table)
    assert "offline" not in second.said()
    reopened = second.world.core.partitions[0]
    assert (reopened.log.end_offset, reopened.high_watermark) == (5, 5)
    assert reopened.log.recovery_point == 5, "what is served must outlive a power cut"


def test_what_no_sync_covered_is_checked_although_it_was_published(cluster):
    """The kernel may have dropped it: a sync that failed says so once, and to its process alone."""
    cluster.topic("t")
    first = cluster.live()
    produce(first, 0, 3)
    synced(first)
    size = log_file(cluster).stat().st_size
    produce(first, 0, 2)
    spoil(log_file(cluster), size + 65)
    second = cluster.live(table=first.world.table)
    assert "offline" not in second.said()
    assert second.world.core.partitions[0].log.end_offset == 3


def test_a_partition_whose_sync_failed_is_back_after_the_next_start(cluster, monkeypatch):
    cluster.topic("t")
    first = cluster.live()
    produce(first, 0, 3)
    with monkeypatch.context() as patch:
        refuse(patch, OsFile, "sync")
        first.world.turn(ms=3000)
        first.world.threads.run_all()
        first.world.turn()
        assert first.world.table.read_column(0, columns.STATUS) == columns.OFFLINE
        still = cluster.live(table=first.world.table)
        assert "partition-offline" in still.said()
        assert still.world.table.read_column(0, columns.STATUS) == columns.OFFLINE
    second = cluster.live(table=first.world.table)
    assert second.world.table.read_column(0, columns.STATUS) == columns.ONLINE
    assert second.world.core.partitions[0].log.recovery_point == 3


def test_bytes_behind_what_was_published_are_checked(cluster):
    cluster.topic("t")
    first = cluster.live()
    produce(first, 0, 5)
    size = log_file(cluster).stat().st_size
    with open(log_file(cluster), "ab") as file:
        file.write(b"half a batch")
    second = cluster.live(table=first.world.table)
    assert second.world.core.partitions[0].log.end_offset == 5
    assert log_file(cluster).stat().st_size == size


def test_after_a_kill_of_everything_a_torn_tail_is_cut_above_the_recovery_point(cluster):
    cluster.topic("t")
    first = cluster.live()
    produce(first, 0, 3)
    synced(first)
    first.keeping.tick(1 << 40, NOW_MS)
    first.keeping.tick(1 << 40, NOW_MS)
    produce(first, 0, 3)
    names = {("t", 0): 3}
    assert checkpoints.read(OsDisk(), str(cluster.folder), checkpoints.RECOVERY_POINT) == names
    cut(log_file(cluster), log_file(cluster).stat().st_size - 10)
    second = cluster.live()
    assert second.world.core.partitions[0].log.end_offset == 5


def test_corruption_below_the_recovery_point_fences_that_partition_alone(cluster):
    cluster.topic("t")
    cluster.topic("u")
    first = cluster.live()
    produce(first, 0, 3)
    produce(first, 1, 3)
    data_dir = str(cluster.folder)
    points = {("t", 0): 3, ("u", 0): 3}
    checkpoints.merge(OsDisk(), data_dir, checkpoints.RECOVERY_POINT, points)
    cut(log_file(cluster), 10)
    second = cluster.live()
    assert list(second.world.core.partitions) == [1]
    assert second.world.table.read_column(0, columns.STATUS) == columns.OFFLINE
    second.world.read(0, 0)
    second.world.append(0, batch(b"v"))
    assert [m.flags for m in second.world.turn()] == [errors.KAFKA_STORAGE_ERROR] * 2
    assert "partition-offline partition=t-0" in second.said()
    assert log_file(cluster).stat().st_size == 10, "nothing is cut below the recovery point"


def test_new_partitions_are_opened_some_a_turn_and_at_once_when_asked_for(cluster, monkeypatch):
    monkeypatch.setattr("appliance.ioproc.lifecycle.partition_manager.OPENING_NS", 0)
    life = cluster.live()
    topic = cluster.topic("t", partitions=4)
    life.home.apply([PartitionAdded("t", topic.topic_id, n) for n in range(4)])
    assert not life.home.open_slice(0, NOW_MS)
    assert list(life.world.core.partitions) == [0]
    life.world.append(3, batch(b"v"), acks=1)
    assert [m.flags for m in life.world.turn()] == [0]
    assert list(life.world.core.partitions) == [0, 3]
    gone = cluster.remove("t")
    life.home.apply([gone])
    assert life.home.open_slice(0, NOW_MS)
    life.settle()
    assert not life.world.core.partitions
    life.world.append(1, batch(b"v"), acks=1)
    assert [m.flags for m in life.world.turn()] == [errors.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_partition_without_records_costs_no_sync_and_comes_back_after_a_power_cut(tmp_path):
    disk = SimDisk(Random(1))
    disk.mkdir("/data")
    disk.sync_dir("/")
    disk.refusing = {("/data", kind): 5 for kind in ("sync", "sync_dir")}
    log = PartitionLog.create(disk, "/data/t-0", topic_id("t"), LogConfig(), now_ms=NOW_MS)
    log.close()
    disk.refusing = {}
    disk.power_cut()
    table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(64))), 64)
    opener = PartitionOpener(disk, LogDirs.of("/data"), table, clean=True)
    again, *_ = opener.open_log("t", 0, topic_id("t"), 0, LogConfig(), NOW_MS)
    assert (again.end_offset, again.failure) == (0, None)


def test_a_deleted_topic_is_renamed_at_once_and_removed_later(cluster):
    cluster.topic("t", partitions=2)
    life = cluster.live()
    produce(life, 0, 2)
    life.world.append(0, batch(b"v"), acks=-1, token=9)
    life.world.turn()
    removed = cluster.remove("t")
    again = cluster.topic("t", identity=b"again".ljust(16, b"\0"))
    handle = cluster.handles[again.topic_id, 0]
    added = PartitionAdded("t", again.topic_id, 0)
    life.home.apply([removed, added])
    life.settle()
    assert [m.flags for m in life.world.turn()] == [0], "its sync had begun and was waited for"
    names = sorted(name for name in os.listdir(cluster.folder) if name.startswith("t-"))
    assert [name.rpartition("-")[2] for name in names] == ["0", "delete", "delete"]
    assert life.world.core.partitions[handle].log.end_offset == 0
    life.keeping.tick(1, NOW_MS + 60_001)
    life.keeping.tick(2, NOW_MS + 60_001)
    assert [n for n in os.listdir(cluster.folder) if n.startswith("t-")] == ["t-0"]


def test_checkpoints_of_a_deleted_topic_do_not_reach_its_successor(cluster):
    cluster.topic("t")
    life = cluster.live()
    produce(life, 0, 5)
    life.world.ask(DELETE_RECORDS, 0, a=4)
    assert life.world.settle()[0].a == 4
    data_dir = str(cluster.folder)
    assert checkpoints.read(OsDisk(), data_dir, checkpoints.LOG_START) == {("t", 0): 4}
    removed = cluster.remove("t")
    life.home.apply([removed])
    life.settle()
    for name in (checkpoints.LOG_START, checkpoints.RECOVERY_POINT, checkpoints.HIGH_WATERMARK):
        assert checkpoints.read(OsDisk(), data_dir, name) == {}


def test_deleted_records_stay_deleted_after_a_kill(cluster):
    cluster.topic("t")
    first = cluster.live()
    produce(first, 0, 5)
    first.world.ask(DELETE_RECORDS, 0, a=4)
    first.world.settle()
    second = cluster.live()
    second.world.read(0, 3)
    (answer,) = second.world.turn()
    assert (answer.flags, answer.c) == (errors.OFFSET_OUT_OF_RANGE, 4)


def test_folders_that_belong_to_nobody_are_moved_away_with_their_records(cluster):
    cluster.topic("t")
    cluster.topic("old")
    first = cluster.live()
    produce(first, 1, 3)
    produce(first, 0, 2)
    cluster.remove("old")
    cluster.remove("t")
    cluster.topic("t", identity=b"other".ljust(16, b"\0"))
    for name in (checkpoints.LOG_START, checkpoints.RECOVERY_POINT):
        checkpoints.merge(OsDisk(), str(cluster.folder), name, {("t", 0): 1})
    second = cluster.live()
    names = os.listdir(cluster.folder)
    strays = sorted(name for name in names if name.endswith("-stray"))
    assert [name.split(".")[0] for name in strays] == ["old-0", "t-0"]
    assert all(log_file(cluster, name).stat().st_size for name in strays)
    assert second.said().count("folder-moved-away") == 2
    assert second.world.core.partitions[2].log.end_offset == 0
    third = cluster.live()
    assert third.said() == "", "once is enough"
    assert third.world.core.partitions[2].log.log_start_offset == 0


def test_settings_and_leader_epochs_follow_the_metadata(cluster):
    found = cluster.topic("t")
    life = cluster.live()
    cluster.image.configs[TOPIC, "t"] = {"max.message.bytes": "80"}
    life.home.apply([ConfigChanged(TOPIC, "t", "max.message.bytes")])
    life.world.append(0, batch(b"v" * 100))
    assert life.world.turn()[0].flags == errors.MESSAGE_TOO_LARGE
    found.partitions[0] = PartitionImage(
        index=0, leader=1, leader_epoch=3, partition_epoch=1, replicas=(1,), isr=(1,)
    )
    life.home.apply([PartitionChanged("t", found.topic_id, 0)])
    life.world.read(0, 0, b=2, wait=False)
    assert life.world.turn()[0].flags == errors.FENCED_LEADER_EPOCH
    assert life.world.table.read_column(0, columns.LEADER_EPOCH) == 3


def test_retention_drops_old_segments_and_publishes_the_new_log_start(cluster):
    cluster.topic("t")
    cluster.image.configs[TOPIC, "t"] = {
        "segment.bytes": "1048576",
        "retention.bytes": "0",
        "file.delete.delay.ms": "0",
    }
    life = cluster.live(**{"log.retention.check.interval.ms": "1"})
    big = batch(b"v" * 600_000)
    for _ in range(3):
        life.world.append(0, big)
        life.world.turn()
    for _ in range(3):  # the active segment is rolled, then synced, then it goes
        life.world.turn(ms=3000)
        life.world.threads.run_all()
        life.world.turn()
        while not life.keeping.tick(life.world.now_ns, NOW_MS + 1):
            pass
    life.world.turn()
    assert life.world.table.read_column(0, columns.LOG_START) == 3
    for _ in range(2):
        life.keeping.tick(life.world.now_ns, NOW_MS + 10)
    logs = [n for n in os.listdir(cluster.folder / "t-0") if ".log" in n]
    assert len(logs) == 1


def test_a_nearly_full_disk_is_said_once_and_so_is_its_end(cluster):
    cluster.topic("t")
    life = cluster.live()
    spaces = [(1000 << 20, 1 << 20), (1000 << 20, 1 << 20), (1000 << 20, 900 << 20)]
    life.keeping._disk = types.SimpleNamespace(
        space=lambda path: spaces.pop(0), exists=lambda path: False
    )
    life.world.space._keep_bytes = 64 << 20
    codes = []
    for second in range(3):
        life.keeping.look_at_space(second * 10**9)
        life.world.append(0, batch(b"v"))
        codes.append(life.world.turn()[0].flags)
    assert codes == [errors.KAFKA_STORAGE_ERROR] * 2 + [0]
    said = [re.search(r" (disk-[a-z-]+)", line)[1] for line in life.said().splitlines()]
    assert said == ["disk-nearly-full", "disk-has-room"]


def test_several_ioprocs_keep_each_others_checkpoints(tmp_path):
    disk, data_dir = OsDisk(), str(tmp_path)
    name = checkpoints.RECOVERY_POINT
    checkpoints.merge(disk, data_dir, name, {("a", 0): 1, ("b.c_d-e", 3): 2})
    checkpoints.merge(disk, data_dir, name, {("a", 0): 5, ("z", 1): 7})
    checkpoints.merge(disk, data_dir, name, {("z", 1): None})
    assert checkpoints.read(disk, data_dir, name) == {("a", 0): 5, ("b.c_d-e", 3): 2}
    assert (tmp_path / name).read_text() == "0\n2\na 0 5\nb.c_d-e 3 2\n"
    for damage in ("", "0\n", "0\n3\na 0 5\n", "1\n1\na 0 5\n", "0\n1\na 0\n", "0\n1\na x 5\n"):
        (tmp_path / name).write_text(damage)
        assert checkpoints.read(disk, data_dir, name) == {}, json.dumps(damage)
