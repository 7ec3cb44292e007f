"""Who asks control for what, as netprocs say it."""

import pytest

from appliance.authorization.rights import AllowAll, Callers
from appliance.control.requests.control_request import ForgedRequest, read
from appliance.ring.messages import ENSURE_TOPIC, FORWARD, Message
from tests.callers import caller

ALICE = caller("a\0client")


def asked(op, payload, named=0):
    message = Message(op, *(0,) * 13, payload)._replace(e=named)
    return read(message, Callers(AllowAll()))


def test_who_forwards_is_the_whole_payload():
    found = asked(FORWARD, ALICE.encode(), named=500)
    assert found.rights.caller == ALICE and found.topic == b""


def test_a_wanted_topic_stands_behind_who_wants_it():
    encoded = ALICE.encode()
    found = asked(ENSURE_TOPIC, encoded + b"flights", len(encoded))
    assert found.rights.caller == ALICE and found.topic == b"flights"


@pytest.mark.parametrize("op", [FORWARD, ENSURE_TOPIC])
def test_nobody_is_nobody(op):
    with pytest.raises(ForgedRequest):
        asked(op, b"")
