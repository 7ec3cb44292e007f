"""Journals that cannot be read or removed at a start: what is lost by it, and what is not."""

import errno

import pytest
from core_world import batch
from sim.disk import SimDisk
from test_home import Cluster
from test_log_dirs import A, B

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from appliance.ioproc.durability.journals import parse
from appliance.metadata.log_dirs import LogDirs
from appliance.ring import partition_table as columns

PATHS = ("/a", "/b")


class TwoFolders(Cluster):
    """One partition in each of two log folders, whose second records are durable in journals."""

    def __init__(self):
        super().__init__("/")
        self.disk = SimDisk()
        for path in PATHS:
            self.disk.mkdir(path)
        self.disk.sync_dir("/")
        self.topic("t", partitions=2)
        topic = self.image.topics_by_name["t"]
        for index, directory in enumerate((A, B)):
            self.place(topic, index, directory)

    def place(self, topic, index, directory):
        part = topic.partitions[index]
        topic.partitions[index] = part._replace(directories=(directory,))

    def live(self, **rest):
        return super().live(dirs=LogDirs(PATHS, (A, B)), disk=self.disk, **rest)

    def journals(self):
        return [
            f"{path}/{name}" for path in PATHS for name in self.disk.listdir(path) if parse(name)
        ]


def write(life, handles=(0, 1), token=1):
    """A record to each of them, which is durable when this returns."""
    for handle in handles:
        life.world.append(handle, batch(b"v"), -1, token, position=4096 * (handle + 2 * token))
    life.world.turn()
    life.world.journal_writes.run_all()
    life.world.threads.run_all()
    told = life.world.turn()
    assert [m.flags for m in told] == [0] * len(handles)


@pytest.fixture
def cluster():
    cluster = TwoFolders()
    life = cluster.live()
    for token in (1, 2):  # the first one has the journals made
        write(life, token=token)
    assert len(cluster.journals()) == 2
    cluster.disk.power_cut()
    yield cluster
    for one in cluster.lives:
        one.end()


@pytest.mark.parametrize("number", [0, 1])
def test_a_journal_that_cannot_be_read_takes_only_its_folder_offline(cluster, number):
    cluster.disk.refusing[f"{PATHS[number]}/ioproc", "sync"] = errno.EIO
    life = cluster.live()
    assert list(life.world.core.partitions) == [1 - number]
    assert life.world.core.partitions[1 - number].log.end_offset == 2
    assert life.world.table.read_column(number, columns.STATUS) == columns.OFFLINE
    said = life.said()
    assert said.count("log-dir-failed") == 1 and f"folder={PATHS[number]}" in said
    life.world.append(number, batch(b"v"), acks=1)
    assert [m.flags for m in life.world.turn()] == [errors.KAFKA_STORAGE_ERROR]
    assert [path[:2] for path in cluster.journals()] == [PATHS[number]], "it is still needed"
    cluster.disk.refusing.clear()
    cluster.disk.power_cut()
    again = cluster.live()
    assert again.world.core.partitions[number].log.end_offset == 2, "what was acknowledged"
    assert cluster.journals() == []


def test_a_folder_whose_journals_cannot_be_looked_for_is_offline(cluster, monkeypatch):
    find = JournalRecovery.read_journals

    def refused(path):
        raise StorageFailed(path, errno.EIO, "broken")

    def finding(left):
        with monkeypatch.context() as patch:
            patch.setattr(cluster.disk, "listdir", refused)
            return find(left)

    monkeypatch.setattr(JournalRecovery, "read_journals", finding)
    life = cluster.live()
    assert not life.world.core.partitions
    assert life.said().count("log-dir-failed") == 2


def test_a_journal_that_cannot_be_removed_is_removed_another_time(cluster):
    cluster.disk.refusing["/a/ioproc", "unlink"] = errno.EIO
    life = cluster.live()
    assert [p.log.end_offset for p in life.world.core.partitions.values()] == [2, 2]
    assert [path[:2] for path in cluster.journals()] == ["/a"]
    assert "journal-not-removed" in life.said()
    cluster.disk.refusing.clear()
    assert cluster.live().world.core.partitions[0].log.end_offset == 2
    assert cluster.journals() == []


def test_a_journal_that_another_process_removes_meanwhile_takes_nothing_offline(
    cluster, monkeypatch
):
    """It was listed, and is gone when it is read: whose it was had all that it held."""
    find, listdir = JournalRecovery.read_journals, cluster.disk.listdir
    gone = iter(["ioproc-9.1.journal"])

    def finding(left):
        with monkeypatch.context() as patch:
            patch.setattr(cluster.disk, "listdir", lambda path: [*listdir(path), *gone])
            return find(left)

    monkeypatch.setattr(JournalRecovery, "read_journals", finding)
    life = cluster.live()
    assert [p.log.end_offset for p in life.world.core.partitions.values()] == [2, 2]
    assert "log-dir-failed" not in life.said()
