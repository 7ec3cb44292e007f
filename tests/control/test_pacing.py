"""Long requests of clients are decided one in a turn; what other nodes ask does not wait."""

import pytest
from test_control_shell import Appliance

from appliance.base import errors
from appliance.control.pacing import BYTES, PacedRequests
from appliance.ring.messages import ENSURE_TOPIC, FORWARD, WATCH, Message
from appliance.wire.messages import decode_response
from benchmarks import largest

CREATE_TOPICS, ELECT_LEADERS, VOTE, HEARTBEAT = 19, 43, 52, 63


def message(token, key=CREATE_TOPICS, size=100, op=FORWARD):
    return Message(op, 0, 0, token, 0, key << 16, 0, 0, 0, 0, 0, 0, size, 0)


def paced():
    decided = []
    failed = []

    def decide(netproc, asked, context):
        decided.append(asked.token)

    return PacedRequests(decide, lambda *what: failed.append(what), failed.append), decided


def test_small_ones_are_decided_at_once():
    some, decided = paced()
    some.decide_all(0, [message(1), message(2, op=ENSURE_TOPIC), message(3, op=WATCH)])
    assert decided == [1, 2]
    assert not some.late


def test_long_ones_are_decided_one_in_a_turn_in_their_order():
    some, decided = paced()
    some.decide_all(0, [message(token, size=BYTES + 1) for token in range(3)])
    some.decide_all(1, [message(3)])
    assert decided == [0]
    for turns in range(1, 5):
        some.run_turn()
        assert len(decided) <= 1 + turns
        if not some.late:
            break
    assert decided == [0, 1, 2, 3]


@pytest.mark.parametrize("key", [VOTE, HEARTBEAT])
def test_what_other_nodes_ask_does_not_wait(key):
    some, decided = paced()
    some.decide_all(0, [message(token, size=BYTES + 1) for token in range(3)])
    some.decide_all(1, [message(9, key=key)])
    assert decided == [0, 9]


def test_the_dead_wait_for_nothing():
    some, decided = paced()
    some.decide_all(0, [message(token, size=BYTES + 1) for token in range(3)])
    some.decide_all(1, [message(7)])
    some.drop_netproc(0)
    some.run_turn()
    assert decided == [0, 7]


def test_all_are_answered_over_several_turns(tmp_path):
    one = Appliance(tmp_path)
    try:
        shape = next(largest.shapes(ELECT_LEADERS, 2, 4000, 1 << 20))
        assert len(shape.body) > BYTES
        tokens = [one.forward(ELECT_LEADERS, 2, shape.body) for _ in range(3)]
        one.net.flush()
        for peer, messages in one.links.poll():
            one.control.handle(peer, messages)
        assert one.control._paced.late
        answers = one.answers()
        assert not one.control._paced.late
        assert {answers[token][0] for token in tokens} == {errors.NONE}
        first = decode_response(ELECT_LEADERS, 2, answers[tokens[0]][1])
        assert len(first.replica_election_results) == shape.elements
    finally:
        one.close()
