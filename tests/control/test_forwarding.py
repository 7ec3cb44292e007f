"""Requests of clients that another node decides: by messages and time alone."""

from types import SimpleNamespace

import pytest

from appliance.base import errors
from appliance.base.caller import Caller, Principal
from appliance.base.errors import PeerError
from appliance.control.broker.forwarding import (
    CREATE_TOPICS,
    DESCRIBE_QUORUM,
    Forwarding,
    creation,
    enveloped,
)
from appliance.controller.topics import NewTopic
from appliance.wire.envelope import (
    ENVELOPE,
    decode_address,
    decode_principal,
    disclose,
    enclose_answer,
)
from appliance.wire.messages import decode_request

CALLER = Caller(Principal("User", "anna"), "c-1", "10.1.2.3", "PLAINTEXT")
KEY, VERSION = 37, 3
LOST = PeerError(errors.NETWORK_EXCEPTION, "closed")


class Controller:
    """What is asked of it waits in `asked`: (API key, values, done)."""

    def __init__(self):
        self.known = True
        self.asked = []

    def ask_controller(self, api_key, values, done, timeout_ms):
        assert timeout_ms > 0
        self.asked.append((api_key, values, done))

    def answer(self, api_key, answer):
        key, _, done = self.asked.pop(0)
        assert key == api_key
        done(answer)

    def far(self, offset):
        row = SimpleNamespace(high_watermark=offset)
        topics = [SimpleNamespace(partitions=[row])]
        self.answer(DESCRIBE_QUORUM, SimpleNamespace(topics=topics))


@pytest.fixture
def controller():
    return Controller()


@pytest.fixture
def forwarding(controller):
    return Forwarding(controller)


def put(forwarding, token=1, until=1000, netproc=0):
    question = enveloped(KEY, VERSION, CALLER, b"body")
    forwarding.forward_request(
        netproc, token, question, lambda code: (errors.NONE, b"%d" % code), until
    )


def opened(body, code=errors.NONE):
    request = disclose(enveloped(KEY, VERSION, CALLER, b"").values["request_data"])
    return SimpleNamespace(error_code=code, response_data=enclose_answer(request, body))


def released(forwarding, committed=0):
    return list(forwarding.release(committed))


def test_a_request_goes_as_it_came_for_its_caller(forwarding, controller):
    put(forwarding)
    forwarding.run_once(0)
    [(key, values, _)] = controller.asked
    assert key == ENVELOPE
    assert disclose(values["request_data"]) == (KEY, VERSION, 0, "c-1", b"body")
    assert decode_principal(values["request_principal"]) == ("User", "anna", False)
    assert decode_address(values["client_host_address"]) == "10.1.2.3"


def test_it_is_answered_when_this_node_has_read_what_the_answer_speaks_of(forwarding, controller):
    put(forwarding)
    forwarding.run_once(0)
    controller.answer(ENVELOPE, opened(b"done"))
    assert released(forwarding, 49) == [], "nobody knows yet how far the controller is"
    controller.far(50)
    assert released(forwarding, 49) == []
    assert released(forwarding, 50) == [(0, 1, errors.NONE, b"done")]
    assert forwarding.run_once(5000) > 1 << 60, "nothing is left"


def test_it_is_answered_although_this_node_does_not_read_on(forwarding, controller):
    put(forwarding, until=60_000)
    forwarding.run_once(0)
    controller.answer(ENVELOPE, opened(b"done"))
    controller.far(50)
    due = forwarding.run_once(1)
    assert due <= 1001 and released(forwarding, 49) == []
    forwarding.run_once(due)
    assert released(forwarding, 49) == [(0, 1, errors.NONE, b"done")]


def test_it_is_answered_when_the_controller_cannot_say_how_far_it_is(forwarding, controller):
    put(forwarding)
    forwarding.run_once(0)
    controller.answer(ENVELOPE, opened(b"done"))
    controller.answer(DESCRIBE_QUORUM, LOST)
    assert released(forwarding) == [(0, 1, errors.NONE, b"done")]


def test_it_waits_for_a_controller(forwarding, controller):
    controller.known = False
    put(forwarding)
    assert forwarding.run_once(0) == 1000
    assert not controller.asked
    controller.known = True
    forwarding.run_once(900)
    assert len(controller.asked) == 1


@pytest.mark.parametrize(
    "answer", [LOST, PeerError(errors.NOT_CONTROLLER, ""), opened(b"", errors.NOT_CONTROLLER)]
)
def test_it_goes_to_the_next_controller_when_one_is_none_any_more(forwarding, controller, answer):
    put(forwarding)
    forwarding.run_once(0)
    controller.answer(ENVELOPE, answer)
    assert released(forwarding) == []
    assert 0 < forwarding.run_once(1) < 100, "the same one is asked again after a pause"
    assert not controller.asked
    forwarding.found()
    forwarding.run_once(2)
    controller.answer(ENVELOPE, opened(b"done"))
    controller.far(0)
    assert released(forwarding) == [(0, 1, errors.NONE, b"done")]


@pytest.mark.parametrize("known", [True, False])
def test_when_its_time_is_up_it_is_refused_and_a_late_answer_is_nobodys(
    forwarding, controller, known
):
    controller.known = known
    put(forwarding, until=1000)
    forwarding.run_once(0)
    forwarding.run_once(1000)
    told = [(0, 1, errors.NONE, b"%d" % errors.REQUEST_TIMED_OUT)]
    assert released(forwarding) == told
    if known:
        controller.answer(ENVELOPE, opened(b"done"))
    assert released(forwarding) == []


def test_what_the_controller_does_not_take_is_refused(forwarding, controller):
    put(forwarding)
    forwarding.run_once(0)
    controller.answer(ENVELOPE, opened(b"", errors.CLUSTER_AUTHORIZATION_FAILED))
    told = b"%d" % errors.CLUSTER_AUTHORIZATION_FAILED
    assert released(forwarding) == [(0, 1, errors.NONE, told)]


def test_nobody_hears_what_a_dead_process_asked(forwarding, controller):
    for netproc in (0, 1):
        put(forwarding, token=netproc, netproc=netproc)
    forwarding.run_once(0)
    forwarding.forget_netproc(0)
    for _ in range(2):
        controller.answer(ENVELOPE, opened(b"done"))
    controller.far(0)
    assert released(forwarding) == [(1, 1, errors.NONE, b"done")]


@pytest.mark.parametrize("caller", [CALLER, None])
def test_a_missing_topic_is_created_in_the_clients_name_or_in_our_own(
    forwarding, controller, caller
):
    topic = NewTopic("t", configs={"cleanup.policy": "compact"})
    forwarding.forward_request(0, 1, creation(topic, caller), lambda code: (code, b"t"), 1000)
    forwarding.run_once(0)
    key, values, done = controller.asked.pop()
    if caller is None:
        assert key == CREATE_TOPICS
        [row] = values["topics"]
        assert row["configs"] == [{"name": "cleanup.policy", "value": "compact"}]
        row = SimpleNamespace(error_code=errors.TOPIC_ALREADY_EXISTS)
        done(SimpleNamespace(topics=[row]))
    else:
        assert key == ENVELOPE
        inner = disclose(values["request_data"])
        request = decode_request(inner.api_key, inner.version, inner.body)
        assert [one.name for one in request.topics] == ["t"]
        done(opened(b"", errors.CLUSTER_AUTHORIZATION_FAILED))
        assert released(forwarding) == [(0, 1, errors.CLUSTER_AUTHORIZATION_FAILED, b"t")]
        return
    controller.far(3)
    assert released(forwarding, 3) == [(0, 1, errors.NONE, b"t")]
