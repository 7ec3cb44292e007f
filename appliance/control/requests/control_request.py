"""A netproc's request to control and its caller: parsed here, once for each message."""

from typing import NamedTuple

from appliance.authorization.rights import OURSELVES, Callers, Rights
from appliance.base.errors import MalformedRequest
from appliance.ring.messages import FORWARD, Message
from appliance.ring.slots import read_ensure_topic


class ForgedRequest(Exception):
    """A message that no sound netproc sends."""


class ControlRequest(NamedTuple):
    """A message's payload. rights: of who asks. topic: that is to be made, b"" of a FORWARD."""

    rights: Rights
    topic: bytes


def read(message: Message, callers: Callers) -> ControlRequest:
    """Parses the payload of a FORWARD or an ENSURE_TOPIC. Raises ForgedRequest for a caller that is
    none, and for the appliance's own name: no netproc asks control in it, and it may do everything.
    """
    data = message.payload
    named = len(data) if message.op == FORWARD else read_ensure_topic(message).named
    if not 0 <= named <= len(data):
        raise ForgedRequest(f"{len(data)} bytes with a caller of {named}")
    try:
        rights = callers.of(data[:named])
    except MalformedRequest as cause:
        raise ForgedRequest(str(cause)) from cause
    if rights is OURSELVES:
        raise ForgedRequest("a request in the appliance's own name")
    return ControlRequest(rights, data[named:])
