"""Requests in flight at one network process: each is answered once, to the one who asked."""

import pytest

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
