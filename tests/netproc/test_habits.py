"""Who is left over for a deleted topic: consumers that were asking for it, and nobody else."""

import pytest

from appliance.metadata.changes import TopicRemoved
from appliance.netproc.connections.client_activity import ROLES, ClientActivity, topics_removed
from appliance.wire.fetch import FetchPartition

PRODUCE, FETCH, METADATA, JOIN, PRODUCER_ID, API_VERSIONS = 0, 1, 3, 11, 22, 18
ID = b"i" * 16
GONE = [TopicRemoved("flights", ID, 1)]


def client(*keys, asks=(), reads=(), name=b"c", address="a"):
    habits = ClientActivity(address)
    for key in (API_VERSIONS, METADATA, *keys):
        habits.learn(ROLES[key], name)
    for topic in asks:
        habits.asks(topic)
    habits.reading = [FetchPartition(topic, 0, 5, 100) for topic in reads]
    return habits


def left_over(mine, *others, removed=GONE):
    everybody = [mine, *others]
    topics_removed(everybody, removed)
    return mine.left_over("flights", everybody)


@pytest.mark.parametrize("seen", [{"asks": ["flights"]}, {"reads": [ID]}, {"reads": [b"flights"]}])
@pytest.mark.parametrize("key", [FETCH, JOIN])
def test_a_consumer_that_asked_or_read(seen, key):
    assert left_over(client(key, **seen))
    assert not left_over(client(key, **seen), removed=[TopicRemoved("other", b"o" * 16, 1)])


def test_a_consumer_of_other_topics_is_not():
    assert not left_over(client(FETCH, asks=["other"], reads=[b"o" * 16]))


@pytest.mark.parametrize("key", [PRODUCE, PRODUCER_ID])
def test_who_writes_is_not(key):
    assert not left_over(client(key, asks=["flights"]))
    assert not left_over(client(FETCH, key, asks=["flights"], reads=[ID]))


def test_a_connection_for_metadata_is_what_its_client_is():
    assert not left_over(client(asks=["flights"])), "nobody knows"
    assert left_over(client(asks=["flights"]), client(FETCH))
    assert not left_over(client(asks=["flights"]), client(FETCH), client(PRODUCE))
    assert not left_over(client(asks=["flights"]), client(FETCH, name=b"d"))
    assert not left_over(client(asks=["flights"]), client(FETCH, address="b"))


def test_what_one_connection_asked_the_others_of_its_client_asked_too():
    assert left_over(client(FETCH), client(asks=["flights"]))
    assert left_over(client(), client(FETCH, reads=[ID]))
    assert not left_over(client(FETCH), client(asks=["flights"], name=b"d"))
    assert not left_over(client(PRODUCE), client(FETCH, reads=[ID]))


def test_a_connection_that_comes_afterwards_is_not():
    before = client(FETCH, asks=["flights"])
    topics_removed([before], GONE)
    after = client(FETCH)
    assert not after.left_over("flights", [before, after])
    assert before.left_over("flights", [before, after])


def test_a_consumer_that_begins_to_write_is_no_longer():
    mine = client(FETCH, asks=["flights"])
    assert left_over(mine)
    mine.learn(ROLES[PRODUCE], b"c")
    assert not mine.left_over("flights", [mine])


def test_only_the_newest_names_are_remembered():
    mine = client(FETCH, asks=["flights", *map(str, range(255)), "flights", "more"])
    assert left_over(mine)
    mine = client(FETCH, asks=["flights", *map(str, range(256))])
    assert not left_over(mine)
