"""A deleted topic in the hands of an ioproc and of control's list, over a disk that loses power at
every step: it is there, or it can be brought back whole, or it was given up on purpose."""

import os
import types
from random import Random

import pytest
from core_world import NOW_MS, World, batch, seat_of
from sim.disk import PowerCut, SimDisk
from test_home import Chores

from appliance.base.retention_clock import RetentionClock
from appliance.config.broker import BrokerConfig
from appliance.control.deletion.topic_trash import TopicTrash
from appliance.controller.decision import Situation
from appliance.controller.topics import NewTopic
from appliance.controller.undelete import UNDELETE, undelete
from appliance.ioproc.deletion.deleted_folders import LOOK_EVERY_NS, MARK, DeletedFolders
from appliance.ioproc.deletion.partition_deletion import PartitionDeletion
from appliance.ioproc.deletion.undelete import PartitionUndelete
from appliance.ioproc.durability.log_start_checkpoint import LogStartCheckpoint
from appliance.ioproc.lifecycle.partition_manager import PartitionManager
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ioproc.turn.job_context import JobContext
from appliance.metadata import trash as trash_file
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import LogDirs
from appliance.metadata.trash import TRASH_FILE
from appliance.shell.log import Log as EventLog
from appliance.wire import kraft_records as kraft

DATA = "/data"
RECORDS = 6
HOUR_MS = 3_600_000
OLD, NEW = b"old".ljust(16, b"\0"), b"new".ljust(16, b"\0")
SILENT = EventLog("test", fd=os.open(os.devnull, os.O_WRONLY), journal=False)


class Machine:
    """Control's list and one ioproc over a disk. `log` is the metadata log: a commit is atomic."""

    def __init__(self, disk=None):
        self.disk = disk or SimDisk()
        self.log = []
        self.lagging = []  # changes that the ioproc has not heard of yet
        self.lags = False
        self.config = BrokerConfig.of({"node.id": "1"})
        self.now_ms = NOW_MS
        self.now_ns = 0
        if not self.disk.exists(DATA):
            self.disk.mkdir(DATA)
            self.disk.sync_dir("/")
        self.start()

    def start(self, clean=False):
        self.seen = self.applied = len(self.log)
        self.lagging.clear()
        self.image = MetadataImage()
        self.handles = {}
        self.number = 0
        for record in self.log:
            self.apply(record)
        self.trash = TopicTrash(self.disk, [DATA], 1, lambda offset: offset <= self.seen, SILENT)
        self.world = World(DATA, disk=self.disk)
        self.chores = Chores()
        dirs = LogDirs.of(DATA)
        core = self.world.core
        self.world.served.spaces = [self.world.space]
        trims = LogStartCheckpoint(self.disk, Chores(), dirs.paths)
        ground = JobContext(self.disk, dirs, core, SILENT)
        keeping = Housekeeping(self.config, ground, self.chores, trims, RetentionClock())
        self.world.questions.checkpoint = keeping.trims.add
        self.keeping = keeping
        opener = PartitionOpener(self.disk, dirs, self.world.table, clean=clean)
        seat = seat_of(DATA, self.config)
        self.follower = types.SimpleNamespace(image=self.image, handles=self.handles)
        trash = DeletedFolders(self.disk, lambda: [DATA], 0, 1)
        leaving = PartitionDeletion(
            ground, keeping, trash, Chores(), lambda partition, now_ms: None
        )
        returning = PartitionUndelete(ground, trash, Chores())
        self.back = []
        parts = self.follower, keeping, opener, leaving, returning, self.back.append
        self.home = PartitionManager(seat, ground, *parts, lambda *what: None)
        self.home.open_all(self.now_ns, self.now_ms)

    def apply(self, record):
        changes = self.image.apply(0, record)
        if isinstance(record, kraft.PartitionRecord):
            self.handles[record.topic_id, record.partition_id] = self.number
            self.number += 1
        return changes

    def commit(self, *records):
        """As control does it: the list first, then the log, then the ioproc hears of it."""
        self.trash.before(records, self.image, self.config, lambda *_: (600, RECORDS), self.now_ms)
        self.note()
        self.disk.change("/metadata", "commit")
        self.log += records
        self.lagging += [change for record in records for change in self.apply(record)]
        if not self.lags:
            self.catch_up()
        self.turn()

    def note(self):
        """What control's thread writes."""
        noted = self.trash.job()
        if noted is not None:
            note, job = noted
            job()
            self.trash.wrote(note, None)

    def catch_up(self):
        """The ioproc looks at the metadata log."""
        self.home.apply(self.lagging, self.applied)
        self.lagging = []
        self.applied = len(self.log)

    def turn(self, ms=1001):
        self.now_ms += ms
        self.now_ns += ms * 1_000_000
        if self.trash.due(self.now_ms):
            self.trash.tick(self.image, self.config, len(self.log), self.now_ms)
            self.note()
        while not self.home.open_slice(self.now_ns, self.now_ms) or self.home.busy:
            self.keeping.tick(self.now_ns, self.now_ms)
        self.keeping.trims.finish_trims()
        self.seen = self.home.leaving.replayed(self.applied)
        self.keeping.tick(self.now_ns, self.now_ms)

    def create(self, topic_id, name="t"):
        self.commit(
            kraft.TopicRecord(name=name, topic_id=topic_id),
            kraft.ConfigRecord(
                resource_type=2, resource_name=name, name="retention.ms", value="-1"
            ),
            kraft.PartitionRecord(
                partition_id=0, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1,
                leader_epoch=0, partition_epoch=0,
            ),
        )  # fmt: skip

    def delete(self, topic_id):
        self.commit(kraft.RemoveTopicRecord(topic_id=topic_id))

    def undelete(self, which="true"):
        situation = Situation(
            image=self.image, config=self.config, node_id=1, directory_id=bytes(16),
            new_id=lambda: bytes(16), free_rows=10,
        )  # fmt: skip
        asked = NewTopic("t", configs={UNDELETE: which})
        records, created = undelete(situation, {1: self.trash.kept("t")}, asked)
        self.commit(*records)
        return created

    def partition(self, topic_id):
        return self.world.core.partitions.get(self.handles.get((topic_id, 0), -1))

    def fill(self, topic_id):
        """Six records, the first two deleted, all on the disk."""
        partition = self.partition(topic_id)
        for _ in range(RECORDS):
            self.world.append(partition.handle, batch(topic_id), acks=1)
            self.world.turn()
        self.world.settle()
        partition.log.advance_log_start(2)
        self.keeping.trims.add(partition, lambda _: None)
        self.keeping.trims.finish_trims()

    def check(self, topic_id):
        partition = self.partition(topic_id)
        assert partition is not None
        assert partition.broken is None
        assert (partition.log.log_start_offset, partition.log.end_offset) == (2, RECORDS)
        found = partition.log.locate(2, 1 << 20, RECORDS)
        assert found is not None
        assert not self.disk.exists(f"{partition.log.path}/{MARK}")
        data = self.disk.open_file(f"{partition.log.path}/{0:020d}.log")
        assert topic_id in data.pread(data.size(), 0)
        data.close()

    def names(self):
        return [n for n in self.disk.listdir(DATA) if n.startswith("t-0")]


