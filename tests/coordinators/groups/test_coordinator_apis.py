"""Every API in every version, in every state of a shard; names and ids; who answers for what."""

import dataclasses

import pytest
from coordinator_world import World, add_topic, image_of

from appliance.base import errors
from appliance.coordinators import find
from appliance.coordinators.groups.records import RECORDS, OffsetCommitKey
from appliance.coordinators.groups.routing import splice, split
from appliance.coordinators.runtime.call import NEVER, Call
from appliance.coordinators.runtime.kind import partition_of
from appliance.wire.build import build, response
from appliance.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    request_type,
    request_versions,
)
from tests.callers import rights

T_ID = b"t".ljust(16, b".")
MEMBER = {"member_id": "who", "group_instance_id": None}
ROW = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
REQUESTS = {
    8: (
        range(2, 11),
        {
            "generation_id_or_member_epoch": 3,
            "member_id": "who",
            "retention_time": -1,
            "topics": [{"name": "t", "topic_id": T_ID, "partitions": [ROW]}],
        },
    ),
    9: (
        range(1, 11),
        {
            "topics": [{"name": "t", "topic_id": T_ID, "partition_indexes": (0, 9)}],
            "groups": [
                {
                    "group_id": "g",
                    "topics": [{"name": "t", "topic_id": T_ID, "partition_indexes": (0, 9)}],
                }
            ],
        },
    ),
    11: (
        range(10),
        {
            "session_timeout": 10_000,
            "rebalance_timeout": 10_000,
            "member_id": "who",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        },
    ),
    12: (range(5), {"generation_id": 1, "member_id": "who"}),
    13: (range(6), {"member_id": "who", "members": [MEMBER]}),
    14: (
        range(6),
        {
            "generation_id": 1,
            "member_id": "who",
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": (),
        },
    ),
    15: (range(7), {"groups": ("g",), "include_authorized_operations": True}),
    16: (range(6), {"states_filter": (), "types_filter": ()}),
    42: (range(3), {"groups_names": ("g",)}),
    47: (range(1), {"topics": [{"name": "t", "partitions": [{"partition_index": 0}]}]}),
}
ALL = [(key, version) for key, (versions, _) in REQUESTS.items() for version in versions]


def codes(message) -> set[int]:
    """Every error code anywhere in a message."""
    if isinstance(message, tuple):
        return set().union(*(codes(one) for one in message))
    if not hasattr(message, "__dataclass_fields__"):
        return set()
    found = {int(message.error_code)} if hasattr(message, "error_code") else set()
    return found.union(*(codes(getattr(message, name)) for name in message.__dataclass_fields__))


def asked(world: World, key: int, version: int):
    return world.answer(key, version, group_id="g", **REQUESTS[key][1])


@pytest.mark.parametrize(("key", "version"), ALL)
def test_a_shard_that_loads_or_resigned_says_so(key: int, version: int) -> None:
    world = World()
    world.shard = world.new_shard()
    loading = codes(asked(world, key, version)) - {0}
    told = {12: set(), 14: {errors.REBALANCE_IN_PROGRESS}}
    assert loading == told.get(key, {errors.COORDINATOR_LOAD_IN_PROGRESS})
    world.shard.activate(world.now)
    world.shard.resign()
    assert codes(asked(world, key, version)) - {0} == {errors.NOT_COORDINATOR}
    assert world.shard.next_deadline_ms == NEVER


@pytest.mark.parametrize(("key", "version"), ALL)
def test_a_group_that_is_not_there(key: int, version: int) -> None:
    expected = {
        8: errors.GROUP_ID_NOT_FOUND if version >= 9 else errors.ILLEGAL_GENERATION,
        15: errors.GROUP_ID_NOT_FOUND if version >= 6 else 0,
        42: errors.GROUP_ID_NOT_FOUND,
        47: errors.GROUP_ID_NOT_FOUND,
    }
    members = dict.fromkeys((11, 12, 13, 14), errors.UNKNOWN_MEMBER_ID)
    wanted = {**expected, **members}.get(key, 0)
    world = World()
    assert codes(asked(world, key, version)) - {0} == {wanted} - {0}
    assert not world.log


@pytest.mark.parametrize("key", [11, 12, 13, 14])
def test_members_need_a_group_id(key: int) -> None:
    answer = World().answer(key, 0, group_id="", **REQUESTS[key][1])
    assert answer.error_code == errors.INVALID_GROUP_ID


def test_a_member_id_must_fit_its_record() -> None:
    world = World()
    fields = {**REQUESTS[11][1], "member_id": "", "group_instance_id": "i" * 32_760}
    answer = world.answer(11, 9, group_id="g", **fields)
    assert answer.error_code == errors.INVALID_REQUEST


def commit(world: World, version: int, offset: int, **topic):
    row = {**ROW, "committed_offset": offset}
    fields = {"generation_id_or_member_epoch": -1, "member_id": "", "retention_time": -1}
    topics = [{**topic, "partitions": [row]}]
    return world.answer(8, version, group_id="g", topics=topics, **fields)


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_are_fetched_in_every_version(version: int) -> None:
    world = World()
    commit(world, 2, 5, name="t")
    message = asked(world, 9, version)
    (topic,) = message.groups[0].topics if version >= 8 else message.topics
    assert [row.committed_offset for row in topic.partitions] == [5, -1]
    assert codes(message) == {0}


