"""OffsetFetch of very many topics: read in steps, and no answer is larger than what there is."""

from dataclasses import replace

import pytest
from coordinator_world import World, image_of

from appliance.base import errors
from appliance.coordinators.groups import offset_fetch
from appliance.coordinators.groups.offset_fetch import ROWS
from appliance.coordinators.runtime.call import Call
from appliance.wire import messages
from appliance.wire.build import build
from tests.callers import rights

FETCH, COMMIT, DESCRIBE = 9, 8, 15
TOPICS = 3 * ROWS
ALL = {"topics": None, "member_id": None, "member_epoch": -1}


@pytest.fixture
def world():
    one = World(image_of(**{f"t{n}": 2 for n in range(TOPICS)}))
    topics = [
        {"name": f"t{n}", "partitions": [row(index) for index in range(2)]} for n in range(TOPICS)
    ]
    one.answer(
        COMMIT, 2, group_id="g", generation_id_or_member_epoch=-1, member_id="",
        retention_time=-1, topics=topics,
    )  # fmt: skip
    return one


def row(index):
    return {"partition_index": index, "committed_offset": 5, "committed_metadata": None}


@pytest.mark.parametrize("topics", [None, "named"])
@pytest.mark.parametrize("version", [7, 9])
def test_it_is_read_in_steps_and_answered_as_at_once(world, version, topics):
    named = topics and [
        {"name": f"t{n}", "partition_indexes": range(ROWS if n else 2 * ROWS + 1)} for n in range(4)
    ]
    if version >= 8:
        values = {"groups": [{**ALL, "group_id": "g", "topics": named}], "require_stable": True}
    else:
        values = {"group_id": "g", "topics": named, "require_stable": True}
    request = build(messages.request_type(FETCH, version), values)
    call = Call(FETCH, version, 1, rights("test"))
    steps = offset_fetch.prepare(world.shard.state, call, request)
    seen = []
    prepared = returned(steps, seen)
    assert len(seen) >= 3
    told = answers(world, call, request)
    assert answers(world, replace(call, prepared=prepared), request) == told
    rows = told["groups"][0]["topics"] if version >= 8 else told["topics"]
    assert len(rows) == (4 if named else TOPICS)


def test_ids_of_topics_are_known_however_they_were_decoded(world):
    ids = [world.shard.state.image.topics_by_name[name].topic_id for name in ("t0", "t1")]
    topics = [{"topic_id": one, "partition_indexes": [0]} for one in (*ids, bytes(16))]
    groups = [{**ALL, "group_id": "g", "topics": topics}]
    values = {"groups": groups, "require_stable": False}
    body = messages.encode_request(build(messages.request_type(FETCH, 10), values))
    call = Call(FETCH, 10, 1, rights("test"))
    told = answers(world, call, messages.decode_request(FETCH, 10, body))
    sliced = returned(messages.decode_in_slices(FETCH, 10, body))
    assert answers(world, call, sliced) == told
    rows = [topic["partitions"][0] for topic in told["groups"][0]["topics"]]
    assert [row["error_code"] for row in rows] == [0, 0, errors.UNKNOWN_TOPIC_ID]
    assert rows[0]["committed_offset"] == 5


def returned(steps, seen=None):
    """What these steps return. seen: each adds to it."""
    found = []

    def all_of():
        found.append((yield from steps))

    for step in all_of():
        if seen is not None:
            seen.append(step)
    return found[0]


def answers(world, call, request):
    outcome = world.shard.handle(call, request, world.now)
    ((_, values),) = outcome.responses
    return values


def test_a_group_that_is_named_again_is_told_once(world):
    groups = [{**ALL, "group_id": "g"}] * 5
    found = world.answer(FETCH, 9, groups=groups, require_stable=False)
    assert [len(group.topics) for group in found.groups] == [TOPICS]
    found = world.answer(DESCRIBE, 5, groups=["g"] * 5, include_authorized_operations=False)
    assert [group.group_id for group in found.groups] == ["g"]
    assert int(found.groups[0].error_code) == errors.NONE
