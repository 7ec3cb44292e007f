"""Placement, proposals of leaders, reassignments and elections over several brokers."""

from collections import Counter
from dataclasses import replace

import pytest
from brokers import Brokers, folder

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.broker import BrokerConfig
from appliance.config.internal_topics import OFFSETS, TRANSACTIONS
from appliance.controller.alter_partition import NewIsr, alter_partitions
from appliance.controller.config_resources import ConfigResource
from appliance.controller.configs import DELETE, SET, ConfigOperation, alter_incrementally
from appliance.controller.directories import Assigned, assign_replicas
from appliance.controller.elections import PREFERRED, UNCLEAN, balance, elect_leaders, elect_unclean
from appliance.controller.electorate import UNASSIGNED
from appliance.controller.features import FeatureUpdate, update_features
from appliance.controller.leader_balancer import LeaderBalancer
from appliance.controller.partitions import MorePartitions, create_partitions
from appliance.controller.producer_ids import BLOCK, allocate_block_for
from appliance.controller.reassignments import alter_reassignments, reassignments
from appliance.controller.replica_placer import Stripes, UsableBroker
from appliance.controller.topics import NewTopic, create_topics, internal_topic
from appliance.metadata.log_dirs import LOST
from appliance.metadata.parts import Feature
from appliance.metadata.snapshot import broker_record
from appliance.wire import kraft_records as kraft


def place(cluster, count, factor, name="p"):
    """Replicas of a new topic's partitions, or the error."""
    records, [(_, result, _)] = create_topics(cluster.situation, [NewTopic(name, count, factor)])
    if result.code:
        return result.code, result.message
    cluster.replay(records)
    return [one.replicas for one in cluster.image.topics_by_name[name].partitions]


def propose(cluster, leader, isr, name="t", index=0, **changed):
    found = cluster.partition(name, index)
    names = {"leader_epoch": found.leader_epoch, "partition_epoch": found.partition_epoch}
    asked = NewIsr(
        topic_id=cluster.image.topics_by_name[name].topic_id,
        index=index,
        isr=[one if isinstance(one, tuple) else (one, -1) for one in isr],
        **{**names, **changed},
    )
    records, [result] = alter_partitions(cluster.situation, leader, cluster.epochs[leader], [asked])
    cluster.replay(records)
    return result


def move(cluster, replicas, allow=True, index=0, topic="t"):
    records, [(_, [(_, result)])] = alter_reassignments(
        cluster.situation, [(topic, [(index, replicas)])], may_change_factor=allow
    )
    cluster.replay(records)
    return result.code


# Placement ----------------------------------------------------------------------------------------


def test_leaders_go_round_the_brokers_and_followers_after_them():
    stripes = Stripes([UsableBroker(one, "", False) for one in (3, 1, 2)], lambda below: 0)
    assert [stripes.replicas(2) for _ in range(3)] == [(1, 2), (2, 3), (3, 1)]


def test_replicas_are_on_different_racks_as_far_as_there_are_racks():
    places = [UsableBroker(one, f"rack{one % 3}", False) for one in range(9)]
    stripes = Stripes(places, lambda below: 0)
    found = [stripes.replicas(3) for _ in range(9)]
    assert all(len({one % 3 for one in replicas}) == 3 for replicas in found)
    assert Counter(replicas[0] % 3 for replicas in found) == {0: 3, 1: 3, 2: 3}
    more = stripes.replicas(7)
    assert len(set(more)) == 7


def test_fenced_brokers_follow_where_there_is_nobody_else():
    cluster = Brokers(3)
    cluster.kill(2)
    for replicas in place(cluster, 6, 2):
        assert set(replicas) == {1, 3}
    for partition in place(cluster, 6, 3, "q"):
        assert partition[0] != 2 and set(partition) == {1, 2, 3}
    assert cluster.partition("q").isr == tuple(
        one for one in cluster.partition("q").replicas if one != 2
    )
    assert place(cluster, 1, 4, "r")[0] == errors.INVALID_REPLICATION_FACTOR
    cluster.kill(1, 2, 3)
    code, text = place(cluster, 1, 1, "s")
    assert code == errors.INVALID_REPLICATION_FACTOR
    assert "All brokers are currently fenced, or have all" in text


