"""Ends of logs that become durable together, in the journal of their folder."""

import errno

import pytest
from core_world import NOW_MS, World, batch
from sim.disk import SimDisk

from appliance.base.errors import KAFKA_STORAGE_ERROR, StorageFailed
from appliance.config.log_config import LogConfig
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from appliance.ioproc.durability.journals import name_of, parse
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.partitions.partition import Partition
from appliance.logstore.journal import MOST_OF_ONE
from appliance.metadata.log_dirs import LogDirs
from appliance.ring import partition_table as columns

DATA = "/data"
TOPIC_ID = b"t".ljust(16, b"\0")
PARTITIONS = 3


class Life:
    """An ioproc over a disk; its journal is made before anything else happens."""

    def __init__(self, disk=None, table=None, journal=True, clean=False):
        self.disk = disk or SimDisk()
        if disk is None:
            self.disk.mkdir(DATA)
            self.disk.sync_dir("/")
        self.world = world = World(DATA, disk=self.disk, table=table)
        if table is None:
            for index in range(PARTITIONS):
                world.table.add(TOPIC_ID, index)
        left = JournalRecovery(self.disk, [DATA], clean=clean)
        left.read_journals()
        opener = PartitionOpener(self.disk, LogDirs.of(DATA), world.table, left, clean=clean)
        self.partitions = []
        for index in range(PARTITIONS):
            log, *_ = opener.open_log("t", index, TOPIC_ID, index, LogConfig(), NOW_MS)
            partition = Partition(index, "t", index, TOPIC_ID, log, 1)
            world.core.add(partition, world.now_ns)
            self.partitions.append(partition)
        left.remove_served(lambda topic_id: False)
        if journal:
            self.make_journal()

    def make_journal(self):
        """The first append of each partition is synced in its file, as its folder is new."""
        for index in range(PARTITIONS):
            self.append(index)
        self.world.turn()
        self.world.journal_writes.run_all()
        self.world.threads.run_all()
        assert len(self.world.turn()) == PARTITIONS

    def append(self, index, value=b"x", acks=-1, token=1):
        self.world.append(index, batch(value), acks, token, position=4096 * (index + 8 * token))

    def files(self):
        return [name for name in self.disk.listdir(DATA) if parse(name)]


def test_names_tell_process_and_number():
    assert parse(name_of(3, 12)) == (3, 12)
    for name in ("t-0", "ioproc-1.journal", "ioproc-x.1.journal", "ioproc-01.1.journal"):
        assert parse(name) is None


def test_many_partitions_are_durable_by_one_write_and_no_file_is_synced():
    life = Life()
    for index in range(PARTITIONS):
        life.append(index)
    assert life.world.turn() == []
    assert (len(life.world.journal_writes.jobs), life.world.threads.jobs) == (1, [])
    life.world.journal_writes.run_all()
    assert [answer.flags for answer in life.world.turn()] == [0] * PARTITIONS
    for partition in life.partitions:
        assert partition.high_watermark == partition.synced == 2
        assert partition.log.recovery_point == 1
        row = life.world.table.read_row(partition.handle)
        assert (row[columns.HIGH_WATERMARK], row[columns.RECOVERY_POINT]) == (2, 1)


def test_a_flush_is_counted_once_for_all_in_it_and_not_if_it_fails():
    life = Life()
    assert len(life.world.flushes) == PARTITIONS, "each in its own file; making a journal is none"
    for index in range(PARTITIONS):
        life.append(index)
    life.world.turn()
    life.world.journal_writes.run_all()
    life.world.turn()
    assert len(life.world.flushes) == PARTITIONS + 1
    life.append(0)
    life.world.turn()
    life.disk.refusing["journal", "pwrite_medium"] = 5
    life.world.journal_writes.run_all()
    life.world.turn()
    assert len(life.world.flushes) == PARTITIONS + 1
    life.world.threads.run_all()
    life.world.turn()
    assert len(life.world.flushes) == PARTITIONS + 2


def test_what_comes_while_a_group_is_written_goes_into_the_next():
    life = Life()
    life.append(0)
    life.world.turn()
    life.append(1)
    life.append(2)
    life.append(0, token=2)
    assert life.world.turn() == []
    assert len(life.world.journal_writes.jobs) == 1
    life.world.journal_writes.run_all()
    assert len(life.world.turn()) == 1
    assert len(life.world.journal_writes.jobs) == 1
    life.world.journal_writes.run_all()
    life.world.turn()
    life.world.journal_writes.run_all()
    life.world.turn()
    assert [partition.synced for partition in life.partitions] == [3, 2, 2]


def test_long_ends_are_synced_in_their_own_file():
    life = Life()
    life.world.append(0, batch(bytes(MOST_OF_ONE)), -1, 1, position=0)
    life.append(1)
    life.world.turn()
    assert len(life.world.journal_writes.jobs) == len(life.world.threads.jobs) == 1
    life.world.threads.run_all()
    (answer,) = life.world.turn()
    assert answer.handle == 0
    assert life.partitions[0].log.recovery_point == 2


def test_a_journal_that_fails_costs_nobody_anything():
    life = Life()
    life.append(0)
    life.world.turn()
    life.append(1)
    life.world.turn()
    life.disk.refusing["journal", "pwrite_medium"] = 5
    life.world.journal_writes.run_all()
    assert life.world.turn() == []
    assert len(life.world.threads.jobs) == 2
    life.world.threads.run_all()
    assert len(life.world.turn()) == 2
    assert [partition.broken for partition in life.partitions] == [None] * 3
    life.append(2)
    life.world.turn()
    assert len(life.world.threads.jobs) == 1, "from then on in its own file"