def filled():
    machine = Machine()
    machine.create(OLD)
    machine.fill(OLD)
    return machine


def test_a_topic_comes_back_with_its_records_its_log_start_and_its_settings():
    machine = filled()
    machine.delete(OLD)
    assert machine.names() == [f"t-0.{OLD.hex()}-delete"]
    assert machine.partition(OLD) is None
    created = machine.undelete()
    assert (created.topic_id, created.configs) == (OLD, {"retention.ms": "-1"})
    machine.check(OLD)
    assert machine.image.topics_by_name["t"].partitions[0].leader_epoch == 1
    machine.turn()
    assert not machine.trash.view.topics, "it is back, so it is not in the trash"
    machine.start()
    machine.check(OLD)


def test_what_a_later_topic_of_the_name_left_does_not_matter():
    machine = filled()
    machine.delete(OLD)
    machine.create(NEW)
    machine.fill(NEW)
    machine.delete(NEW)
    assert machine.trash.kept("t")[-1].buried.topic_id == NEW
    machine.start()
    assert set(machine.names()) == {f"t-0.{one.hex()}-delete" for one in (OLD, NEW)}
    machine.undelete()
    machine.check(NEW)
    machine.delete(NEW)
    machine.undelete()
    machine.check(NEW)


def test_an_ioproc_that_hears_late_of_deletion_and_return_loses_nothing():
    machine = filled()
    machine.lags = True
    machine.delete(OLD)
    machine.undelete()
    machine.turn()
    machine.turn()
    assert machine.trash.view.topics, "somebody may still have to put it away and take it back"
    machine.catch_up()
    for _ in range(2):
        machine.turn()
    machine.check(OLD)
    assert not machine.trash.view.topics


def test_a_deletion_that_waits_behind_a_return_keeps_what_is_known_of_it():
    machine = filled()
    machine.delete(OLD)
    machine.lags = True
    machine.undelete()
    machine.delete(OLD)
    assert machine.trash.view.topics[OLD].records == RECORDS
    machine.undelete()
    machine.catch_up()
    machine.turn()
    machine.check(OLD)


def test_a_return_that_was_cut_short_before_the_opening_keeps_what_is_known():
    """The folder has its name again, the process dies, and the topic is deleted once more."""
    machine = filled()
    machine.delete(OLD)
    machine.disk.rename(f"{DATA}/t-0.{OLD.hex()}-delete", f"{DATA}/t-0")
    machine.disk.sync_dir(DATA)
    machine.start()
    assert machine.names() == [f"t-0.{OLD.hex()}-delete"]
    machine.undelete()
    machine.check(OLD)