def test_one_partition_topics_are_led_by_all_brokers():
    cluster = Brokers(3)
    leaders = {place(cluster, 1, 1, f"t{number}")[0][0] for number in range(30)}
    assert leaders == {1, 2, 3}


def test_brokers_that_take_no_new_partitions_get_none():
    cluster = Brokers(3)
    cluster.beat(2, cordoned=[folder(2)])
    assert all(2 not in replicas for replicas in place(cluster, 6, 2))
    assert place(cluster, 1, 3, "q")[0] == errors.INVALID_REPLICATION_FACTOR
    cluster.create("t", [1, 2, 3])
    cluster.beat(3, want_shut_down=True)
    assert place(cluster, 2, 1, "r") == [(1,), (1,)]


def test_replicas_go_to_the_emptiest_folder_of_their_broker():
    cluster = Brokers(1)
    cluster.register(2, log_dirs=(folder(21), folder(22)))
    cluster.beat(2)
    cluster.create("t", [1, 2], [1, 2], [1, 2])
    places = [one.directories for one in cluster.image.topics_by_name["t"].partitions]
    assert places == [(folder(1), folder(number)) for number in (21, 22, 21)]


def test_new_partitions_have_as_many_replicas_as_the_first():
    cluster = Brokers(3)
    cluster.create("t", [1, 2])
    records, _ = create_partitions(cluster.situation, [MorePartitions("t", 4)])
    assert all(len(one.replicas) == 2 and one.leader == one.replicas[0] for one in records)
    cluster.kill(1, 2)
    asked = [MorePartitions("t", 2, [[1, 2]])]
    _, [(_, result)] = create_partitions(cluster.situation, asked)
    assert result.code == errors.INVALID_REPLICA_ASSIGNMENT and "partition 1 are" in result.message