def test_a_folder_that_cannot_be_listed_gets_no_journal_and_goes_on(monkeypatch):
    life = Life(journal=False)

    def refused(path):
        raise StorageFailed(path, errno.EIO, "broken")

    monkeypatch.setattr(life.disk, "listdir", refused)
    for token in (1, 2):
        life.append(0, token=token)
        life.world.turn()
        life.world.journal_writes.run_all()
        life.world.threads.run_all()
        (answer,) = life.world.turn()
        assert answer.flags == 0
    assert life.partitions[0].broken is None


def test_a_partition_that_breaks_is_recovered_with_what_the_journal_has():
    """Acknowledged by a group; then its own file fails, and its pages are lost."""
    life = Life()
    life.append(0, b"acknowledged")
    life.world.turn()
    life.world.journal_writes.run_all()
    (answer,) = life.world.turn()
    assert (answer.flags, answer.a) == (0, 1)
    life.disk.refusing["t-0/", "sync"] = 5
    life.world.now_ns += 3 * 10**9
    life.world.turn()
    life.world.threads.run_all()
    life.world.turn()
    assert life.partitions[0].broken is not None
    life.append(0, token=2)
    (answer,) = life.world.turn()
    assert answer.flags == KAFKA_STORAGE_ERROR
    life.disk.refusing.clear()
    life.disk.power_cut()
    again = Life(life.disk, journal=False)
    assert again.partitions[0].log.end_offset >= 2
    again.world.read(0, 1, token=1)
    (found,) = again.world.turn()
    assert b"acknowledged" in bytes(again.world.bytes_of(found, again.partitions[0]))


def test_journals_that_have_served_are_removed_and_an_orderly_end_leaves_none():
    life = Life()
    assert life.files() == ["ioproc-0.1.journal"]
    life.append(0)
    life.world.turn()
    life.world.journal_writes.run_all()
    life.world.turn()
    life.disk.power_cut()
    again = Life(life.disk)
    assert [partition.log.recovery_point for partition in again.partitions] == [3, 2, 2]
    assert again.files() == ["ioproc-0.1.journal"], "a new one"
    again.world.core.settle_all(again.world.now_ns)
    for partition in again.partitions:
        partition.log.close()
    again.world.journals.close(needed=False)
    assert again.files() == []


@pytest.mark.parametrize("needed", [False, True])
def test_a_journal_that_failed_goes_with_an_orderly_end_and_with_no_other(needed):
    life = Life()
    life.append(0)
    life.world.turn()
    life.disk.refusing["journal", "pwrite_medium"] = 5
    life.world.journal_writes.run_all()
    for token in (2, 3):  # from then on in its own file
        life.world.turn()
        life.world.threads.run_all()
        life.world.turn()
        life.append(0, token=token)
    life.world.core.settle_all(life.world.now_ns)
    for partition in life.partitions:
        partition.log.close()
    life.world.journals.close(needed=needed)
    assert bool(life.files()) == needed


def test_a_journal_stays_as_long_as_a_partition_that_it_holds_is_not_open():
    life = Life()
    life.append(0)
    life.world.turn()
    life.world.journal_writes.run_all()
    life.world.turn()
    life.disk.power_cut()
    left = JournalRecovery(life.disk, [DATA], clean=False)
    left.read_journals()
    left.opened(TOPIC_ID, 1)
    left.remove_served(lambda topic_id: False)
    assert life.files() == ["ioproc-0.1.journal"]
    left.read_journals()
    left.remove_served(lambda topic_id: topic_id == TOPIC_ID)
    assert life.files() == []


@pytest.mark.parametrize(("me", "removes"), [(0, True), (1, False)])
def test_one_process_alone_removes_a_journal(me, removes):
    life = Life()
    left = JournalRecovery(life.disk, [DATA], me, 2, clean=True)
    left.read_journals()
    left.remove_served(lambda topic_id: False)
    assert (life.files() == []) == removes


def test_records_that_nobody_waits_for_are_shown_by_the_journal():
    life = Life()
    for index in range(PARTITIONS):
        life.append(index, acks=1)
    assert len(life.world.turn()) == PARTITIONS
    assert life.world.journal_writes.jobs == []
    life.world.now_ns += 10**9
    life.world.turn()
    life.world.turn()
    assert (len(life.world.journal_writes.jobs), life.world.threads.jobs) == (1, [])
    life.world.journal_writes.run_all()
    life.world.turn()
    assert [partition.high_watermark for partition in life.partitions] == [2, 2, 2]


def test_a_half_that_is_full_has_its_logs_synced():
    life = Life()
    count = 0
    while not life.world.journals.overdue:
        life.world.append(0, batch(bytes(MOST_OF_ONE - 200)), -1, 1, position=0)
        life.world.turn()
        life.world.journal_writes.run_all()
        life.world.turn()
        count += 1
        assert count < 100
    life.world.turn()
    assert life.world.threads.jobs
    life.world.threads.run_all()
    life.world.turn()
    assert not life.world.journals.overdue
    assert life.partitions[0].log.recovery_point == life.partitions[0].log.end_offset
