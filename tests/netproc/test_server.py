"""Requests in flight at one network process: each is answered once, to the one who asked."""

import pytest

from appliance.base import errors
from appliance.ring.messages import APPEND, APPENDED
from appliance.wire.batch import NewRecord, build_batch
from tests.netproc.netproc_world import World


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    yield one
    one.close()


def produce(client, topic="flights"):
    records = build_batch([NewRecord(1, None, b"v")])
    rows = [{"index": 0, "records": records}]
    data = [{"name": topic, "partition_data": rows}]
    client.send(0, 9, transactional_id=None, acks=-1, timeout=30_000, topic_data=data)


def test_a_refused_version_takes_no_answer_from_another_connection(world):
    """It is answered behind a request that waits, and its connection ends before."""
    first, second = world.client(), world.client()
    produce(first)
    world.turn()
    produce(second)
    world.turn()
    second.send_body(18, 99, b"")
    world.turn()
    asked = world.asked()
    assert [one.op for one in asked] == [APPEND, APPEND]
    second.close()
    world.turn()
    for one in asked:
        world.tell(APPENDED, one.token, a=7)
    world.turn()
    _, answer = first.answer()
    assert answer.responses[0].partition_responses[0].base_offset == 7
    world.end()


def metadata(client, name, may_create=True):
    asked = {"topics": [{"name": name}], "allow_auto_topic_creation": may_create}
    found = client.ask(
        *(3, 9),
        **asked,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    return int(found.topics[0].error_code)


def fetch(client, name):
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100}
    partition |= {"current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1}
    topics = [{"topic": name, "partitions": [partition]}]
    found = client.ask(
        *(1, 12), replica_id=-1, max_wait=0, min_bytes=1, max_bytes=100, isolation_level=0,
        session_id=0, session_epoch=-1, topics=topics, forgotten_topics_data=[], rack_id="",
    )  # fmt: skip
    return int(found.responses[0].partitions[0].error_code)


def delete(client, name):
    found = client.ask(20, 5, topic_names=[name], timeout=1000)
    assert int(found.responses[0].error_code) == errors.NONE


@pytest.mark.parametrize("asks", [metadata, fetch])
def test_a_deleted_topic_comes_back_for_all_but_those_left_over(world, asks):
    """It had asked, or read, as a consumer; whoever is new or writes makes the topic again."""
    consumer, operator = world.client(), world.client("operator")
    writer = world.client("writer")
    fetch(consumer, "other")
    metadata(writer, "flights")
    assert asks(consumer, "flights") == errors.NONE
    delete(operator, "flights")
    for _ in range(3):
        assert metadata(consumer, "flights") == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert metadata(consumer, "another") == errors.NONE, "a name that was not deleted"
    assert metadata(writer, "flights") == errors.NONE
    assert metadata(consumer, "flights") == errors.NONE
    delete(operator, "flights")
    assert metadata(consumer, "flights") == errors.UNKNOWN_TOPIC_OR_PARTITION
    newly = world.client()
    assert metadata(newly, "flights") == errors.NONE
    world.end()


def test_with_no_delay_who_is_left_over_makes_it_too(tmp_path):
    world = World(tmp_path, {"penstock.topic.deleted.auto.create.delay.ms": "0"})
    consumer = world.client()
    assert fetch(consumer, "flights") == errors.NONE
    delete(world.client("operator"), "flights")
    assert metadata(consumer, "flights") == errors.NONE
    world.end()
    world.close()
