"""What a home makes of a partition of which other nodes have replicas, too."""

from types import SimpleNamespace

import pytest
from core_world import RUN, batch, registration
from test_home import Cluster

from appliance.authorization.authorizer import AllowAll
from appliance.config.log_config import LogConfig
from appliance.ioproc.metadata_replay import CoordinatorFollowing
from appliance.metadata.changes import BrokerChanged, PartitionChanged
from appliance.metadata.parts import PartitionImage
from appliance.ring import partition_table as columns
from appliance.shell.read_retries import ReadRetries


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    for life in cluster.lives:
        life.end()


def replicated(cluster, leader=1, epoch=4, isr=(1, 2, 3), partition_epoch=7):
    """The topic `t` with replicas on three nodes."""
    found = cluster.image.topics_by_name.get("t") or cluster.topic("t")
    found.partitions[0] = PartitionImage(
        index=0,
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=partition_epoch,
        replicas=(1, 2, 3),
        isr=isr,
    )
    return PartitionChanged("t", found.topic_id, 0)


def registered(cluster, incarnation=RUN):
    cluster.image.brokers[1] = registration(incarnation)
    return BrokerChanged(1)


def test_nothing_is_led_by_what_was_so_in_an_earlier_life(cluster):
    replicated(cluster)
    registered(cluster, b"an earlier life.")
    life = cluster.live()
    partition = life.world.core.partitions[0]
    assert not partition.leads
    life.home.apply([registered(cluster, b"an earlier life.")])
    assert not partition.leads
    life.home.apply([registered(cluster)])
    assert (partition.leads, partition.leader_epoch) == (True, 4)
    assert partition.role.replicas == partition.role.isr == (2, 3)
    assert life.world.table.read_column(0, columns.STATUS) == columns.ONLINE


def test_a_change_of_the_isr_alone_is_no_new_leadership(cluster):
    registered(cluster)
    replicated(cluster)
    life = cluster.live()
    partition = life.world.core.partitions[0]
    heard = len(life.world.observers)
    life.home.apply([replicated(cluster, isr=(1, 3), partition_epoch=8)])
    assert partition.role.isr == (3,)
    assert partition.role.partition_epoch == 8
    assert life.world.observers[heard:] == []
    life.home.apply([replicated(cluster, leader=2, epoch=5, partition_epoch=9)])
    life.home.apply([replicated(cluster, leader=2, epoch=5, partition_epoch=10, isr=(2,))])
    assert (partition.leads, partition.role.leader) == (False, 2)
    assert [what for what, _ in life.world.observers[heard:]] == ["follows"]


def test_a_replicated_partition_begins_with_what_all_had(cluster):
    """Not with its log end: the others may not have that."""
    registered(cluster)
    replicated(cluster)
    life = cluster.live()
    partition = life.world.core.partitions[0]
    partition.set_rules(LogConfig(flush_policy="os"))
    life.world.append(0, batch(b"a", b"b", b"c"))
    life.world.turn()
    for replica in (2, 3):
        partition.progress.replica_at(replica, 2, 0)
    life.world.core.publish(partition)
    life.world.turn()
    assert (partition.high_watermark, partition.log.end_offset) == (2, 3)
    for table, wanted in [(life.world.table, 2), (None, 0)]:  # its process died; all of it did
        life = cluster.live(table=table)
        partition = life.world.core.partitions[0]
        assert (partition.high_watermark, partition.log.end_offset) == (wanted, 3)
        assert partition.progress.held == 3
        life.world.core.lead(partition, 4, partition.role._replace(isr=()), 0)
        assert partition.high_watermark == 3, "with nobody else in sync"
        assert partition.places.visible == (0, partition.log.active_size)


def test_thousands_of_roles_are_told_some_a_turn(cluster, monkeypatch):
    """Each newest role once, however many changes there were; who goes meanwhile is left alone."""
    monkeypatch.setattr("appliance.ioproc.lifecycle.partition_roles.ROLES_NS", 0)
    registered(cluster)
    topic = cluster.topic("t", partitions=5)
    cluster.topic("u")
    topic.partitions[:] = [many(index, leader=2) for index in range(5)]
    life = cluster.live()
    core, roles = life.world.core, life.home.roles
    heard = len(life.world.observers)
    changes = [PartitionChanged("t", topic.topic_id, index) for index in range(5)]
    topic.partitions[:] = [many(index, leader=1, epoch=5) for index in range(5)]
    life.home.apply([*changes, *changes])
    leads = [partition.leads for partition in core.partitions.values() if partition.topic == "t"]
    assert leads == [False, False, False, False, True]
    topic.partitions[2] = many(2, leader=3, epoch=6)
    assert [roles.tell_roles() for _ in range(2)] == [False, False]
    life.home.apply([cluster.remove("t")])
    while not roles.tell_roles():
        pass
    told = [what for what, _ in life.world.observers[heard:]]
    assert told == ["leads in 5", "leads in 5", "follows"]


def test_metadata_is_not_replayed_before_all_of_its_roles_are_told(cluster, monkeypatch):
    """Until then the shell decides nothing, and says so of itself."""
    monkeypatch.setattr("appliance.ioproc.lifecycle.partition_roles.ROLES_NS", 0)
    registered(cluster)
    topic = cluster.topic("t", partitions=3)
    topic.partitions[:] = [many(index, leader=2) for index in range(3)]
    life = cluster.live()
    said = []
    seat = SimpleNamespace(
        authorizer=AllowAll(),
        me=None,
        processes=SimpleNamespace(
            word=lambda _: [13], set_applied=lambda _, offset: said.append(offset)
        ),
    )
    changes = [PartitionChanged("t", topic.topic_id, index) for index in range(3)]
    follower = SimpleNamespace(applied=10, image=cluster.image)

    def replay(committed):
        follower.applied = committed
        return changes

    follower.replay_slice = replay
    unlimited = SimpleNamespace(follow=lambda image, changes: None)
    bills = SimpleNamespace(follow=lambda quotas: None)
    following = CoordinatorFollowing(
        seat, follower, life.home, (), unlimited, bills, lambda: 0, ReadRetries(None)
    )
    topic.partitions[:] = [many(index, leader=1, epoch=5) for index in range(3)]
    steps = []
    while not following.replay_slice():
        steps.append((following.applied, len(life.home.roles.waiting)))
    assert steps == [(10, 2), (10, 1)]
    assert (following.applied, said) == (13, [13])
    assert all(partition.leads for partition in life.world.core.partitions.values())


def many(index, leader, epoch=4):
    return PartitionImage(
        index=index,
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=epoch,
        replicas=(1, 2, 3),
        isr=(1, 2, 3),
    )