@pytest.mark.parametrize("version", range(2, 11))
def test_all_offsets_are_fetched(version: int) -> None:
    world = World()
    commit(world, 9, 5, name="t")
    fields = {"topics": None} if version < 8 else {"groups": [{"group_id": "g", "topics": None}]}
    message = world.answer(9, version, group_id="g", **fields)
    (topic,) = message.groups[0].topics if version >= 8 else message.topics
    assert (topic.topic_id.bytes == T_ID) if version >= 10 else (topic.name == "t")
    assert [(row.partition_index, row.committed_offset) for row in topic.partitions] == [(0, 5)]


def test_commits_by_topic_id() -> None:
    world = World()
    assert codes(commit(world, 10, 5, topic_id=T_ID)) == {0}
    assert codes(commit(world, 10, 5, topic_id=b"x" * 16)) == {errors.UNKNOWN_TOPIC_ID}
    assert world.shard.state.offsets.find_offset("g", "t", 0).topic_id == T_ID
    unknown = {"group_id": "g", "topics": [{"topic_id": b"x" * 16, "partition_indexes": (0,)}]}
    assert codes(world.answer(9, 10, groups=[unknown])) == {0, errors.UNKNOWN_TOPIC_ID}


def test_a_topic_made_anew_has_no_offsets_of_the_old_one() -> None:
    world = World()
    commit(world, 9, 5, name="t")
    world.image = image_of(u=1)
    world.shard.follow(world.image)
    add_topic(world.image, "t", b"another".ljust(16), 4)
    (topic,) = asked(world, 9, 9).groups[0].topics
    assert topic.partitions[0].committed_offset == -1
    commit(world, 9, 7, name="t")
    world.carry_out(world.shard.on_topic_deleted("t", T_ID, world.now))
    assert world.shard.state.offsets.find_offset("g", "t", 0).offset == 7


def test_authorized_operations_are_told_when_asked_for() -> None:
    world = World()
    commit(world, 9, 5, name="t")
    (group,) = asked(world, 15, 5).groups
    assert group.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    fields = {"groups": ("g",), "include_authorized_operations": False}
    assert world.answer(15, 5, **fields).groups[0].authorized_operations == -(1 << 31)


def test_a_resigned_shard_answers_those_who_wait() -> None:
    world = World()
    join = {**REQUESTS[11][1], "member_id": ""}
    for _ in range(2):
        world.ask(11, 3, group_id="g", **join)
    (parked,) = world.calls
    ((token, answer),) = world.carry_out(world.shard.resign())
    assert (token, answer.error_code) == (parked, errors.NOT_COORDINATOR)


def test_a_loaded_group_that_is_too_big_has_to_join_again() -> None:
    world = World()
    join = {**REQUESTS[11][1], "member_id": ""}
    first = world.answer(11, 3, group_id="g", **join)
    world.ask(11, 3, group_id="g", **join)
    world.ask(11, 3, group_id="g", **{**join, "member_id": first.member_id})
    share = {**REQUESTS[14][1], "member_id": first.member_id, "generation_id": 2}
    world.answer(14, 5, group_id="g", **share)
    world.settings = dataclasses.replace(world.settings, max_size=1)
    world.restart()
    assert world.shard.state.groups["g"].state == "PreparingRebalance"


def test_ids_that_nobody_uses_cost_little() -> None:
    world = World()
    world.check_every = 1 << 30
    join = {**REQUESTS[11][1], "member_id": ""}
    for _ in range(3000):
        world.now += 1
        world.ask(11, 9, group_id="g", **join)
    looks = 0
    while world.shard.state.groups["g"].pending_joins:
        world.now = world.shard.next_deadline_ms
        world.tick()
        looks += 1
    assert looks < 2000


def test_deleting_a_group_leaves_nothing() -> None:
    world = World()
    commit(world, 9, 5, name="t")
    asked(world, 42, 2)
    assert not world.shard.state.groups
    assert not world.shard.state.offsets.by_group
    key, value = RECORDS.decode(*world.log[1])
    assert (key, value) == (OffsetCommitKey(group="g", topic="t", partition=0), None)


# Routing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "hashed"),
    [("", 0), ("a", 97), ("test", 3556498), ("\U0001f600", 1772899), ("e1", 3180)],
)
def test_groups_are_spread_as_kafka_spreads_them(group: str, hashed: int) -> None:
    assert partition_of(group, 1 << 31) == hashed
    assert partition_of(group, 50) == hashed % 50


def test_a_negative_hash_loses_its_sign() -> None:
    """Java: "polygenelubricants".hashCode() is -2147483648, which Kafka takes as 0; "second", with
    -906279820, was in partition 20 of 50 of Apache Kafka 4.3.1."""
    assert partition_of("polygenelubricants", 50) == 0
    assert partition_of("polygenelubricants", 7) == 0
    assert partition_of("second", 1 << 31) == 906_279_820
    assert partition_of("second", 50) == 20


