"""kafka-python in groups: subscribe, commit, rebalance, static membership, admin."""

import threading
import time

import kafka
import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

LIMIT_S = 60


@pytest.fixture
def consumer(bootstrap, group):
    """A function that makes a member of the test's group; all are closed at the end."""
    made = []

    def make(*topics, **settings):
        options = {
            "group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False,
            "heartbeat_interval_ms": 200, "session_timeout_ms": 6000, **settings,
        }  # fmt: skip
        made.append(kafka.KafkaConsumer(*topics, bootstrap_servers=bootstrap, **options))
        for topic in topics:
            made[-1].partitions_for_topic(topic)
        return made[-1]

    yield make
    for client in made:
        client.close(autocommit=False)


@pytest.fixture
def admin(bootstrap):
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def until(clients, check):
    """Poll each on a thread of its own until `check` holds. Returns the records that came, by
    client.

    The client forgets an assignment that comes between two polls: polls are long.
    """
    got = {id(client): [] for client in clients}
    ending = threading.Event()

    def poll(client):
        while not ending.is_set():
            for records in client.poll(timeout_ms=500).values():
                got[id(client)] += records

    threads = [threading.Thread(target=poll, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    end = time.monotonic() + LIMIT_S
    while not check(got) and time.monotonic() < end:
        threads[0].join(0.01)
    ending.set()
    for thread in threads:
        thread.join()
    assert check(got), [client.assignment() for client in clients]
    return [got[id(client)] for client in clients]


def owned(client):
    return {place.partition for place in client.assignment()}


def shared(clients, partitions):
    """Whether every partition has one owner and everybody owns something."""
    all_of_them = sorted(p for client in clients for p in owned(client))
    return all_of_them == list(range(partitions)) and all(owned(client) for client in clients)


def test_a_successor_goes_on_where_the_first_one_committed(consumer, filled):
    topic = filled(1, 10)
    first = consumer(topic)
    (got,) = until([first], lambda got: len(got[id(first)]) == 10)
    place = TopicPartition(topic, 0)
    first.commit({place: kafka.OffsetAndMetadata(got[3].offset + 1, "a note", -1)})
    first.close(autocommit=False)
    second = consumer(topic)
    (got,) = until([second], lambda got: len(got[id(second)]) == 6)
    assert [record.offset for record in got] == list(range(4, 10))
    committed = second.committed(place, metadata=True)
    assert (committed.offset, committed.metadata) == (4, "a note")


def test_members_come_and_go(consumer, filled):
    topic = filled(4, 1)
    first = consumer(topic)
    until([first], lambda got: shared([first], 4))
    second = consumer(topic)
    until([first, second], lambda got: shared([first, second], 4))
    first.close(autocommit=False)
    until([second], lambda got: shared([second], 4))


def test_cooperative_members(consumer, filled):
    topic = filled(4, 1)
    settings = {"partition_assignment_strategy": [CooperativeStickyAssignor]}
    first = consumer(topic, **settings)
    until([first], lambda got: shared([first], 4))
    second = consumer(topic, **settings)
    until([first, second], lambda got: shared([first, second], 4))


def test_a_static_member_comes_back(consumer, filled, admin, group):
    topic = filled(2, 1)
    first = consumer(topic, group_instance_id="one")
    until([first], lambda got: shared([first], 2))
    first.close(autocommit=False)
    again = consumer(topic, group_instance_id="one")
    until([again], lambda got: shared([again], 2))
    (member,) = admin.describe_groups([group])[group]["members"]
    assert member["group_instance_id"] == "one"


def test_what_the_admin_sees(consumer, filled, admin, group):
    topic = filled(1, 3)
    client = consumer(topic, client_id="the-client")
    until([client], lambda got: len(got[id(client)]) == 3)
    client.commit()
    described = admin.describe_groups([group])[group]
    assert (described["group_state"], described["protocol_type"]) == ("Stable", "consumer")
    assert [member["client_id"] for member in described["members"]] == ["the-client"]
    offsets = admin.list_group_offsets(group)
    assert {place.partition: offset.offset for place, offset in _flat(offsets, group)} == {0: 3}
    assert group in str(admin.list_groups())


def _flat(offsets, group):
    return offsets.get(group, offsets).items()
