"""A broker whose disk is another one has nothing of what it had, whatever its number: nobody counts
on it, and it does not become the leader for having led last (KIP-966, by the ids of KIP-858)."""

import pytest
from brokers import Brokers, doors, folder

from appliance.base import errors
from appliance.controller.alter_partition import NewIsr, alter_partitions
from appliance.controller.broker_states import Heartbeat, heartbeat
from appliance.controller.directories import Assigned, assign_replicas
from appliance.controller.elections import UNCLEAN, elect_leaders
from appliance.metadata.log_dirs import LOST

OTHER = b"another disk".ljust(16, b"\1")
SECOND = b"second of these".ljust(16, b"\1")


class Cluster(Brokers):
    """Three brokers, of which the first is the last in sync of `t`."""

    def __init__(self, replicas=(1, 2, 3), dirs=(), **settings):
        super().__init__(3, **settings)
        dirs = dirs or (folder(1),)
        self.register(1, log_dirs=dirs)
        self.beat(1)
        self.create("t", list(replicas), min_insync_replicas="1")
        if len(replicas) > 1:
            self.kill(*replicas[1:])
        assert self.shape() == (1, [1], [])

    def assigns(self, broker, where):
        topic_id = self.image.topics_by_name["t"].topic_id
        asked = [Assigned(where, topic_id, 0)]
        records, codes = assign_replicas(self.situation, broker, self.epochs[broker], asked)
        self.replay(records)
        return codes

    def comes_back(self, *dirs, previous=-1):
        """The first broker, which tells where its replica is."""
        self.register(1, log_dirs=dirs, previous=previous)
        self.beat(1)
        self.assigns(1, dirs[-1])
        self.beat(1)


@pytest.mark.parametrize("fenced", [True, False], ids=["after its session", "within it"])
@pytest.mark.parametrize("same", [True, False], ids=["its disk", "another disk"])
def test_the_last_leader_leads_again_with_the_disk_that_it_had(same, fenced):
    cluster = Cluster()
    cluster.kill(1, 2, 3)
    if not fenced:  # nobody has noticed yet
        cluster = Cluster()
        cluster.heartbeats.forget_broker(1)
    cluster.comes_back(folder(1) if same else OTHER)
    assert cluster.shape() == ((1, [1], []) if same else (-1, [], []))
    for broker in (2, 3):
        cluster.start(broker)
    assert cluster.shape()[0] == (1 if same else -1)


def test_within_its_session_it_has_its_place_only_with_a_folder_of_it():
    """One of two disks is another one: what lay there is gone, what lay on the other one is not."""
    cluster = Cluster(dirs=(folder(1), SECOND))
    cluster.create("u", [1, 2, 3], min_insync_replicas="1")
    for name, where in (("t", SECOND), ("u", folder(1))):
        topic_id = cluster.image.topics_by_name[name].topic_id
        records, _ = assign_replicas(
            cluster.situation, 1, cluster.epochs[1], [Assigned(where, topic_id, 0)]
        )
        cluster.replay(records)
    assert cluster.shape("u") == (1, [1], [])
    cluster.register(1, log_dirs=(folder(1), OTHER), endpoints=(doors(9001),), previous=-1)
    cluster.beat(1)
    cluster.assigns(1, OTHER)
    assert cluster.shape("t") == (-1, [], [])
    assert cluster.shape("u") == (1, [1], [])


def test_an_orderly_end_says_nothing_of_a_disk_that_was_replaced_since():
    """It ended in order with two folders, and has one of them again."""
    cluster = Cluster(dirs=(folder(1), SECOND))
    cluster.assigns(1, SECOND)
    before = cluster.epochs[1]
    while not cluster.beat(1, want_shut_down=True)[2]:
        pass
    assert cluster.shape() == (-1, [], [1])
    cluster.comes_back(folder(1), OTHER, previous=before)
    assert cluster.shape() == (-1, [], [])


def test_a_folder_that_only_comes_in_addition_changes_nothing():
    cluster = Cluster()
    cluster.kill(1, 2, 3)
    cluster.register(1, log_dirs=(folder(1), OTHER), previous=-1)
    cluster.beat(1)
    assert cluster.shape() == (1, [1], [])


