"""What a broker passes on for a client of its own: decided for that client, at the controller."""

import os
from types import SimpleNamespace

import pytest
from sim.threads import Threads
from test_control_shell import CTL, Appliance, build, new

from appliance.authorization.rights import AllowAll
from appliance.base import errors
from appliance.base.clock import OsClock
from appliance.base.os_disk import OsDisk
from appliance.control.folder.startup import start_control
from appliance.control.requests.envelopes import opened
from appliance.control.shell import Control
from appliance.shell.links import Links
from appliance.wire.envelope import (
    ENVELOPE,
    disclose_answer,
    enclose,
    encode_address,
    encode_principal,
)
from appliance.wire.messages import decode_response, encode_request, request_type

CREATE_TOPICS, VERSION = 19, 7
HEARTBEAT = 63


class OnlyBrokers(AllowAll):
    """User:broker, who is ANONYMOUS here, may act as one; everybody else may do what is asked but
    that. refused: the name of whom nothing is allowed."""

    def __init__(self):
        self.refused, self.asked = "", []

    def allows_everything(self, caller):
        return False

    def allows(self, caller, operation, resource):
        self.asked.append((caller.principal.name, caller.client_id, caller.address))
        return caller.principal.name != self.refused


class Guarded(Appliance):
    authorizer = OnlyBrokers()

    def start_control(self):
        seat = self.seats.seat(CTL, other_dirs=self.other_dirs, authorizer=self.authorizer)
        self.links = Links(seat, self.log)
        started = start_control(seat, OsDisk(), OsClock(), os.urandom, self.log)
        self.threads = Threads()
        self.control = Control(seat, self.links, self.log, started, self.threads)
        self.control.open_for_business()
        self.settle()


@pytest.fixture
def appliance(tmp_path):
    Guarded.authorizer = OnlyBrokers()
    one = Guarded(tmp_path)
    yield one
    one.close()


def creation(name="t"):
    values = {"topics": [new(name)], "timeout": 1000, "validate_only": False}
    return encode_request(build(request_type(CREATE_TOPICS, VERSION), values))


def ask(appliance, data, principal=None, address="10.0.0.9"):
    fields = {
        "request_data": data,
        "request_principal": encode_principal("User", "anna") if principal is None else principal,
        "client_host_address": encode_address(address),
    }
    return appliance.ask(ENVELOPE, 0, **fields)


def created(answer):
    body = disclose_answer(CREATE_TOPICS, VERSION, answer.response_data)
    [topic] = decode_response(CREATE_TOPICS, VERSION, body).topics
    return topic


def test_it_is_decided_for_the_client_and_not_for_the_broker(appliance):
    answer = ask(appliance, enclose(CREATE_TOPICS, VERSION, "her-client", creation()))
    assert answer.error_code == errors.NONE
    assert created(answer).error_code == errors.NONE
    assert ("anna", "her-client", "10.0.0.9") in appliance.authorizer.asked
    assert "t" in appliance.followed().image.topics_by_name
    appliance.authorizer.refused = "anna"
    answer = ask(appliance, enclose(CREATE_TOPICS, VERSION, "her-client", creation("u")))
    assert answer.error_code == errors.NONE, "the envelope was opened"
    assert created(answer).error_code == errors.TOPIC_AUTHORIZATION_FAILED
    assert "u" not in appliance.followed().image.topics_by_name


def test_only_who_may_act_as_a_broker_speaks_for_others(appliance):
    appliance.authorizer.refused = "ANONYMOUS"
    answer = ask(appliance, enclose(CREATE_TOPICS, VERSION, "", creation()))
    assert answer.error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    assert answer.response_data is None
    assert {name for name, *_ in appliance.authorizer.asked} == {"ANONYMOUS"}


@pytest.mark.parametrize(
    ("data", "principal", "code"),
    [
        (enclose(CREATE_TOPICS, VERSION, "", b""), b"\0", "PRINCIPAL_DESERIALIZATION_FAILURE"),
        (b"12345", None, "INVALID_REQUEST"),
        (enclose(CREATE_TOPICS, VERSION, "", b"\xff"), None, "INVALID_REQUEST"),
        (enclose(CREATE_TOPICS, 99, "", creation()), None, "UNSUPPORTED_VERSION"),
        (enclose(HEARTBEAT, 1, "", bytes(30)), None, "INVALID_REQUEST"),
        (enclose(ENVELOPE, 0, "", bytes(30)), None, "INVALID_REQUEST"),
    ],
)  # fmt: skip
def test_what_is_no_request_of_a_client_is_refused(appliance, data, principal, code):
    before = appliance.table.metadata_offset
    answer = ask(appliance, data, principal)
    assert answer.error_code == getattr(errors, code) and answer.response_data is None
    assert appliance.table.metadata_offset == before


def test_who_loses_the_metadata_log_tells_the_broker_to_ask_another(appliance):
    appliance.threads.held = True
    body = encode_request(
        build(request_type(ENVELOPE, 0), {
            "request_data": enclose(CREATE_TOPICS, VERSION, "", creation()),
            "request_principal": encode_principal("User", "anna"),
            "client_host_address": b"",
        })
    )  # fmt: skip
    token = appliance.forward(ENVELOPE, 0, body)
    assert appliance.answers() == {}, "nothing of it is on the disk"
    appliance.control.resign()
    [(code, told)] = [appliance.answers()[token]]
    assert code == errors.NONE
    answer = decode_response(ENVELOPE, 0, told)
    assert (answer.error_code, answer.response_data) == (errors.NOT_CONTROLLER, None)


def test_a_principal_of_the_appliances_own_name_has_no_rights_by_that(appliance):
    appliance.authorizer.refused = "appliance"
    ours = encode_principal("User", "appliance")
    answer = ask(appliance, enclose(CREATE_TOPICS, VERSION, "", creation()), ours, address="")
    assert created(answer).error_code == errors.TOPIC_AUTHORIZATION_FAILED
    assert ("appliance", "", "") in appliance.authorizer.asked
    assert "t" not in appliance.followed().image.topics_by_name


@pytest.mark.parametrize("by_token", [False, True])
def test_that_a_client_came_by_a_token_goes_with_it(by_token):
    fields = {
        "request_data": enclose(CREATE_TOPICS, VERSION, "c", b""),
        "request_principal": encode_principal("User", "anna", by_token),
        "client_host_address": encode_address("10.0.0.9"),
    }
    _, caller = opened(SimpleNamespace(**fields))
    assert (caller.principal.name, caller.by_token, caller.listener) == ("anna", by_token, "")
