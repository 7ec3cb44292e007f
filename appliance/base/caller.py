"""The caller of a request, and the one encoding in which it crosses rings.

The encoding: the lengths of five texts and 1 for a login by a delegation token, else 0 (u32,
little-endian), then the texts in UTF-8: the principal's type, its name, client id, address,
listener. A caller is made once for a connection and client id, and encoded once; whoever gets the
bytes from another process decodes them here.
"""

from struct import Struct
from typing import Final, NamedTuple

from appliance.base.errors import MalformedRequest

_HEAD: Final = Struct("<6I")
assert _HEAD.size == 24


class Principal(NamedTuple):
    """As Kafka writes it: `type:name`."""

    type: str
    name: str


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""Who has not said who it is."""


class Caller(NamedTuple):
    """client_id: as the request's header has it, what is not UTF-8 in it replaced, "" when null.
    address: of the client's socket. listener: the name of that by which it came; "": another node
    passes its request on. by_token: it logged in by a delegation token."""

    principal: Principal
    client_id: str
    address: str
    listener: str
    by_token: bool = False

    def encode(self) -> bytes:
        """The bytes that `decode` takes."""
        texts = (*self.principal, self.client_id, self.address, self.listener)
        parts = [text.encode() for text in texts]
        return _HEAD.pack(*map(len, parts), self.by_token) + b"".join(parts)


def decode(data: bytes) -> Caller:
    """Raises MalformedRequest for bytes that `Caller.encode` does not give."""
    if len(data) < _HEAD.size:
        raise MalformedRequest(f"a caller of {len(data)} bytes takes at least {_HEAD.size}")
    *lengths, by_token = _HEAD.unpack_from(data)
    at = _HEAD.size
    if at + sum(lengths) != len(data) or by_token > 1:
        raise MalformedRequest(f"a caller of {len(data)} bytes with texts of {lengths}")
    texts = []
    for length in lengths:
        try:
            texts.append(data[at : at + length].decode())
        except UnicodeDecodeError as cause:
            raise MalformedRequest(f"a caller that is not UTF-8: {cause}") from cause
        at += length
    kind, name, client_id, address, listener = texts
    return Caller(Principal(kind, name), client_id, address, listener, bool(by_token))
