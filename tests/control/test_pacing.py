"""Long requests of clients are decided one in a turn; what other nodes ask does not wait."""

import pytest
from test_control_shell import Appliance

from appliance.base import errors
from appliance.base.errors import NETWORK_EXCEPTION
from appliance.control.requests import paced_requests
from appliance.control.requests.paced_requests import BYTES, LEAST, PacedRequests
from appliance.control.requests.pending_answers import Unencoded
from appliance.ring.messages import CANCEL, ENSURE_TOPIC, FORWARD, WATCH, Message
from appliance.wire.messages import decode_response, request_versions
from benchmarks import largest
from tests.netproc.test_largest_turns import counting

CREATE_TOPICS, ELECT_LEADERS, VOTE, HEARTBEAT = 19, 43, 52, 63
ELEMENTS = 4096
MOST = {  # API key, calls of the decision for each element of the request
    "CreateTopics": (CREATE_TOPICS, 8),
    "DeleteTopics": (20, 10),
    "DescribeConfigs": (32, 8),
    "CreatePartitions": (37, 8),
    "ElectLeaders": (ELECT_LEADERS, 8),
    "IncrementalAlterConfigs": (44, 8),
    "AlterPartitionReassignments": (45, 8),
}


def message(token, key=CREATE_TOPICS, size=100, op=FORWARD):
    return Message(op, 0, 0, token, 0, key << 16, 0, 0, 0, 0, 0, 0, size, 0)


class ThreeSteps:
    """In place of what decodes and encodes."""

    decide_part = None

    def decode(self, netproc, asked):
        yield from range(3)

    def forget_decoded(self):
        pass

    def encode(self, answer):
        yield from range(3)
        return b"encoded"


def paced():
    decided = []
    failed = []

    def decide(netproc, asked, context):
        decided.append(asked.token)

    answer = lambda *what: decided.append(what)  # noqa: E731
    return PacedRequests(
        decide, lambda *what: failed.append(what), answer, ThreeSteps(), None, answer
    ), decided


def test_small_ones_are_decided_at_once():
    some, decided = paced()
    some.decide_all(0, [message(1), message(2, op=ENSURE_TOPIC), message(3, op=WATCH)])
    assert decided == [1, 2]
    assert not some.late


def test_long_ones_are_decided_one_in_a_turn_in_their_order():
    some, decided = paced()
    some.decide_all(0, [message(token, size=BYTES + 1) for token in range(3)])
    some.decide_all(1, [message(3)])
    assert decided == []
    for turns in range(1, 5):
        some.run_turn()
        assert len(decided) <= turns
        if not some.late:
            break
    assert decided == [0, 1, 2, 3]


def test_who_is_gone_is_not_decided_for(monkeypatch):
    monkeypatch.setattr(paced_requests, "STEPS", 1)
    some, decided = paced()
    some.decide_all(0, [message(token, size=BYTES + 1) for token in range(3)])
    some.decide_all(1, [message(1, size=BYTES + 1)])
    some.run_turn()  # the first one is being decoded
    gone = [message(token, op=CANCEL) for token in (0, 1, 7)]
    some.decide_all(0, gone)
    dropped = [(0, token, NETWORK_EXCEPTION, b"") for token in (0, 1)]
    assert decided == dropped, "its netproc is told, once"
    while some.late:
        some.run_turn()
    assert decided == [*dropped, 2, 1], "the other netproc's request has the same number"


def test_a_long_one_is_decoded_before_it_is_decided(monkeypatch):
    monkeypatch.setattr(paced_requests, "STEPS", 1)
    some, decided = paced()
    some.decide_all(0, [message(7, size=BYTES + 1)])
    for _ in range(3):
        some.run_turn()
        assert some.busy and not decided
    some.run_turn()
    assert decided == [7] and not some.busy


def test_its_answer_is_encoded_before_it_is_said(monkeypatch):
    monkeypatch.setattr(paced_requests, "STEPS", 1)
    some, said = paced()
    some.reply(0, 7, errors.NONE, Unencoded(CREATE_TOPICS, 7, {}))
    some.reply(1, 8, errors.NONE, b"short")
    assert said == [(1, 8, errors.NONE, b"short")]
    while some.busy:
        some.run_turn()
    assert said[1:] == [(0, 7, errors.NONE, b"encoded")]


def test_the_dead_are_not_encoded_for():
    some, said = paced()
    some.reply(0, 7, errors.NONE, Unencoded(CREATE_TOPICS, 7, {}))
    some.drop_netproc(0)
    assert not some.busy and not said


@pytest.mark.parametrize("key", [VOTE, HEARTBEAT])
def test_what_other_nodes_ask_does_not_wait(key):
    some, decided = paced()
    some.decide_all(0, [message(token, size=BYTES + 1) for token in range(3)])
    some.decide_all(1, [message(9, key=key)])
    assert decided == [9]


def test_the_dead_wait_for_nothing():
    some, decided = paced()
    some.decide_all(0, [message(token, size=BYTES + 1) for token in range(3)])
    some.decide_all(1, [message(7)])
    some.drop_netproc(0)
    some.run_turn()
    assert decided == [7]


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


@pytest.mark.interpreted("calls of compiled functions are not seen")
@pytest.mark.parametrize("name", MOST)
def test_no_turn_takes_a_whole_long_request(tmp_path, name):
    """Counted are calls of Python functions for each element, in the turn that has most of them."""
    key, limit = MOST[name]
    version = request_versions(key)[-1]
    one = Appliance(tmp_path)
    try:
        for shape in largest.shapes(key, version, ELEMENTS, 1 << 20):
            token = one.forward(key, version, shape.body)
            one.net.flush()
            most, answer = 0, None
            for _ in range(200):
                with counting() as found:
                    for peer, messages in one.links.poll():
                        one.control.handle(peer, messages)
                    one.control.run_once(one.now_ns)
                most = max(most, found[0])
                for _, messages in one.net.poll():
                    answer = next((m for m in messages if m.token == token), answer)
                if answer is not None:
                    break
            assert answer.flags == 1
            assert most <= limit * ELEMENTS, (shape.title, most / ELEMENTS)
    finally:
        one.close()


def test_many_short_ones_are_decided_some_in_each_turn():
    some, decided = paced()
    some.decide_all(0, [message(token, op=ENSURE_TOPIC) for token in range(100)])
    turns = 1
    while len(decided) < 100:
        assert len(decided) <= turns * (BYTES // LEAST + 1)
        some.run_turn()
        turns += 1
    assert decided == list(range(100)) and turns > 2
