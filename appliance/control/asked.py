"""A netproc's request to control and its caller: parsed here, once for each message."""

from typing import NamedTuple

from appliance.authorization.rights import Callers, Rights
from appliance.ring.messages import FORWARD, Message


class ControlRequest(NamedTuple):
    """A message's payload. rights: of who asks. topic: that is to be made, b"" of a FORWARD."""

    rights: Rights
    topic: bytes


def read(message: Message, callers: Callers) -> ControlRequest:
    """Parses the payload of a FORWARD or an ENSURE_TOPIC. Raises MalformedRequest: no netproc of
    ours sends that.
    """
    if message.op == FORWARD:
        return ControlRequest(callers.of(message.payload), b"")
    return ControlRequest(callers.of(message.payload[: message.e]), message.payload[message.e :])
