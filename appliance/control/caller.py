"""Who asks control: read here, once for each message of a netproc, and nowhere else.

FORWARD names it as principal, listener, address and client id, ENSURE_TOPIC as the topic's name,
address and client id: text with a zero byte between, of which the last one may hold zero bytes.
"""

from typing import Final, NamedTuple

from appliance.ring.messages import FORWARD, Message

_PRINCIPAL: Final = "User:"
_ANYBODY: Final = "ANONYMOUS"


class Caller(NamedTuple):
    """user: without its type. address: of the client's socket, "" when it is not told."""

    user: str
    address: str
    client_id: str


class Asked(NamedTuple):
    """A message's payload. topic: that is to be made, b"" of a FORWARD."""

    caller: Caller
    topic: bytes


def read(message: Message) -> Asked:
    """What came with a FORWARD or an ENSURE_TOPIC."""
    if message.op == FORWARD:
        principal, _, address, client_id = _parts(message.payload, 4)
        return Asked(Caller(principal.removeprefix(_PRINCIPAL), address, client_id), b"")
    topic, _, rest = message.payload.partition(b"\0")
    address, client_id = _parts(rest, 2)
    return Asked(Caller(_ANYBODY, address, client_id), topic)


def _parts(payload: bytes, count: int) -> list[str]:
    """So many texts, those that are not there empty."""
    found = [part.decode(errors="replace") for part in payload.split(b"\0", count - 1)]
    return found + [""] * (count - len(found))