def test_its_time_is_over():
    machine = filled()
    machine.delete(OLD)
    machine.turn(HOUR_MS - 10_000)
    assert machine.names()
    machine.turn(20_000)
    machine.turn()
    machine.turn()
    assert machine.names() == []
    assert machine.home.gone() == [("t", OLD)]
    with pytest.raises(Exception, match="time in the trash is over"):
        machine.undelete()


def test_folders_that_are_let_go_are_removed_and_what_groups_committed_stays():
    """Another node may keep the records."""
    machine = filled()
    machine.delete(OLD)
    machine.trash._several = True
    machine.trash._lacking = lambda config: 1  # byte, on this node's disk
    for _ in range(3):
        machine.turn()
    assert machine.names() == []
    assert machine.home.may_return(OLD)
    assert machine.home.gone() == []
    machine.turn(HOUR_MS)
    machine.turn()
    assert machine.home.gone() == [("t", OLD)]
    assert not machine.home.may_return(OLD)


def test_what_was_over_while_nobody_looked_goes_after_the_start():
    machine = filled()
    machine.delete(OLD)
    machine.now_ms += 2 * HOUR_MS
    machine.start()
    for _ in range(3):
        machine.turn()
    assert machine.names() == []


def test_a_list_that_did_not_change_is_not_read_again(monkeypatch):
    machine = filled()
    machine.delete(OLD)
    reads = []
    listed = trash_file.listed
    monkeypatch.setattr(trash_file, "listed", lambda *where: reads.append(1) or listed(*where))
    for _ in range(30):
        machine.turn()
    assert len(reads) <= 1
    del reads[:]
    machine.create(NEW)
    machine.fill(NEW)
    machine.delete(NEW)
    machine.turn()
    assert reads


def test_a_change_that_cannot_be_seen_is_found_within_a_minute(monkeypatch):
    monkeypatch.setattr(trash_file, "version_of", lambda *_: (1, 1))
    machine = filled()
    machine.delete(OLD)
    machine.turn(HOUR_MS + 1)
    for _ in range(61):
        machine.turn()
    assert machine.names() == []


def test_a_list_that_cannot_be_read_removes_nothing():
    machine = filled()
    machine.delete(OLD)
    machine.disk.open_file(f"{DATA}/{TRASH_FILE}", write=True).truncate(10)
    machine.start()
    for _ in range(3):
        machine.turn()
    assert machine.names() == [f"t-0.{OLD.hex()}-delete"]


def test_folders_of_apache_kafka_that_wait_for_removal_go_at_the_start():
    machine = filled()
    machine.disk.mkdir(f"{DATA}/x-0.0123456789abcdef0123456789abcdef-delete")
    machine.disk.mkdir(f"{DATA}/y-0.other-delete")
    machine.start()
    machine.turn()
    machine.turn()
    assert [name for name in machine.disk.listdir(DATA) if name.endswith("-delete")] == []
    machine.check(OLD)


def test_the_list_of_what_is_kept_goes_before_the_deletion_is_committed():
    machine = filled()
    machine.disk.crash_at = -1
    steps = machine.disk.steps
    machine.delete(OLD)
    assert machine.disk.steps > steps
    assert machine.trash.view.topics[OLD].partitions == 1


def steps_of(action):
    machine = filled()
    action(machine, False)
    before = machine.disk.steps
    action(machine, True)
    return machine.disk.steps - before


def delete(machine, now):
    if now:
        machine.delete(OLD)


def delete_and_create(machine, now):
    if now:
        machine.delete(OLD)
        machine.create(NEW)


def bring_back(machine, now):
    if now:
        machine.undelete()
    else:
        machine.delete(OLD)


def bring_back_after_another(machine, now):
    if now:
        machine.delete(NEW)
        machine.undelete(OLD.hex())
    else:
        machine.delete(OLD)
        machine.create(NEW)
        machine.fill(NEW)


@pytest.mark.parametrize(
    "action", [delete, delete_and_create, bring_back, bring_back_after_another]
)
@pytest.mark.parametrize("power", [False, True])
def test_an_end_at_any_step_leaves_it_whole(action, power):
    steps = steps_of(action)
    assert steps > 3
    for step in range(1, steps + 1):
        machine = filled()
        action(machine, False)
        machine.disk.crash_at = machine.disk.steps + step
        with pytest.raises(PowerCut):
            action(machine, True)
        if power:
            machine.disk.power_cut(Random(step))
        else:
            machine.disk.process_death()
        machine.start()
        machine.turn()
        if NEW in machine.image.topics_by_id:
            machine.delete(NEW)
        if OLD not in machine.image.topics_by_id:
            machine.undelete(OLD.hex())
        machine.check(OLD)
        machine.start()
        machine.check(OLD)


def test_a_start_after_the_look_is_over_finds_nothing_to_hurt():
    machine = filled()
    machine.delete(OLD)
    machine.undelete()
    for _ in range(4):
        machine.turn(LOOK_EVERY_NS // 1_000_000 + 1)
    machine.check(OLD)
