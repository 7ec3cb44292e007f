"""What a single member can get wrong, and what old versions look like."""

import pytest
from coordinator_world import World, image_of, subscription

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.broker import BrokerConfig
from appliance.coordinators.groups.classic_state import EMPTY, STABLE
from appliance.coordinators.groups.settings import from_config
from appliance.coordinators.groups.subscription import topics_of
from appliance.coordinators.runtime.call import Call
from appliance.wire.build import build
from appliance.wire.messages import decode_request, encode_request, request_type
from tests.callers import rights

JOIN = {
    "group_id": "g",
    "session_timeout": 10_000,
    "rebalance_timeout": 60_000,
    "member_id": "",
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": subscription("t")}],
}


def joined(world: World) -> dict[str, object]:
    """A member that is alone in generation 1."""
    member_id = world.answer(11, 3, **JOIN).member_id
    return {"group_id": "g", "member_id": member_id, "generation_id": 1}


def sync(world: World, who: dict[str, object], **changes: object):
    fields = {"protocol_type": "consumer", "protocol_name": "range", "assignments": (), **changes}
    return world.answer(14, 5, **{**who, **fields}).error_code


def test_heartbeats_name_the_generation() -> None:
    world = World()
    who = joined(world)
    assert world.answer(12, 4, **who).error_code == errors.NONE
    assert world.answer(12, 4, **{**who, "generation_id": 0}).error_code == 22
    assert world.answer(12, 4, **{**who, "group_id": "h"}).error_code == errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"protocol_type": None}, errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": None}, errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": None, "group_id": ""}, errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_id": ""}, errors.INVALID_GROUP_ID),
        ({"generation_id": 2}, errors.ILLEGAL_GENERATION),
        ({"member_id": "other"}, errors.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "i"}, errors.UNKNOWN_MEMBER_ID),
        ({}, errors.NONE),
    ],
)
def test_a_sync_must_fit_the_group(changes, code) -> None:
    world = World()
    assert sync(world, joined(world), **changes) == code


@pytest.mark.parametrize("version", range(3))
def test_one_member_leaves_in_old_versions(version: int) -> None:
    world = World()
    who = joined(world)
    assert sync(world, who) == errors.NONE
    assert world.shard.state.groups["g"].state == STABLE
    assert world.answer(13, version, **who).error_code == errors.NONE
    assert world.shard.state.groups["g"].state == EMPTY
    assert world.answer(13, version, **who).error_code == errors.UNKNOWN_MEMBER_ID


def test_a_pending_member_leaves_and_nobody_waits_for_it() -> None:
    world = World()
    first = joined(world)
    sync(world, first)
    pending = world.answer(11, 9, **JOIN).member_id
    second, _ = world.ask(11, 3, **JOIN)
    assert world.ask(11, 3, **{**JOIN, "member_id": first["member_id"]})[1] == []
    leave = {"group_id": "g", "members": [{"member_id": pending, "group_instance_id": None}]}
    _, answers = world.ask(13, 5, **leave)
    assert second in dict(answers)
    assert len(answers) == 3


def test_a_pending_member_that_leaves_a_stable_group_disturbs_nobody() -> None:
    world = World()
    sync(world, joined(world))
    pending = world.answer(11, 9, **JOIN).member_id
    leave = {"group_id": "g", "members": [{"member_id": pending, "group_instance_id": None}]}
    assert world.answer(13, 5, **leave).members[0].error_code == errors.NONE
    assert world.shard.state.groups["g"].state == STABLE


def test_a_new_member_that_is_removed_while_it_waits_is_told() -> None:
    world = World()
    sync(world, joined(world))
    new, _ = world.ask(11, 5, **{**JOIN, "group_instance_id": "i"})
    leave = {"group_id": "g", "members": [{"member_id": "", "group_instance_id": "i"}]}
    _, answers = world.ask(13, 5, **leave)
    assert dict(answers)[new].error_code == errors.UNKNOWN_MEMBER_ID


def test_the_later_of_two_syncs_is_answered_with_the_share() -> None:
    world = World()
    first = joined(world)
    sync(world, first)
    second, _ = world.ask(11, 3, **JOIN)
    _, answers = world.ask(11, 3, **{**JOIN, "member_id": first["member_id"]})
    who = {"group_id": "g", "member_id": dict(answers)[second].member_id, "generation_id": 2}
    fields = {"protocol_type": "consumer", "protocol_name": "range", "assignments": ()}
    early, _ = world.ask(14, 5, **who, **fields)
    late, heard = world.ask(14, 5, **who, **fields)
    assert [(token, one.error_code) for token, one in heard] == [(early, 27)]
    _, heard = world.ask(14, 5, **{**first, "generation_id": 2}, **fields)
    assert dict(heard)[late].error_code == errors.NONE


@pytest.mark.parametrize("change", [{"protocol_type": ""}, {"protocols": ()}])
def test_who_speaks_no_protocol_does_not_make_a_group(change) -> None:
    world = World()
    assert world.answer(11, 3, **{**JOIN, **change}).error_code == 23
    assert not world.shard.state.groups
    assert not world.log


def test_offsets_of_topics_that_are_gone_have_no_id_to_be_told_by() -> None:
    world = World()
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    topics = [{"name": "t", "partitions": [row]}]
    anybody = {"member_id": "", "generation_id_or_member_epoch": -1}
    world.answer(8, 9, group_id="g", topics=topics, **anybody)
    world.image = image_of(u=1)
    world.shard.follow(world.image)
    asked = [{"group_id": "g", "topics": None}]
    assert world.answer(9, 10, groups=asked).groups[0].topics == ()
    assert world.answer(9, 9, groups=asked).groups[0].topics == ()


def test_a_damaged_record_names_its_offset() -> None:
    with pytest.raises(PeerError, match="offset 17"):
        World().new_shard().replay(b"\x00\x01\x00", b"", 17)


def test_what_could_not_be_carried_out_is_refused() -> None:
    message = build(request_type(12, 4), {"group_id": "g", "generation_id": 1, "member_id": "m"})
    request = decode_request(12, 4, encode_request(message))
    values = World().shard.refuse(Call(12, 4, 9, rights()), request, errors.NOT_COORDINATOR)
    assert values == {"throttle_time": 0, "error_code": 16}


def test_settings_are_the_brokers() -> None:
    config = BrokerConfig.of({
        "group.max.size": "7", "offsets.retention.minutes": "2",
        "offsets.retention.check.interval.ms": "3000", "group.consumer.assignors": "range",
        "group.coordinator.rebalance.protocols": "classic",
    })  # fmt: skip
    settings = from_config(config, 3)
    assert (settings.partitions, settings.max_size) == (3, 7)
    assert settings.offsets_retention_ms == 120_000
    assert settings.offsets_retention_check_interval_ms == 3000
    assert settings.consumer_assignors == ("range",)
    assert not settings.consumer_protocol


def test_topics_of_a_subscription() -> None:
    assert topics_of(subscription("a", "b")) == ("a", "b")
    for damaged in (b"", b"\x00", b"\x00\x00\x00\x00\x00\x09"):
        assert topics_of(damaged) is None


def test_what_offset_delete_leaves_out() -> None:
    """Topics without partitions are not answered for; a group has a name."""
    world = World()
    joined(world)
    topics = [
        {"name": "t", "partitions": ()},
        {"name": "u", "partitions": ({"partition_index": 0},)},
    ]
    assert [one.name for one in world.answer(47, 0, group_id="g", topics=topics).topics] == ["u"]
    refused = world.answer(47, 0, group_id="", topics=topics)
    assert refused.error_code == errors.INVALID_GROUP_ID
