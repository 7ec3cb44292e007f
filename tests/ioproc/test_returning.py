"""A large topic that is brought back: its folders get their names by a thread, and what must wait
for that. Steps are counted, not timed."""

import errno
import os

import pytest
from core_world import NOW_MS, HeldThreads, batch
from test_home import Cluster
from test_leaving import CountingDisk

from appliance.base.errors import StorageFailed
from appliance.ioproc.deletion.undelete import A_JOB
from appliance.metadata.changes import PartitionAdded
from appliance.metadata.trash import bury, entry, write_trash
from appliance.ring import partition_table as columns

PARTITIONS = 2 * A_JOB + 3


@pytest.fixture
def life(tmp_path):
    """A topic in the trash, with a record in its first partition."""
    cluster = Cluster(tmp_path)
    topic = cluster.topic("t", partitions=PARTITIONS)
    one = cluster.live()
    one.cluster, one.topic = cluster, topic
    one.world.append(0, batch(b"v"), acks=1)
    one.world.turn()
    one.world.settle()
    listed = entry(bury(cluster.image, topic, NOW_MS, size=70, records=1))
    write_trash(one.keeping._disk, str(tmp_path), [listed], {})
    one.home.apply([cluster.remove("t")], 40)
    settle(one)
    assert folders(one) == []
    one.threads = one.returning._threads = HeldThreads()
    one.disk = CountingDisk()
    one.returning._disk = one.home._disk = one.home._trash._disk = one.disk
    yield one
    one.end()


def settle(life):
    while not life.home.open_slice(9, NOW_MS) or life.home.busy:
        life.keeping.tick(9, NOW_MS)


def folders(life):
    """Partitions that lie under their names."""
    names = os.listdir(life.cluster.folder)
    return sorted(name for name in names if name.startswith("t-") and "." not in name)


def bring_back(life):
    image, topic = life.cluster.image, life.topic
    image.topics_by_name["t"] = image.topics_by_id[topic.topic_id] = topic
    life.home.apply([PartitionAdded("t", topic.topic_id, index) for index in range(PARTITIONS)], 50)


def test_the_loop_renames_nothing_and_opens_what_a_job_has_given_back(life):
    bring_back(life)
    jobs = 0
    while life.home.busy:
        life.home.open_slice(9, NOW_MS)
        taken = life.disk.take()
        assert not taken["rename"] and not taken["sync_dir"]
        assert len(life.threads.jobs) <= 1
        life.threads.run_all()
        done = life.disk.take()
        assert done["rename"] <= A_JOB and done["sync_dir"] == bool(done["rename"])
        jobs += bool(done["rename"])
    settle(life)
    assert jobs == 3
    assert len(life.world.core.partitions) == PARTITIONS
    assert set(life.back) == set(life.world.core.partitions.values()), "told of each"
    assert life.world.core.partitions[0].log.end_offset == 1


@pytest.mark.parametrize("begun", [False, True])
def test_who_is_asked_for_waits_for_one_job_at_most(life, begun):
    bring_back(life)
    if begun:
        life.home.open_slice(9, NOW_MS)
        assert len(life.threads.jobs) == 1
    life.disk.take()
    partition = life.home.fetch(0)
    assert partition.log.end_offset == 1
    assert life.disk.take()["rename"] == (A_JOB if begun else 1)
    while life.home.busy:
        life.home.open_slice(9, NOW_MS)
        life.threads.run_all()
    settle(life)
    assert len(life.world.core.partitions) == PARTITIONS


@pytest.mark.parametrize("opened", [False, True])
def test_what_is_deleted_again_meanwhile_goes_back_with_what_is_known_of_it(life, opened):
    bring_back(life)
    life.home.open_slice(9, NOW_MS)
    life.threads.run_all()
    if opened:
        life.home.open_slice(9, NOW_MS)
    life.home.apply([life.cluster.remove("t")], 60)
    while life.home.busy:
        life.home.open_slice(9, NOW_MS)
        life.keeping.tick(9, NOW_MS)
        life.threads.run_all()
    assert folders(life) == [] and not life.world.core.partitions
    bring_back(life)
    while life.home.busy:
        life.home.open_slice(9, NOW_MS)
        life.threads.run_all()
    settle(life)
    assert len(life.world.core.partitions) == PARTITIONS
    assert life.world.core.partitions[0].log.end_offset == 1


def test_another_topic_of_the_name_is_made_when_no_job_works_on_it(life):
    bring_back(life)
    life.home.open_slice(9, NOW_MS)
    life.cluster.remove("t")
    life.cluster.handles.clear()
    other = life.cluster.topic("t", identity=b"other".ljust(16, b"\0"))
    life.cluster.handles[other.topic_id, 0] = 100
    life.home.apply([PartitionAdded("t", other.topic_id, 0)], 60)
    partition = life.home.fetch(100)
    assert partition.topic_id == other.topic_id and partition.log.end_offset == 0
    assert folders(life) == ["t-0"]


def test_a_return_that_is_not_durable_takes_its_partitions_offline(life, monkeypatch):
    bring_back(life)
    life.home.open_slice(9, NOW_MS)

    def refused(path):
        raise StorageFailed(path, errno.EIO, "broken")

    with monkeypatch.context() as patch:
        patch.setattr(life.disk, "sync_dir", refused)
        life.threads.run_all()
    settle_with_jobs(life)
    rows = [life.world.table.read_column(handle, columns.STATUS) for handle in range(PARTITIONS)]
    assert rows[:A_JOB] == [columns.OFFLINE] * A_JOB
    assert len(life.world.core.partitions) == PARTITIONS - A_JOB


def settle_with_jobs(life):
    while life.home.busy or not life.home.open_slice(9, NOW_MS):
        life.home.open_slice(9, NOW_MS)
        life.threads.run_all()


def test_a_folder_that_cannot_be_renamed_is_told_by_who_opens_it(life, monkeypatch):
    bring_back(life)
    life.home.open_slice(9, NOW_MS)

    def refused(old, new):
        raise StorageFailed(old, errno.EIO, "broken")

    with monkeypatch.context() as patch:
        patch.setattr(life.disk, "rename", refused)
        life.threads.run_all()
        assert life.home.fetch(0) is None
    assert life.said().count("partition=t-0") == 1
    settle_with_jobs(life)
    assert len(life.world.core.partitions) == PARTITIONS - 1
