"""A long request whose rows have results of their own is decided in parts, one in a turn."""

import pytest
from test_control_shell import Appliance

from appliance.base import errors
from appliance.control.requests.parts import PARTS, InParts, PartedRequests, joined
from appliance.control.requests.pending_answers import Decision, Unencoded
from appliance.handlers.k51_alter_user_scram_credentials import PART
from appliance.ring.process_table import NETPROC, Peer
from appliance.wire.build import build
from appliance.wire.envelope import (
    ENVELOPE,
    disclose_answer,
    enclose,
    encode_address,
    encode_principal,
)
from appliance.wire.messages import decode_response, encode_request, request_type
from tests.netproc.test_largest_turns import counting

ALTER, DESCRIBE = 51, 50
CALLS = 200 * PART
"""In one turn: one part until it is in the log, some hundred rows decoded and encoded."""


@pytest.fixture
def appliance(tmp_path):
    one = Appliance(tmp_path)
    yield one
    one.close()


def upsertion(name, iterations=4096):
    return {
        "name": name, "mechanism": 1, "iterations": iterations, "salt": b"s" * 8,
        "salted_password": b"p" * 32,
    }  # fmt: skip


def users(count):
    return [f"u{number:05}" for number in range(count)]


def alteration(upserted=(), deleted=()):
    deletions = [{"name": name, "mechanism": 1} for name in deleted]
    values = {"deletions": deletions, "upsertions": upserted}
    return encode_request(build(request_type(ALTER, 0), values))


def results(answer):
    code, body = answer
    assert code == errors.NONE
    return {row.user: row.error_code.value for row in decode_response(ALTER, 0, body).results}


def known(appliance):
    answer = appliance.ask(DESCRIBE, 0, users=None)
    return {row.user for row in answer.results}


def alter(appliance, **values):
    token = appliance.forward(ALTER, 0, alteration(**values))
    return results(appliance.answers()[token])


def test_all_are_altered_and_each_has_its_result(appliance):
    names = users(5 * PART)
    asked = [upsertion(name, 1 if name == names[7] else 4096) for name in names]
    found = alter(appliance, upserted=asked)
    assert found.pop(names[7]) == errors.UNACCEPTABLE_CREDENTIAL
    assert set(found.values()) == {errors.NONE}
    assert found.keys() == known(appliance) == set(names) - {names[7]}
    gone = alter(appliance, deleted=names)
    assert gone.pop(names[7]) == errors.RESOURCE_NOT_FOUND
    assert set(gone.values()) == {errors.NONE}
    assert not known(appliance)


def test_a_user_that_is_named_twice_is_not_altered_wherever_it_stands(appliance):
    names = users(3 * PART)
    twice = [names[0], names[PART]]
    asked = [upsertion(name) for name in [*names, *twice, names[0]]]
    found = alter(appliance, upserted=asked)
    assert {name for name, code in found.items() if code == errors.DUPLICATE_RESOURCE} == {*twice}
    assert known(appliance) == set(names) - {*twice}


def test_what_comes_behind_it_is_decided_behind_it(appliance):
    appliance.forward(ALTER, 0, alteration([upsertion(name) for name in users(3 * PART)]))
    while not appliance.control._paced._parted.undecided:
        appliance.turn()
    small = encode_request(build(request_type(DESCRIBE, 0), {"users": None}))
    token = appliance.forward(DESCRIBE, 0, small)
    _, body = appliance.answers()[token]
    assert len(decode_response(DESCRIBE, 0, body).results) == 3 * PART


def test_who_loses_the_metadata_log_in_the_middle_says_that_nothing_is_certain(appliance):
    names = users(4 * PART)
    appliance.threads.held = True  # nothing is on the disk
    token = appliance.forward(ALTER, 0, alteration([upsertion(name) for name in names]))
    while not appliance.control._paced._parted.undecided:
        appliance.turn()
    appliance.turn()
    assert appliance.control._paced._parted.undecided
    appliance.control.resign()
    appliance.threads.held = False
    found = results(appliance.answers()[token])
    assert set(found) == set(names)
    assert set(found.values()) == {errors.NOT_CONTROLLER}


def test_nobody_hears_what_a_dead_process_asked_and_the_next_is_served(appliance):
    appliance.forward(ALTER, 0, alteration([upsertion(name) for name in users(4 * PART)]))
    parted = appliance.control._paced._parted
    while not parted.undecided:
        appliance.turn()
    appliance.control.peers_changed([Peer(NETPROC, 0)])
    assert not parted.undecided
    assert alter(appliance, upserted=[upsertion("zoe")]) == {"zoe": errors.NONE}


def test_a_broker_hears_of_all_parts_in_one_envelope(appliance):
    names = users(3 * PART)
    inner = alteration([upsertion(name) for name in names])
    answer = appliance.ask(
        ENVELOPE, 0, request_data=enclose(ALTER, 0, "her-client", inner),
        request_principal=encode_principal("User", "anna"),
        client_host_address=encode_address("10.0.0.9"),
    )  # fmt: skip
    assert answer.error_code == errors.NONE
    told = results((errors.NONE, disclose_answer(ALTER, 0, answer.response_data)))
    assert told == dict.fromkeys(names, errors.NONE)


@pytest.mark.interpreted("calls of compiled functions are not seen")
def test_four_times_the_users_take_more_turns_and_no_longer_ones(appliance):
    for count in (4 * PART, 16 * PART):
        for kind in ("upserted", "deleted"):
            rows = users(count)
            body = alteration(**{kind: [upsertion(n) for n in rows] if kind[0] == "u" else rows})
            token = appliance.forward(ALTER, 0, body)
            appliance.net.flush()
            most, answered = 0, False
            while not answered:
                with counting() as found:
                    for peer, messages in appliance.links.poll():
                        appliance.control.handle(peer, messages)
                    appliance.control.run_once(appliance.now_ns)
                most = max(most, found[0])
                answered = any(m.token == token for _, ms in appliance.net.poll() for m in ms)
            assert most < CALLS, (kind, count, most)


# Without an appliance -----------------------------------------------------------------------------


def parted(decide):
    told, failed, waits = [], [], []

    def wait(netproc, number, decision):
        waits.append((netproc, number, decision))

    one = PartedRequests(
        decide, wait, lambda *answer: told.append(answer), lambda *what: failed.append(what)
    )
    return one, told, failed, waits


def test_an_exception_in_a_part_ends_that_request_and_no_other():
    def decide(what, part):
        if part == "bad":
            raise KeyError(part)
        return Decision(errors.NONE, Unencoded(ALTER, 0, {"results": [part]}), lambda _: None)

    one, told, failed, waits = parted(decide)
    one.begin_parts(0, 7, InParts.of(ALTER, 0, ["a", "bad", "c"], None))
    while one.undecided:
        one.decide_next()
    assert told == [(0, 7, errors.UNKNOWN_SERVER_ERROR, b"")] and len(failed) == 1
    one.begin_parts(0, 8, InParts.of(ALTER, 0, ["d"], None))
    one.decide_next()
    for netproc, number, decision in waits:
        assert netproc == PARTS
        one.put_answer(number, decision.code, decision.body)
    assert told[1:] == [(0, 8, errors.NONE, Unencoded(ALTER, 0, {"results": ["d"]}))]


def test_the_longest_throttle_time_counts():
    answers = [{"throttle_time": 5, "results": [1]}, {"throttle_time": 9, "results": [2, 3]}]
    assert joined(answers) == {"throttle_time": 9, "results": [1, 2, 3]}
