"""What an ioproc does about partitions when the disk is full: it opens them as soon as there is
room, and what is trimmed or deleted frees room at once."""

import errno
import os

import pytest
from core_world import NOW_MS, HeldThreads, World, batch
from sim.disk import SimDisk
from test_home import Cluster

from appliance.base import errors
from appliance.base.errors import DiskFull
from appliance.base.os_disk import OsDisk
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.durability.log_start_checkpoint import LogStartCheckpoint
from appliance.metadata.image import TOPIC
from appliance.ring import partition_table as columns
from appliance.ring.messages import DELETE_RECORDS

SECOND = 10**9


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    for life in cluster.lives:
        life.end()


def no_room(path, *_, **__):
    raise DiskFull(str(path), 28, "No space left on device")


def test_a_partition_that_found_no_room_is_opened_when_there_is_some(cluster, monkeypatch):
    cluster.topic("t", partitions=2)
    monkeypatch.setattr(OsDisk, "mkdir", no_room)
    life = cluster.live()
    assert not life.world.core.partitions
    assert life.world.table.read_column(0, columns.STATUS) == columns.OFFLINE
    for second in range(3):
        life.home.open_slice(second * SECOND, NOW_MS)
    assert life.said().count("partition-offline") == 2, "each is said once"
    monkeypatch.undo()
    while not life.home.open_slice(4 * SECOND, NOW_MS):
        pass  # the others follow in the next turns
    assert life.said().count("partition-online") == 2
    assert not life.world.served.refused
    life.world.append(1, batch(b"v"), acks=1)
    assert [m.flags for m in life.world.turn()] == [0]
    assert life.home._without_room == {}


def test_a_topic_that_found_no_room_and_was_deleted_is_forgotten(cluster, monkeypatch):
    cluster.topic("t")
    monkeypatch.setattr(OsDisk, "mkdir", no_room)
    life = cluster.live()
    cluster.remove("t")
    life.home.open_slice(SECOND, NOW_MS)
    assert life.home._without_room == {}


def segments(cluster):
    return [n for n in os.listdir(cluster.folder / "t-0") if ".log" in n]


@pytest.mark.parametrize("low", [True, False])
def test_what_is_trimmed_goes_at_once_while_the_disk_is_nearly_full(cluster, low):
    cluster.topic("t")
    cluster.image.configs[TOPIC, "t"] = {"segment.bytes": "1048576"}
    life = cluster.live()
    world = life.world
    big = batch(b"v" * 600_000)
    for _ in range(3):
        world.append(0, big)
        world.turn()
    world.settle()
    world.space.low = low
    world.ask(DELETE_RECORDS, 0, a=3)
    assert [m.flags for m in world.turn()] == [0]
    life.keeping._core.served.spaces = [Still(low)]
    for _ in range(8):  # rolled, synced, renamed, removed
        world.turn(ms=2100)
        world.threads.run_all()
        world.turn()
        life.keeping.tick(world.now_ns, NOW_MS)
    assert len([name for name in segments(cluster) if name.endswith(".log")]) == 1
    assert len(segments(cluster)) == (1 if low else 4), "file.delete.delay.ms holds otherwise"
    assert not life.keeping.trims.trimmed


class Still:
    """A guard that says what it is told."""

    def __init__(self, low):
        self.low = low

    def due(self, now_ns):
        return False

    def wrote(self, n):
        pass


def test_a_log_start_that_could_not_be_written_down_is_not_acknowledged(tmp_path):
    disk = SimDisk()
    disk.mkdir("/data")
    world = World("/data", disk=disk)
    p = world.add()
    world.append(p.handle, batch(b"a"))
    world.settle()
    threads = HeldThreads()
    trims = LogStartCheckpoint(disk, threads, ["/data"])
    world.questions.checkpoint = trims.add

    def ask(token):
        world.ask(DELETE_RECORDS, p.handle, token=token, a=1)
        assert world.turn() == []
        trims.trim_next()
        threads.run_all()
        trims.trim_next()
        return [m.flags for m in world.turn()]

    disk.refusing = {("/data/log-start", "create"): errno.ENOSPC}
    for token in (1, 2):
        assert ask(token) == [errors.KAFKA_STORAGE_ERROR]
    assert p.broken is None
    disk.refusing = {}
    assert ask(3) == [0]
    assert checkpoints.read(disk, "/data", checkpoints.LOG_START) == {("t", 0): 1}