@pytest.mark.parametrize(("brokers", "factor", "least"), [(1, 1, "1"), (2, 2, "1"), (4, 3, "2")])
def test_internal_topics_have_three_replicas_where_nothing_is_said(brokers, factor, least):
    cluster = Brokers(brokers)
    topic = internal_topic(cluster.situation, TRANSACTIONS)
    assert (topic.replication_factor, topic.configs["min.insync.replicas"]) == (factor, least)
    assert "min.insync.replicas" not in internal_topic(cluster.situation, OFFSETS).configs
    said = {
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    cluster.situation.config = BrokerConfig.of(said)
    assert internal_topic(cluster.situation, TRANSACTIONS).replication_factor == 1


# Leaders say who is in sync -----------------------------------------------------------------------


def test_a_leader_takes_replicas_out_of_the_isr_and_in_again():
    cluster = Brokers(3)
    cluster.create("t", [1, 2, 3], min_insync_replicas="2")
    result = propose(cluster, 1, [1])
    assert (result.code, result.isr, result.partition_epoch, result.leader_epoch) == (0, (1,), 1, 0)
    assert cluster.shape() == (1, [1], [2, 3])
    epoch = cluster.epochs[3]
    assert propose(cluster, 1, [1, (3, epoch - 1)]).code == errors.INELIGIBLE_REPLICA
    assert propose(cluster, 1, [1, (3, epoch)]).code == errors.NONE
    assert cluster.shape() == (1, [1, 3], [])
    assert propose(cluster, 1, [1, 3]).partition_epoch == 2, "nothing changes"
    assert cluster.written == []


@pytest.mark.parametrize(
    ("leader", "isr", "changed", "code"),
    [
        (1, [1, 2], {"leader_epoch": 9}, errors.NOT_CONTROLLER),
        (1, [1, 2], {"partition_epoch": 9}, errors.NOT_CONTROLLER),
        (1, [1, 2], {"leader_epoch": 0}, errors.FENCED_LEADER_EPOCH),
        (1, [1, 2], {"partition_epoch": 0}, errors.INVALID_UPDATE_VERSION),
        (2, [1, 2], {}, errors.INVALID_REQUEST),
        (1, [2, 3], {}, errors.INVALID_REQUEST),
        (1, [1, 1], {}, errors.INVALID_REQUEST),
        (1, [1, 4], {}, errors.INVALID_REQUEST),
        (1, [1, 2], {"recovery_state": 1}, errors.INVALID_REQUEST),
        (1, [1], {"recovery_state": 1}, errors.INVALID_REQUEST),
        (1, [1, 3], {}, errors.INELIGIBLE_REPLICA),
        (1, [1, 2], {"index": 5}, errors.UNKNOWN_TOPIC_OR_PARTITION),
        (1, [1, 2], {"topic_id": b"?" * 16}, errors.UNKNOWN_TOPIC_ID),
    ],
)
def test_proposals_that_are_refused(leader, isr, changed, code):
    cluster = Brokers(4)
    cluster.create("t", [2, 1, 3])
    cluster.kill(3)
    cluster.beat(2, want_fence=True)  # leader epoch 1, led by 1
    cluster.beat(2)
    assert cluster.shape() == (1, [1], [])
    found = cluster.partition()
    asked = {
        "topic_id": cluster.image.topics_by_name["t"].topic_id,
        "index": 0,
        "leader_epoch": found.leader_epoch,
        "partition_epoch": found.partition_epoch,
        **changed,
    }
    wanted = [NewIsr(isr=[(one, -1) for one in isr], **asked)]
    records, [result] = alter_partitions(cluster.situation, leader, cluster.epochs[leader], wanted)
    assert (result.code, records) == (code, [])


def test_a_broker_of_another_epoch_proposes_nothing():
    cluster = Brokers(1)
    for decide in (
        lambda epoch: alter_partitions(cluster.situation, 1, epoch, []),
        lambda epoch: assign_replicas(cluster.situation, 1, epoch, []),
        lambda epoch: allocate_block_for(cluster.situation, 1, epoch),
    ):
        with pytest.raises(PeerError, check=lambda one: one.code == errors.STALE_BROKER_EPOCH):
            decide(cluster.epochs[1] + 1)
    records, first = allocate_block_for(cluster.situation, 1, cluster.epochs[1])
    assert (records[0].next_producer_id, first) == (BLOCK, 0)


# Reassignments ------------------------------------------------------------------------------------


def test_a_reassignment_is_done_when_those_that_come_are_in_sync():
    cluster = Brokers(4)
    cluster.create("t", [1, 2])
    assert move(cluster, [3, 4]) == 0
    found = cluster.partition()
    assert (found.replicas, found.adding_replicas) == ((3, 4, 1, 2), (3, 4))
    assert (found.removing_replicas, found.leader, found.isr) == ((1, 2), 1, (1, 2))
    assert found.directories == tuple(map(folder, (3, 4, 1, 2)))
    assert [name for name, _ in reassignments(cluster.image, None)] == ["t"]
    assert propose(cluster, 1, [1, 2, 3]).code == 0
    assert cluster.partition().adding_replicas == (3, 4)
    assert move(cluster, [3], allow=False) == errors.INVALID_REPLICATION_FACTOR
    assert move(cluster, [3, 4], allow=False) == 0
    assert propose(cluster, 1, [1, 2, 3, 4]).code == errors.NEW_LEADER_ELECTED
    found = cluster.partition()
    assert (found.replicas, found.isr, found.leader) == ((3, 4), (3, 4), 3)
    assert (found.adding_replicas, found.removing_replicas) == ((), ())
    assert found.directories == (folder(3), folder(4))
    assert reassignments(cluster.image, None) == []


def test_who_stays_need_not_be_in_sync_unless_there_are_fewer_replicas():
    cluster = Brokers(4)
    cluster.create("t", [1, 2, 3], [1, 2, 3])
    for index in (0, 1):
        propose(cluster, 1, [1], index=index)
    move(cluster, [1, 2, 4])
    assert propose(cluster, 1, [1, 4]).code == 0
    assert cluster.partition().replicas == (1, 2, 4)
    move(cluster, [1, 2], index=1)
    assert cluster.partition(index=1).removing_replicas == (3,)
    assert propose(cluster, 1, [1, 2], index=1).code == 0
    assert cluster.partition(index=1).replicas == (1, 2)


def test_a_reassignment_is_cancelled():
    cluster = Brokers(4)
    cluster.create("t", [1, 2])
    move(cluster, [3, 4])
    propose(cluster, 1, [1, 2, 3])
    epoch = cluster.partition().leader_epoch
    assert move(cluster, None) == 0
    found = cluster.partition()
    assert (found.replicas, found.isr, found.leader) == ((1, 2), (1, 2), 1)
    assert found.leader_epoch == epoch + 1, "3 must not be counted any more"
    assert move(cluster, None) == errors.NO_REASSIGNMENT_IN_PROGRESS


def test_a_reassignment_takes_the_place_of_one_that_is_under_way():
    cluster = Brokers(5)
    cluster.create("t", [1, 2])
    move(cluster, [3, 4])
    move(cluster, [3, 1])
    found = cluster.partition()
    assert (found.replicas, found.removing_replicas) == ((3, 1, 2, 4), (2, 4))
    assert propose(cluster, 1, [1, 2, 3]).code == 0
    assert cluster.partition().replicas == (3, 1), "4 is neither wanted nor waited for"
    cluster.create("u", [1, 2])
    move(cluster, [3, 4], topic="u")
    move(cluster, [5, 1], topic="u")
    assert cluster.partition("u").adding_replicas == (3, 4, 5)
    move(cluster, None, topic="u")
    assert cluster.partition("u").replicas == (1, 2)
    move(cluster, [3, 4], topic="u")
    move(cluster, [1, 2, 3, 4], topic="u")
    assert cluster.partition("u").removing_replicas == ()


def test_a_cancelled_reassignment_does_not_go_back_to_who_has_nothing():
    cluster = Brokers(4, elr=False)
    cluster.create("t", [1])
    move(cluster, [2])
    cluster.kill(1)
    cluster.replay([
        kraft.PartitionChangeRecord(
            partition_id=0,
            topic_id=cluster.image.topics_by_name["t"].topic_id,
            isr=(2,),
            leader=2,
        )
    ])  # fmt: skip
    assert move(cluster, None) == errors.INVALID_REPLICA_ASSIGNMENT


def test_the_number_of_replicas_changes_when_that_is_allowed():
    cluster = Brokers(3)
    cluster.create("t", [1, 2])
    assert move(cluster, [1, 2, 3], allow=False) == errors.INVALID_REPLICATION_FACTOR
    assert move(cluster, [1]) == 0
    found = cluster.partition()
    assert (found.replicas, found.isr, found.leader_epoch) == ((1,), (1,), 1)


# Elections ----------------------------------------------------------------------------------------


def test_leadership_goes_back_by_itself_and_a_few_at_a_time():
    cluster = Brokers(3)
    cluster.create("t", *[[1, 2, 3]] * 5)
    cluster.beat(1, want_fence=True)
    assert balance(cluster.situation, 100) == [], "1 is away"
    cluster.beat(1)
    assert balance(cluster.situation, 100) == [], "1 is not in sync"
    for index in range(5):
        propose(cluster, 2, [2, 3, 1], index=index)
    assert len(balance(cluster.situation, 3)) == 3
    cluster.replay(balance(cluster.situation, 100))
    assert {cluster.shape(index=index)[0] for index in range(5)} == {1}
    assert balance(cluster.situation, 100) == []


def test_balancing_looks_when_it_is_time():
    cluster = Brokers(3, leader_imbalance_check_interval_seconds="5")
    balancing = LeaderBalancer(cluster.situation.config, cluster.now)
    cluster.create("t", [1, 2, 3])
    cluster.beat(1, want_fence=True)
    cluster.beat(1)
    propose(cluster, 2, [2, 3, 1])
    assert balancing.deadline == cluster.now + 5000
    assert balancing.tick(cluster.situation, cluster.now + 4999) == []
    cluster.replay(balancing.tick(cluster.situation, cluster.now + 5000))
    assert cluster.shape()[0] == 1
    assert balancing.deadline == cluster.now + 10_000
    cluster.situation.config = BrokerConfig.of({"auto.leader.rebalance.enable": "false"})
    cluster.replay(elect_leaders(cluster.situation, PREFERRED, None)[0])
    cluster.beat(1, want_fence=True)
    cluster.beat(1)
    propose(cluster, 2, [2, 3, 1])
    assert balancing.tick(cluster.situation, cluster.now + 10_000) == []


def test_whoever_decides_changes_the_settings_of_every_broker():
    cluster = Brokers(2)
    for name, code in (("2", 0), ("100", 0), ("3", errors.INVALID_REQUEST)):
        wanted = [(ConfigResource(4, name), [ConfigOperation("message.max.bytes", SET, "5000")])]
        _, [(_, result)] = alter_incrementally(cluster.situation, wanted)
        assert result.code == code
    for name, kind, value in (("2", SET, "1"), ("", DELETE, None)):
        wanted = [(ConfigResource(4, name), [ConfigOperation("min.insync.replicas", kind, value)])]
        _, [(_, result)] = alter_incrementally(cluster.situation, wanted)
        assert result.code == errors.INVALID_CONFIG, "ELR counts on one value for all"


def test_an_unclean_election_that_is_asked_for_and_one_that_a_setting_allows():
    cluster = Brokers(3, elr=False)
    cluster.create("t", [1, 2], [1, 2])
    for index in (0, 1):
        propose(cluster, 1, [1], index=index)
    cluster.beat(1, want_fence=True)
    assert cluster.shape() == (-1, [1], [])
    assert elect_unclean(cluster.situation, 100) == []
    _, _, [(_, [(_, result)])] = elect_leaders(cluster.situation, PREFERRED, [("t", [0])])
    assert result.code == errors.PREFERRED_LEADER_NOT_AVAILABLE
    records, _, _ = elect_leaders(cluster.situation, UNCLEAN, [("t", [0])])
    cluster.replay(records)
    assert cluster.shape() == (2, [2], []) and cluster.partition().leader_recovery_state == 1
    setting = kraft.ConfigRecord(
        resource_type=2, resource_name="t", name="unclean.leader.election.enable", value="true"
    )
    cluster.replay([setting])
    cluster.replay(elect_unclean(cluster.situation, 100))
    assert cluster.shape(index=1) == (2, [2], [])
    assert propose(cluster, 2, [2], recovery_state=0).recovery_state == 0, "it has recovered"


# Folders and features -----------------------------------------------------------------------------


def test_a_broker_says_where_its_replicas_are():
    cluster = Brokers(2)
    cluster.create("t", [1, 2])
    topic_id = cluster.image.topics_by_name["t"].topic_id
    other = folder(77)

    def assign(broker, directory, topic=topic_id, index=0):
        asked = [Assigned(directory, topic, index)]
        records, codes = assign_replicas(cluster.situation, broker, cluster.epochs[broker], asked)
        cluster.replay(records)
        return codes

    assert assign(1, folder(1)) == [0] and cluster.written == []
    assert assign(1, UNASSIGNED) == [0]
    assert cluster.partition().directories == (UNASSIGNED, folder(2))
    assert assign(1, other, b"?" * 16) == [errors.UNKNOWN_TOPIC_ID]
    assert assign(1, other, index=3) == [errors.UNKNOWN_TOPIC_OR_PARTITION]
    cluster.create("u", [2])
    of_u = cluster.image.topics_by_name["u"].topic_id
    assert assign(1, other, of_u) == [errors.NOT_LEADER_OR_FOLLOWER]
    assert assign(1, other) == [0], "it is offline"
    assert cluster.shape() == (2, [2], [])


def test_a_replica_that_is_lost_is_in_doubt_until_it_has_caught_up():
    """Others lead at once. It is not eligible: what it has when it is back, nobody knows."""
    cluster = Brokers(2)
    cluster.create("t", [1, 2], min_insync_replicas="2")
    topic_id = cluster.image.topics_by_name["t"].topic_id

    def assign(broker, directory):
        asked = [Assigned(directory, topic_id, 0)]
        records, codes = assign_replicas(cluster.situation, broker, cluster.epochs[broker], asked)
        cluster.replay(records)
        assert codes == [0]

    assign(1, LOST)
    assert cluster.shape() == (2, [2], [])
    assert cluster.partition().directories == (LOST, folder(2))
    assign(2, LOST)
    assert cluster.shape() == (-1, [], [])
    assign(1, folder(1))
    assert cluster.shape() == (-1, [], []), "the other one led last"
    assign(2, folder(2))
    assert cluster.shape() == (2, [2], [])
    assert cluster.partition().directories == (folder(1), folder(2))


def test_a_replica_that_is_lost_does_not_come_into_sync():
    """However much it has: what it does not write, all others would wait for."""
    cluster = Brokers(2)
    cluster.create("t", [1, 2])
    topic_id = cluster.image.topics_by_name["t"].topic_id

    def assign(broker, directory):
        asked = [Assigned(directory, topic_id, 0)]
        cluster.replay(assign_replicas(cluster.situation, broker, cluster.epochs[broker], asked)[0])

    assign(1, LOST)
    assert propose(cluster, 2, [2, 1]).code == errors.INELIGIBLE_REPLICA
    assert cluster.shape() == (2, [2], [])
    assign(1, folder(1))
    assert propose(cluster, 2, [2, 1]).code == errors.NONE
    assert cluster.shape() == (2, [2, 1], [])


def test_a_folder_that_is_there_again_leads_what_nobody_leads():
    cluster = Brokers(2, elr=False)
    cluster.create("t", [1, 2])
    topic_id = cluster.image.topics_by_name["t"].topic_id

    def assign(broker, directory):
        asked = [Assigned(directory, topic_id, 0)]
        cluster.replay(assign_replicas(cluster.situation, broker, cluster.epochs[broker], asked)[0])

    assign(2, LOST)
    assign(1, LOST)
    assert cluster.shape() == (-1, [1], [])
    assign(2, folder(2))
    assert cluster.shape() == (-1, [1], []), "it has not all"
    assign(1, folder(1))
    assert cluster.shape() == (1, [1], [])


def test_eligible_replicas_begin_with_a_value_for_all_brokers():
    cluster = Brokers(1, elr=False)
    own = kraft.ConfigRecord(
        resource_type=4, resource_name="1", name="min.insync.replicas", value="3"
    )
    cluster.replay([own])
    wanted = [FeatureUpdate("eligible.leader.replicas.version", 1)]
    records, [(_, result)] = update_features(cluster.situation, wanted)
    assert result.code == 0
    cluster.replay(records)
    assert cluster.image.configs == {(4, ""): {"min.insync.replicas": "1"}}


@pytest.mark.parametrize(
    ("range_", "said"),
    [(None, "Broker 2 does not support this feature."), ((2, 3), "only supports versions 2-3")],
)
def test_a_level_that_another_node_could_not_read_is_refused(range_, said):
    cluster = Brokers(2, elr=False)
    name = "eligible.leader.replicas.version"
    before = cluster.image.brokers[2]
    kept = [one for one in before.features if one.name != name]
    if range_ is not None:
        low, high = range_
        kept.append(Feature(name=name, min_supported_version=low, max_supported_version=high))
    record = broker_record(replace(before, features=tuple(kept)))
    cluster.image.apply(cluster.image.applied_offset + 1, record)
    records, [(_, result)] = update_features(cluster.situation, [FeatureUpdate(name, 1)])
    assert not records and result.code == errors.INVALID_UPDATE_VERSION
    assert said in result.message
