"""confluent-kafka in groups of the consumer protocol (KIP-848): the coordinator assigns."""

import os

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient
from group_members import until


@pytest.fixture
def bootstrap(fresh_appliance):
    """A broker that wants to hear of members often: they learn of changes by heartbeats only."""
    given = os.environ.get("PENSTOCK_TEST_BOOTSTRAP")
    return given or fresh_appliance(group_consumer_heartbeat_interval_ms=200).bootstrap


class Consumer:
    """One member. owned: its partitions as (topic, partition). got: its records, in order."""

    def __init__(self, bootstrap, group, topics, **settings):
        self.owned, self.got, self.told = set(), [], []
        self.client = ck.Consumer({
            "bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer",
            "auto.offset.reset": "earliest", "enable.auto.commit": False,
            "fetch.wait.max.ms": 50, "log_level": 0, "topic.metadata.refresh.interval.ms": 500,
            **{name.replace("_", "."): value for name, value in settings.items()},
        })  # fmt: skip
        self.client.subscribe(topics, on_assign=self._assign, on_revoke=self._revoke)

    def _assign(self, client, partitions):
        self.owned |= {(one.topic, one.partition) for one in partitions}
        client.incremental_assign(partitions)

    def _revoke(self, client, partitions):
        self.owned -= {(one.topic, one.partition) for one in partitions}
        client.incremental_unassign(partitions)

    def poll(self, timeout_s=0.01):
        message = self.client.poll(timeout_s)
        if message is None:
            return
        if message.error():
            self.told.append(message.error())
        else:
            self.got.append((message.topic(), message.partition(), message.offset()))

    def close(self):
        self.client.close()


@pytest.fixture
def consumer(bootstrap, group):
    """A function that makes a member of the test's group; all are closed at the end."""
    made = []

    def make(*topics, **settings):
        made.append(Consumer(bootstrap, settings.pop("of", group), list(topics), **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


def shared(members, topic, partitions):
    """Whether every partition of the topic has one owner and everybody owns some."""
    owned = sorted(place for member in members for place in member.owned)
    wanted = [(topic, partition) for partition in range(partitions)]
    return owned == wanted and all(member.owned for member in members)


def test_one_reads_all_and_its_successor_goes_on(consumer, filled):
    topic = filled(2, 5)
    first = consumer(topic)
    until([first], lambda: len(first.got) == 10)
    said = first.client.commit(
        offsets=[ck.TopicPartition(topic, 0, 5), ck.TopicPartition(topic, 1, 2)],
        asynchronous=False,
    )
    assert [one.error for one in said] == [None, None]
    first.close()
    second = consumer(topic)
    until([second], lambda: len(second.got) == 3)
    assert second.got == [(topic, 1, offset) for offset in (2, 3, 4)]


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_come_and_go(consumer, filled, assignor):
    topic = filled(4, 1)
    first = consumer(topic, group_remote_assignor=assignor)
    until([first], lambda: shared([first], topic, 4))
    second = consumer(topic, group_remote_assignor=assignor)
    until([first, second], lambda: shared([first, second], topic, 4))
    assert {len(first.owned), len(second.owned)} == {2}
    first.close()
    until([second], lambda: shared([second], topic, 4))
    assert not first.told + second.told


def test_a_regular_expression_is_resolved_here(consumer, filled, fresh):
    name = filled(1, 1)
    one = consumer(f"^{name}.*")
    until([one], lambda: one.owned == {(name, 0)} and one.got == [(name, 0, 0)])


def test_a_bad_regular_expression_is_told(consumer):
    one = consumer(r"^(a)\1")  # RE2 has no back references
    until([one], lambda: one.told)
    # The client ends for good and wraps the coordinator's INVALID_REGULAR_EXPRESSION.
    assert one.told[0].code() == ck.KafkaError._FATAL
    assert "The regular expression is not valid" in one.told[0].str()


def test_a_static_member_comes_back_to_what_it_had(consumer, filled):
    topic = filled(4, 1)
    one, two = (consumer(topic, group_instance_id=f"i{n}") for n in range(2))
    until([one, two], lambda: shared([one, two], topic, 4))
    kept, stayed = set(two.owned), set(one.owned)
    two.close()
    again = consumer(topic, group_instance_id="i1")
    until([one, again], lambda: shared([one, again], topic, 4))
    assert (one.owned, again.owned) == (stayed, kept)


def test_what_the_admin_sees(bootstrap, consumer, filled, group):
    topic = filled(2, 1)
    one = consumer(topic)
    until([one], lambda: shared([one], topic, 2))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.describe_consumer_groups([group])[group].result()
    assert (found.state, found.type) == (
        ck.ConsumerGroupState.STABLE,
        ck.ConsumerGroupType.CONSUMER,
    )
    (seen,) = found.members
    assert {p.partition for p in seen.assignment.topic_partitions} == {0, 1}
    listed = admin.list_consumer_groups(types={ck.ConsumerGroupType.CONSUMER}).result()
    assert group in [listing.group_id for listing in listed.valid]


def test_a_classic_group_changes_over_and_back(bootstrap, consumer, filled, group):
    topic = filled(4, 1)
    settings = {"group_protocol": "classic", "partition_assignment_strategy": "cooperative-sticky",
                "session_timeout_ms": 6000, "heartbeat_interval_ms": 200}  # fmt: skip
    old = consumer(topic, **settings)
    until([old], lambda: shared([old], topic, 4))
    new = consumer(topic)
    until([old, new], lambda: shared([old, new], topic, 4))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    kind = admin.describe_consumer_groups([group])[group].result().type
    assert kind == ck.ConsumerGroupType.CONSUMER
    new.close()
    until([old], lambda: shared([old], topic, 4))
    kind = admin.describe_consumer_groups([group])[group].result().type
    assert kind == ck.ConsumerGroupType.CLASSIC
    assert not old.told + new.told
