"""Every scenario of consumer groups, and what a ConsumerGroupHeartbeat may not be."""

from pathlib import Path

import pytest
from consumer_script import Script
from consumer_world import ConsumerWorld

from appliance.base import errors

SCENARIOS = sorted((Path(__file__).parent / "consumer_scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    for text in path.read_text().split("\n===\n"):
        Script(text).run()


def test_a_wrong_expectation_fails() -> None:
    with pytest.raises(AssertionError, match="line 2"):
        Script("A joins t\nexpect A 1 has t0\n").run()


JOIN = {
    "rebalance_timeout": 1000,
    "topic_partitions": (),
    "subscribed_topic_names": ("t",),
}
INVALID = errors.INVALID_REQUEST


@pytest.mark.parametrize(
    ("member_id", "epoch", "changes", "code"),
    [
        ("", 0, {}, INVALID),
        ("", 3, {}, INVALID),
        ("a", -3, {}, INVALID),
        ("a", -2, {}, INVALID),
        ("a", 0, {"group_id": ""}, INVALID),
        ("a", 0, {"instance_id": ""}, INVALID),
        ("a", 0, {"rack_id": ""}, INVALID),
        ("a", 0, {"rebalance_timeout": -1}, INVALID),
        ("a", 0, {"topic_partitions": None}, INVALID),
        ("a", 0, {"topic_partitions": [{"topic_id": b"t" * 16, "partitions": (1,)}]}, INVALID),
        ("a", 0, {"subscribed_topic_names": None}, INVALID),
        ("a", 0, {"server_assignor": "sticky"}, errors.UNSUPPORTED_ASSIGNOR),
        ("a", 0, {"subscribed_topic_regex": "a(b"}, errors.INVALID_REGULAR_EXPRESSION),
        ("a", 0, {"subscribed_topic_regex": r"(a)\1"}, errors.INVALID_REGULAR_EXPRESSION),
        ("a", 0, {"subscribed_topic_regex": "((a{99}){99})"}, errors.INVALID_REGULAR_EXPRESSION),
        ("a", 3, {}, errors.UNKNOWN_MEMBER_ID),
        ("a", -1, {}, errors.GROUP_ID_NOT_FOUND),
        ("a", 0, {}, errors.NONE),
        ("a", 0, {"subscribed_topic_names": ()}, errors.NONE),
    ],
)  # fmt: skip
def test_what_a_heartbeat_may_not_be(member_id, epoch, changes, code) -> None:
    world = ConsumerWorld()
    _, ((_, answer),) = world.heartbeat(member_id, epoch, **{**JOIN, **changes})
    assert answer.error_code == code, answer
    assert (answer.error_message is None) == (code == errors.NONE)
    assert bool(world.log) == (code == errors.NONE), "who is refused leaves no trace"


def test_a_group_has_room_for_so_many() -> None:
    world = ConsumerWorld(consumer_max_size=1)
    world.heartbeat("a", 0, **JOIN)
    _, ((_, answer),) = world.heartbeat("b", 0, **JOIN)
    assert answer.error_code == errors.GROUP_MAX_SIZE_REACHED
    words = "The consumer group has reached its maximum capacity of 1 members."
    assert answer.error_message.startswith(words)
    assert "group.consumer.max.size" in answer.error_message


def test_without_the_feature_it_is_not_there() -> None:
    world = ConsumerWorld()
    del world.image.features["group.version"]
    _, ((_, answer),) = world.heartbeat("a", 0, **JOIN)
    assert answer.error_code == errors.UNSUPPORTED_VERSION


def test_a_group_has_its_own_timeouts() -> None:
    world = ConsumerWorld()
    world.image.configs[32, "g"] = {
        "consumer.session.timeout.ms": "50000",
        "consumer.heartbeat.interval.ms": "7000",
    }
    _, ((_, answer),) = world.heartbeat("a", 0, **JOIN)
    assert answer.heartbeat_interval.total_seconds() == 7
    world.pass_time(49_999)
    assert world.shard.state.groups["g"].members
    world.pass_time(1)
    assert not world.shard.state.groups["g"].members
