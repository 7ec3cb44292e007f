"""confluent-kafka in groups: subscribe, commit, rebalance, cooperative, static, admin."""

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient
from group_members import Member, share, until


@pytest.fixture
def member(bootstrap, group):
    """A function that makes a member of the test's group; all are closed at the end."""
    made = []

    def make(topic, **settings):
        made.append(Member(bootstrap, group, topic, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def admin(bootstrap):
    return AdminClient({"bootstrap.servers": bootstrap})


def described(admin, group):
    return admin.describe_consumer_groups([group])[group].result()


def test_a_successor_goes_on_where_the_first_one_committed(member, filled):
    topic = filled(1, 10)
    first = member(topic)
    until([first], lambda: len(first.got) == 10)
    assert first.commit({0: 4}) == {0: None}
    first.close()
    second = member(topic)
    until([second], lambda: len(second.got) == 6)
    assert second.got == [(0, offset) for offset in range(4, 10)]
    (committed,) = second.client.committed([ck.TopicPartition(topic, 0)], 10)
    assert committed.offset == 4


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_members_come_and_go(member, filled, strategy):
    topic = filled(6, 1)
    settings = {"partition_assignment_strategy": strategy}
    first = member(topic, **settings)
    until([first], lambda: share([first], 6))
    second = member(topic, **settings)
    until([first, second], lambda: share([first, second], 6))
    assert {len(first.owned), len(second.owned)} == {3}
    third = member(topic, **settings)
    until([first, second, third], lambda: share([first, second, third], 6))
    first.close()
    until([second, third], lambda: share([second, third], 6))
    assert not first.told + second.told + third.told


def test_cooperative_members_keep_what_they_can(member, filled):
    topic = filled(4, 1)
    settings = {"partition_assignment_strategy": "cooperative-sticky"}
    first = member(topic, **settings)
    until([first], lambda: share([first], 4))
    second = member(topic, **settings)
    least = [4]

    def settled():
        least[0] = min(least[0], len(first.owned))
        return share([first, second], 4)

    until([first, second], settled)
    assert least == [2], "a cooperative rebalance takes away only what another one gets"


def test_a_static_member_comes_back_without_a_rebalance(member, filled, admin, group):
    topic = filled(4, 1)
    static = [member(topic, group_instance_id=f"i{n}") for n in range(2)]
    until(static, lambda: share(static, 4))
    stayed, kept = set(static[0].owned), set(static[1].owned)
    static[1].close()  # a static member does not leave
    assert len(described(admin, group).members) == 2
    again = member(topic, group_instance_id="i1")
    until([static[0], again], lambda: share([static[0], again], 4))
    assert (static[0].owned, again.owned) == (stayed, kept)
    assert {one.group_instance_id for one in described(admin, group).members} == {"i0", "i1"}


def test_of_two_with_one_instance_id_the_older_is_fenced(member, filled):
    topic = filled(1, 1)
    older = member(topic, group_instance_id="same")
    until([older], lambda: share([older], 1))
    newer = member(topic, group_instance_id="same")
    until([older, newer], lambda: older.told and newer.owned == {0})
    assert [error.code() for error in older.told] == [ck.KafkaError._FATAL]
    assert "fenced" in older.told[0].str()
    assert not newer.told


def test_a_commit_of_an_older_generation_is_refused(bootstrap, member, filled, group):
    topic = filled(2, 5)
    first = member(topic)
    until([first], lambda: share([first], 2) and first.got)
    second = member(topic)
    until([first, second], lambda: share([first, second], 2))
    stranger = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    with pytest.raises(ck.KafkaException) as refused:
        stranger.commit(offsets=[ck.TopicPartition(topic, 0, 3)], asynchronous=False)
    stranger.close()
    assert refused.value.args[0].code() == ck.KafkaError.UNKNOWN_MEMBER_ID


def test_a_member_that_stops_polling_loses_its_place(member, filled):
    topic = filled(2, 1)
    lively = member(topic)
    stalled = member(topic, max_poll_interval_ms=6000)
    until([lively, stalled], lambda: share([lively, stalled], 2))
    until([lively], lambda: lively.owned == {0, 1})
    until([lively, stalled], lambda: share([lively, stalled], 2))
    assert stalled.losses == 1


def test_what_the_admin_sees(member, filled, admin, group):
    topic = filled(2, 1)
    one = member(topic, client_id="the-client")
    until([one], lambda: share([one], 2))
    found = described(admin, group)
    assert (found.group_id, found.state) == (group, ck.ConsumerGroupState.STABLE)
    (seen,) = found.members
    assert seen.client_id == "the-client"
    assert seen.host == "/127.0.0.1"
    assert {p.partition for p in seen.assignment.topic_partitions} == {0, 1}
    listed = admin.list_consumer_groups().result()
    assert not listed.errors
    assert group in [listing.group_id for listing in listed.valid]
    idle = admin.list_consumer_groups(states={ck.ConsumerGroupState.EMPTY}).result()
    assert group not in [listing.group_id for listing in idle.valid]


def test_offsets_are_altered_and_groups_deleted(bootstrap, filled, admin, group):
    topic = filled(2, 5)
    places = [ck.TopicPartition(topic, 0, 3), ck.TopicPartition(topic, 1, 4)]
    wanted = ck.ConsumerGroupTopicPartitions(group, places)
    altered = admin.alter_consumer_group_offsets([wanted])[group].result()
    assert [one.error for one in altered.topic_partitions] == [None, None]
    asked = ck.ConsumerGroupTopicPartitions(group)
    listed = admin.list_consumer_group_offsets([asked])[group].result()
    assert {one.partition: one.offset for one in listed.topic_partitions} == {0: 3, 1: 4}
    admin.delete_consumer_groups([group])[group].result()
    with pytest.raises(ck.KafkaException) as missing:
        admin.delete_consumer_groups([group])[group].result()
    assert missing.value.args[0].code() == ck.KafkaError.GROUP_ID_NOT_FOUND
    listed = admin.list_consumer_group_offsets([asked])[group].result()
    assert not listed.topic_partitions


def test_nobody_else_writes_the_offsets_topic(bootstrap, filled, member):
    one = member(filled(1, 1))
    until([one], lambda: one.got)
    refused = []
    producer = ck.Producer({"bootstrap.servers": bootstrap})
    producer.produce("__consumer_offsets", b"x", on_delivery=lambda e, m: refused.append(e))
    producer.flush(30)
    assert refused[0].code() == ck.KafkaError.TOPIC_EXCEPTION
