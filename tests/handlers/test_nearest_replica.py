"""A consumer in another rack than the leader's: whom it is sent to, and what a follower serves."""

import pytest
from test_fetch_handler import fetch, found, lengths
from three_brokers import (
    BY_NOBODY,
    ELSEWHERE,
    EPOCH,
    FOLLOWED,
    LED_HERE,
    TOPIC_ID,
    Cluster,
    broker,
)

from appliance.base import errors
from appliance.handlers import registry
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.ring.messages import ANY_REPLICA, READ_WAIT
from appliance.wire import kraft_records as kraft

FETCH, LIST_OFFSETS = 1, 2
NOT_LEADER = errors.NOT_LEADER_OR_FOLLOWER
HANDLERS = registry.handlers(FetchSessions(4, iter(range(7, 90)).__next__))


@pytest.fixture
def host():
    """Node 1 stands in rack a, 2 in b, 3 in none; all of them are in sync in LED_HERE."""
    host = Cluster()
    host.rack = b"a"
    in_sync(host, 1, 2, 3)
    return host


def in_sync(host, *nodes):
    host.apply(
        kraft.PartitionChangeRecord(partition_id=LED_HERE, topic_id=TOPIC_ID, isr=tuple(nodes))
    )


def ask(host, *partitions, rack="b", version=17, **rest):
    return host.start(HANDLERS[FETCH], version, fetch(*partitions, **rest) | {"rack_id": rack})


def rows(host):
    return {row.partition_index: row for row in host.answer.responses[0].partitions}


@pytest.mark.parametrize("version", [11, 12, 17])
def test_it_is_sent_to_who_stands_in_its_rack(host, version):
    x = ask(host, (LED_HERE, 3), version=version)
    assert host.offered == [(0, (2, -1, -1, -1))]
    host.complete(x, 0, a=9, b=8, c=1, j=3)
    row = rows(host)[LED_HERE]
    assert (row.preferred_read_replica, row.high_watermark, row.last_stable_offset) == (2, 9, 8)
    assert row.log_start_offset == 1 and not row.records


def test_it_hears_that_at_once_beside_what_has_nothing(host):
    host.apply(kraft.PartitionChangeRecord(partition_id=BY_NOBODY, topic_id=TOPIC_ID, leader=1,
                                           isr=(1,)))  # fmt: skip
    x = ask(host, (BY_NOBODY, 0), (LED_HERE, 3), session=(0, 0))
    host.complete(x, 1, a=9, b=8, c=1, j=3)
    assert rows(host)[LED_HERE].preferred_read_replica == 2
    assert rows(host)[BY_NOBODY].preferred_read_replica == -1
    x = ask(host, (LED_HERE, 9), session=(host.answer.session_id, 1))
    host.complete(x, 1, a=9, b=8, c=1, j=3)
    assert list(rows(host)) == [LED_HERE], "an incremental answer tells it too"


def test_when_the_home_chooses_itself_it_is_served_as_ever(host):
    x = ask(host, (LED_HERE, 3))
    host.complete(x, 0, **found(50, high_watermark=9))
    assert lengths(host) == {LED_HERE: 50}
    assert rows(host)[LED_HERE].preferred_read_replica == -1
    x = ask(host, (LED_HERE, 9))
    host.complete(x, 0, **found(0, high_watermark=9))
    assert host.asked[-1][2] == ANY_REPLICA | READ_WAIT


@pytest.mark.parametrize("why", [
    "no selector", "no rack", "the leader's rack", "nobody's rack", "not in sync", "fenced",
    "not on this listener", "too old", "another replica",
])  # fmt: skip
def test_else_it_reads_here(host, why):
    rack, version, more = "b", 17, {}
    if why == "no selector":
        host.rack = None
    elif why == "not in sync":
        in_sync(host, 1, 3)
    elif why == "fenced":
        host.apply(broker(2, fenced=True))
    elif why == "not on this listener":
        host.apply(kraft.RegisterBrokerRecord(
            broker_id=2, incarnation_id=bytes(16), broker_epoch=2, features=(), rack="b",
            fenced=False, end_points=(), log_dirs=(),
        ))  # fmt: skip
    elif why == "another replica":
        more = {"replica_id": 3, "replica_state": {"replica_id": 3, "replica_epoch": 3}}
    else:
        rack = {"no rack": "", "the leader's rack": "a", "nobody's rack": "z"}.get(why, rack)
        version = 10 if why == "too old" else 17
    values = fetch((LED_HERE, 3)) | {"rack_id": rack} | more
    host.start(HANDLERS[FETCH], version, values)
    assert host.offered == [] and [one[0] for one in host.asked] == [0]


def test_a_follower_serves_it_as_the_leader_would(host):
    host.rows[FOLLOWED] = (9, 8, 1)
    host.places = {(FOLLOWED, 3): (70, 40, 20)}
    ask(host, (FOLLOWED, 3), rack="")
    assert lengths(host) == {FOLLOWED: 40} and not host.asked, "from the file"
    x = ask(host, (FOLLOWED, 9), session=(0, 0))
    assert [one[2] for one in host.asked] == [ANY_REPLICA | READ_WAIT] and not host.offered
    host.complete(x, 0, **found(30, high_watermark=12))
    assert lengths(host) == {FOLLOWED: 30} and len(host.remembered) == 1
    assert rows(host)[FOLLOWED].preferred_read_replica == -1


def test_when_its_leader_is_another_it_is_told_by_its_home(host):
    x = ask(host, (FOLLOWED, 9), rack="")
    host.complete(x, 0, a=-1, b=-1, c=-1, d=-1, error=NOT_LEADER)
    row = rows(host)[FOLLOWED]
    assert row.error_code == NOT_LEADER
    assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (2, EPOCH)
    assert [one.node_id for one in host.answer.node_endpoints] == [2]


@pytest.mark.parametrize(("partition", "version"), [(FOLLOWED, 10), (ELSEWHERE, 17)])
def test_who_does_not_know_of_it_is_sent_to_the_leader(host, partition, version):
    ask(host, (partition, 0), rack="", version=version)
    assert not host.asked
    assert rows(host)[partition].error_code == NOT_LEADER


@pytest.mark.parametrize(("replica", "asked"), [(-1, False), (-2, True), (2, False)])
def test_where_a_followers_log_ends_is_told_to_who_looks_for_faults(host, replica, asked):
    row = {"partition_index": FOLLOWED, "current_leader_epoch": -1, "timestamp": -1}
    topics = [{"name": "flights", "partitions": [row]}]
    values = {"replica_id": replica, "isolation_level": 0, "topics": topics}
    host.start(HANDLERS[LIST_OFFSETS], 7, values)
    assert bool(host.asked) == asked
    if not asked:
        assert host.answer.topics[0].partitions[0].error_code == NOT_LEADER
