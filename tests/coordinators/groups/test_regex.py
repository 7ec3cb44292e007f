"""An expression over topic names takes no more steps than a turn has time for."""

import pytest
from consumer_world import ConsumerWorld

from appliance.base.errors import INVALID_REGULAR_EXPRESSION, PeerError
from appliance.coordinators.groups import regex
from appliance.coordinators.groups.settings import GroupSettings

NAMES = [f"{'t' * 240}-{number:03}" for number in range(200)]
STEPS = GroupSettings().regex_max_steps
HEAVY = "(.?){1000}" * 4


def test_what_is_usual_is_taken_over_many_names():
    names = [f"flights-{number:05}" for number in range(16_384)]
    for expression in ("flights-.*", "(flights|trains)-[0-9]+", ".*", r"flights-\d{1,5}"):
        regex.check_work(expression, names, STEPS)
        assert len(regex.matching(expression, names)) == len(names)


def test_a_large_program_over_many_letters_is_refused_with_what_to_do():
    regex.check_work(HEAVY, NAMES[:2], STEPS)
    with pytest.raises(PeerError, match="Use fewer repetitions, or name the topics") as refused:
        regex.check_work(HEAVY, NAMES, STEPS)
    assert refused.value.code == INVALID_REGULAR_EXPRESSION
    assert regex.count_work(HEAVY, NAMES) > STEPS


def test_groups_tell_nobody_what_an_expression_captured():
    assert regex.compiled("(a)(b)").programsize == regex.compiled("(?:a)(?:b)").programsize


def test_a_heartbeat_with_too_much_work_is_refused_and_leaves_no_trace():
    world = ConsumerWorld(regex_max_steps=10)
    fields = {"subscribed_topic_regex": "t.*", "subscribed_topic_names": ()}
    _, ((_, answer),) = world.heartbeat(
        "a", 0, rebalance_timeout=1000, topic_partitions=(), **fields
    )
    assert answer.error_code == INVALID_REGULAR_EXPRESSION
    assert "Use fewer repetitions" in answer.error_message
    assert not world.log