@pytest.mark.parametrize("same", [True, False])
def test_where_a_lost_replica_lay_is_not_known(same):
    """It may have lain in any folder of then: if one of those of now is new, perhaps in its
    place."""
    cluster = Cluster()
    cluster.assigns(1, LOST)
    assert cluster.shape() == (-1, [], [])
    cluster.kill(1, 2, 3)
    cluster.comes_back(folder(1) if same else OTHER)
    assert cluster.shape() == ((1, [1], []) if same else (-1, [], []))


def test_who_moves_between_its_folders_keeps_what_it_has():
    cluster = Cluster(dirs=(folder(1), SECOND))
    assert cluster.assigns(1, SECOND) == [0]
    cluster.kill(1, 2, 3)
    cluster.comes_back(folder(1), SECOND)
    assert cluster.shape() == (1, [1], [])


def test_where_there_is_one_replica_nobody_else_has_anything():
    """It starts over, as on one node alone."""
    cluster = Cluster(replicas=(1,))
    cluster.kill(1, 2, 3)
    cluster.comes_back(OTHER)
    assert cluster.shape() == (1, [1], [])


def test_somebody_may_choose_the_leader_then():
    """By an unclean election: who has something before who starts over."""
    cluster = Cluster()
    cluster.kill(1, 2, 3)
    cluster.comes_back(OTHER)
    cluster.start(3)
    assert cluster.assigns(1, OTHER) == [errors.ELIGIBLE_LEADERS_NOT_AVAILABLE]
    assert elected(cluster) == 0
    assert cluster.shape() == (3, [3], [])
    assert cluster.assigns(1, OTHER) == [0], "it may follow"
    assert cluster.partition().directories[0] == OTHER


def test_who_begins_anew_is_the_last_resort():
    cluster = Cluster()
    cluster.kill(1, 2, 3)
    cluster.comes_back(OTHER)
    assert cluster.shape() == (-1, [], [])
    assert elected(cluster) == 0
    assert cluster.shape() == (1, [1], [])
    cluster.start(2)
    assert cluster.shape() == (1, [1], []), "though it has not said yet where it lies"
    found = cluster.partition()
    isr = [(broker, cluster.epochs[broker]) for broker in (1, 2)]
    topic_id = cluster.image.topics_by_name["t"].topic_id
    asked = NewIsr(topic_id, 0, found.leader_epoch, found.partition_epoch, isr)
    records, (result,) = alter_partitions(cluster.situation, 1, cluster.epochs[1], [asked])
    cluster.replay(records)
    assert (result.code, cluster.shape()) == (0, (1, [1, 2], []))
    assert cluster.assigns(1, OTHER) == [0]
    assert cluster.partition().directories[0] == OTHER


def test_a_topic_that_rather_loses_records_does_not_wait():
    cluster = Cluster(unclean_leader_election_enable="true")
    cluster.kill(1, 2, 3)
    cluster.comes_back(OTHER)
    assert cluster.shape() == (1, [1], [])


def elected(cluster):
    records, _, [(_, [(_, result)])] = elect_leaders(cluster.situation, UNCLEAN, [("t", [0])])
    cluster.replay(records)
    return result.code


def test_others_that_have_everything_lead_whatever_the_last_one_lost():
    cluster = Brokers(3)
    cluster.create("t", [1, 2, 3], min_insync_replicas="2")
    cluster.kill(1, 2, 3)
    assert cluster.shape()[0] == -1
    had = set(cluster.shape()[1] + cluster.shape()[2])
    cluster.register(1, log_dirs=(OTHER,), previous=-1)
    cluster.beat(1)
    assert 1 not in cluster.shape()[1] + cluster.shape()[2]
    for broker in sorted(had - {1}):
        cluster.register(broker, previous=cluster.epochs[broker])
        cluster.beat(broker)
    assert cluster.shape()[0] in had - {1}


def test_a_folder_that_fails_is_another_one_when_it_is_back_empty():
    cluster = Cluster(dirs=(folder(1), SECOND))
    cluster.assigns(1, SECOND)
    asked = Heartbeat(
        broker_id=1, epoch=cluster.epochs[1], offset=cluster.image.applied_offset,
        offline=(SECOND,),
    )  # fmt: skip
    records, _ = heartbeat(cluster.situation, cluster.heartbeats, asked, cluster.now)
    cluster.replay(records)
    assert cluster.shape()[0] == -1
    cluster.kill(1, 2, 3)
    cluster.comes_back(folder(1), OTHER)
    assert cluster.shape() == (-1, [], [])
