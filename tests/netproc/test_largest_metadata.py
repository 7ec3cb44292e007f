"""Metadata of one topic with very many partitions, and of very many topics that are not there."""

from dataclasses import replace

import pytest

from appliance.base import errors
from appliance.netproc.requests import long_requests
from tests.netproc.netproc_world import LAYOUT, World
from tests.netproc.test_largest_turns import counting

METADATA, DESCRIBE_TOPIC_PARTITIONS = 3, 75
PARTITIONS = 4096
CALLS = 8_000
"""In one turn: some hundred partitions are described, or encoded, at some ten calls each."""


@pytest.fixture
def world(tmp_path):
    layout = replace(LAYOUT, partition_rows=2 * PARTITIONS)
    one = World(tmp_path, settings={"num.partitions": str(PARTITIONS)}, layout=layout)
    yield one
    one.close()


@pytest.fixture(autouse=True)
def short_turns(monkeypatch):
    monkeypatch.setattr(long_requests, "TURN_NS", 0)  # one step in each turn


def answer_of(world, client, key, version, **values):
    client.send(key, version, **values)
    for _ in range(2000):
        world.turn()
        if (found := client.answer()) is not None:
            return found[1]
    raise AssertionError("it is not answered")


@pytest.mark.interpreted("calls of compiled functions are not seen")
@pytest.mark.parametrize("version", [0, 1, 13])
@pytest.mark.parametrize("named", [True, False])
def test_no_turn_describes_a_whole_large_topic(world, version, named):
    client = world.client()
    topics = [{"name": "flights"}] if named else None if version else []
    if version >= 10 and named:
        topics[0]["topic_id"] = None
    values = {"topics": topics}
    if version >= 4:
        values["allow_auto_topic_creation"] = False
    if version >= 8:
        values["include_topic_authorized_operations"] = False
    answer = answer_of(world, client, METADATA, version, **values)
    (topic,) = answer.topics
    assert [one.partition_index for one in topic.partitions] == list(range(PARTITIONS))
    (node,) = {one.leader_id for one in topic.partitions}
    assert node == 1
    assert counted(world, client, METADATA, version, values) < CALLS


def counted(world, client, key, version, values):
    """The most calls in a turn."""
    client.send(key, version, **values)
    most, answer = 0, None
    while answer is None:
        with counting() as found:
            world.turn()
        most, answer = max(most, found[0]), client.answer()
    return most


@pytest.mark.interpreted("calls of compiled functions are not seen")
def test_no_turn_describes_a_whole_page_of_partitions(world):
    client = world.client()
    values = {"topics": [{"name": "flights"}], "response_partition_limit": 2000, "cursor": None}
    values["cursor"] = {"topic_name": "flights", "partition_index": 1000}
    answer = answer_of(world, client, DESCRIBE_TOPIC_PARTITIONS, 0, **values)
    (topic,) = answer.topics
    assert [one.partition_index for one in topic.partitions] == list(range(1000, 3000))
    assert answer.next_cursor.partition_index == 3000
    assert counted(world, client, DESCRIBE_TOPIC_PARTITIONS, 0, values) < CALLS


def test_control_is_asked_for_as_many_topics_as_it_may_create(world):
    """And for one more, so that it says that these were too many."""
    client, most = (
        world.client(),
        world.server.host.config.int("penstock.topic.auto.create.max.per.minute"),
    )
    asked = []
    world.server.host.ensure_topic, plain = (
        lambda x, index, name: asked.append(name),
        world.server.host.ensure_topic,
    )
    names = [f"u{number}" for number in range(3000)]
    try:
        answer = answer_of(
            world,
            client,
            METADATA,
            4,
            topics=[{"name": one} for one in names],
            allow_auto_topic_creation=True,
        )
    finally:
        world.server.host.ensure_topic = plain
    assert asked == names[: most + 1]
    assert {one.name for one in answer.topics} == {*names}
    codes = {one.error_code.value for one in answer.topics}
    assert codes == {errors.UNKNOWN_TOPIC_OR_PARTITION}
