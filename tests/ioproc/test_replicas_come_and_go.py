"""Which replicas are on this node: made when the metadata puts one here, gone when it takes it
away, and neither a leader nor a stray meanwhile."""

import os

import pytest
from core_world import batch, registration
from test_home import Cluster, topic_id

from appliance.base import errors
from appliance.ioproc.durability import checkpoints
from appliance.metadata.changes import PartitionChanged
from appliance.metadata.parts import PartitionImage
from appliance.ring import messages
from appliance.ring import partition_table as columns


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    cluster.image.brokers[1] = registration()
    yield cluster
    for life in cluster.lives:
        life.end()


def placed(cluster, *replicas, leader, epoch, name="t"):
    """The metadata say so from now on."""
    found = cluster.image.topics_by_name[name]
    found.partitions[0] = PartitionImage(
        index=0,
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=epoch,
        replicas=replicas,
        isr=replicas,
    )
    return PartitionChanged(name, found.topic_id, 0)


def row_of(life, handle=0):
    return life.world.table.read_row(handle)


def test_a_replica_that_another_node_leads_follows(cluster):
    cluster.topic("t")
    placed(cluster, 2, 1, leader=2, epoch=4)
    life = cluster.live()
    partition = life.world.core.partitions[0]
    assert row_of(life)[columns.STATUS] == columns.FOLLOWING
    assert (partition.role.leader, partition.leader_epoch) == (2, 4)
    life.world.append(0, batch(b"x"))
    assert life.world.turn()[0].flags == errors.NOT_LEADER_OR_FOLLOWER
    life.home.apply([placed(cluster, 2, 1, leader=1, epoch=5)])
    assert row_of(life)[columns.STATUS] == columns.ONLINE
    assert partition.log.latest_epoch == 5


def test_what_others_have_alone_is_not_opened(cluster):
    cluster.topic("t")
    placed(cluster, 2, 3, leader=2, epoch=0)
    life = cluster.live()
    assert not life.world.core.partitions
    assert "t-0" not in os.listdir(cluster.folder)
    life.home.apply([placed(cluster, 3, 2, leader=3, epoch=1)])
    life.settle()
    assert not life.world.core.partitions


def test_a_replica_that_is_added_is_made_empty(cluster):
    cluster.topic("t")
    placed(cluster, 2, leader=2, epoch=0)
    life = cluster.live()
    life.home.apply([placed(cluster, 2, 1, leader=2, epoch=0)])
    life.settle()
    partition = life.world.core.partitions[0]
    assert partition.log.end_offset == 0
    assert not partition.leads


def test_a_replica_that_is_removed_goes_with_its_folder_and_may_come_again(cluster):
    cluster.topic("t")
    placed(cluster, 1, 2, leader=1, epoch=0)
    life = cluster.live()
    life.world.append(0, batch(b"x"), acks=0)
    life.world.turn()
    life.home.apply([placed(cluster, 2, leader=2, epoch=1)])
    life.settle()
    assert not life.world.core.partitions
    assert "t-0" not in os.listdir(cluster.folder)
    known = checkpoints.read(life.world.disk, str(cluster.folder), checkpoints.RECOVERY_POINT)
    assert ("t", 0) not in known
    cluster.handles[topic_id("t"), 0] = 1  # another row
    life.home.apply([placed(cluster, 2, 1, leader=2, epoch=2)])
    life.settle()
    assert life.world.core.partitions[1].log.end_offset == 0


def test_one_that_goes_and_comes_at_once_is_another(cluster):
    """Both changes are replayed together: it has another row by now."""
    cluster.topic("t")
    placed(cluster, 1, 2, leader=1, epoch=0)
    life = cluster.live()
    life.world.append(0, batch(b"x"), acks=0)
    life.world.turn()
    cluster.handles[topic_id("t"), 0] = 1
    change = placed(cluster, 2, 1, leader=2, epoch=3)
    life.home.apply([change, change])
    life.settle()
    assert list(life.world.core.partitions) == [1]
    assert life.world.core.partitions[1].log.end_offset == 0
    gone = [name for name in os.listdir(cluster.folder) if name.endswith("-delete")]
    assert len(gone) == 1


def test_a_replica_that_was_removed_while_nothing_ran_is_moved_away(cluster):
    cluster.topic("t")
    first = cluster.live()
    first.world.append(0, batch(b"x"), acks=0)
    first.world.turn()
    first.world.core.partitions[0].log.sync_now()
    placed(cluster, 2, leader=2, epoch=1)
    second = cluster.live()
    assert not second.world.core.partitions
    strays = [name for name in os.listdir(cluster.folder) if name.endswith("-stray")]
    assert len(strays) == 1
    assert second.said().count("folder-moved-away") == 1


def test_who_waits_for_a_leader_that_follows_is_told(cluster):
    cluster.topic("t")
    placed(cluster, 1, 2, leader=1, epoch=0)
    life = cluster.live()
    life.world.append(0, batch(b"x"), acks=-1, token=7)
    life.world.turn()
    life.world.read(0, 1, token=8)
    life.home.apply([placed(cluster, 1, 2, leader=2, epoch=1)])
    told = {(one.op, one.token, one.flags) for one in life.world.turn()}
    refused = errors.NOT_LEADER_OR_FOLLOWER
    assert told == {(messages.APPENDED, 7, refused), (messages.FOUND, 8, refused)}


def test_the_high_watermark_of_a_follower_survives_an_orderly_end(cluster):
    cluster.topic("t")
    placed(cluster, 2, 1, leader=1, epoch=0)
    first = cluster.live()
    for _ in range(3):
        first.world.append(0, batch(b"x"), acks=0)
        first.world.turn()
    first.home.apply([placed(cluster, 2, 1, leader=2, epoch=1)])
    partition = first.world.core.partitions[0]
    partition.progress.on_leader_high_watermark(2)
    first.world.core.settle_all(first.world.now_ns)
    partition.log.close()
    first.keeping.close()
    second = cluster.live(clean=True)
    assert second.world.core.partitions[0].high_watermark == 2
    assert second.world.core.partitions[0].log.end_offset == 3