def request(api: int, version: int, **fields):
    message = build(request_type(api, version), fields)
    return decode_request(api, version, encode_request(message))


def test_requests_for_several_groups_go_to_their_shards() -> None:
    names = ("a", "b", "test", "a")
    wanted = sorted({partition_of(name, 50) for name in names})
    parts = split(42, request(42, 2, groups_names=names), 50)
    assert list(parts) == wanted
    assert parts[partition_of("a", 50)].groups_names == ("a", "a")
    everywhere = request(16, 5)
    assert split(16, everywhere, 50) == dict.fromkeys(range(50), everywhere)
    nobody = request(42, 2, groups_names=())
    assert split(42, nobody, 50) == {0: nobody}


ROWS = {
    9: {"group_id": "{}", "error_code": 16, "topics": [
        {"name": "t", "topic_id": T_ID, "partitions": [
            {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1,
             "metadata": None, "error_code": 0}]}]},
    15: {"error_code": 0, "error_message": None, "group_id": "{}", "group_state": "Dead",
         "protocol_type": "", "protocol_data": "", "members": [], "authorized_operations": -1},
    16: {"group_id": "{}", "protocol_type": "consumer", "group_state": "Empty",
         "group_type": "classic"},
    42: {"group_id": "{}", "error_code": 69},
    69: {"error_code": 69, "error_message": "no", "group_id": "{}", "group_state": "",
         "group_epoch": 0, "assignment_epoch": 0, "assignor_name": "", "members": [],
         "authorized_operations": -1},
}  # fmt: skip


@pytest.mark.parametrize("key", ROWS)
def test_answers_are_spliced_as_if_they_were_one(key: int) -> None:
    """Held to what decoding them all and encoding the whole gives."""
    field = "results" if key == 42 else "groups"
    for version in request_versions(key):
        if key == 9 and version < 8:
            continue
        counts = (3, 0, 200, 1)

        def answer(rows: list, version: int = version) -> bytes:
            values = {"throttle_time": 0, "error_code": 0, field: rows}
            return encode_response(response(key, version, values))

        parts = [
            [{**ROWS[key], "group_id": f"g{part}-{n}"} for n in range(count)]
            for part, count in enumerate(counts)
        ]
        whole = answer([row for part in parts for row in part])
        assert splice(key, version, [answer(part) for part in parts]) == whole, version


def test_each_shard_answers_for_its_own_and_together_for_all() -> None:
    names = ("a", "b", "test")
    parts = []
    for partition, part in split(42, request(42, 2, groups_names=names), 50).items():
        world = World(partitions=50)
        shard = world.new_shard(partition)
        shard.activate(world.now)
        ((_, values),) = shard.handle(Call(42, 2, 1, rights()), part, world.now).responses
        parts.append(encode_response(response(42, 2, values)))
    merged = decode_response(42, 2, splice(42, 2, parts))
    assert sorted(one.group_id for one in merged.results) == sorted(names)


def test_a_part_of_the_groups_is_not_all_of_them() -> None:
    for version in (0, 5):
        good, bad = (
            encode_response(
                response(16, version, {"throttle_time": 0, "error_code": code, "groups": ()})
            )
            for code in (0, errors.COORDINATOR_LOAD_IN_PROGRESS)
        )
        assert splice(16, version, [good, bad, good]) == bad


def test_a_shard_refuses_what_is_not_its_own() -> None:
    world = World(partitions=50)
    answer = world.answer(12, 4, group_id="a", generation_id=1, member_id="who")
    assert answer.error_code == errors.NOT_COORDINATOR


# FindCoordinator ----------------------------------------------------------------------------------


def here(node_id: int) -> find.CoordinatorNode:
    return find.CoordinatorNode(node_id, "here", 9092)


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize(
    ("kind", "there", "code"),
    [
        (0, True, errors.NONE),
        (0, False, errors.COORDINATOR_NOT_AVAILABLE),
        (1, True, errors.NONE),
        (1, False, errors.COORDINATOR_NOT_AVAILABLE),
        (2, True, errors.INVALID_REQUEST),
        (9, True, errors.INVALID_REQUEST),
    ],
)
def test_the_coordinator_is_here(version: int, kind: int, there: bool, code: int) -> None:
    if version == 0 and kind:
        return
    topic = {0: "__consumer_offsets", 1: "__transaction_state"}.get(kind)
    image = image_of(**({topic: 1} if there and topic else {}))
    message = request(10, version, key="g", key_type=kind, coordinator_keys=("g", "h"))
    values, create = find.find_coordinators(version, message, image, here, rights())
    answer = response(10, version, values)
    assert encode_response(answer)
    assert codes(answer) == {code}
    assert create == (None if there else topic)
    rows = answer.coordinators if version >= 4 else [answer]
    assert len(rows) == (2 if version >= 4 else 1)
    assert {row.port for row in rows} == {9092 if code == 0 else -1}
