"""The payload of an Envelope (API key 58, KIP-590): a client's request as a broker forwards it to
the controller, and the response; the principal in the form of Kafka's DefaultPrincipalData.

Callers: `control/broker` packs, `control/requests/envelopes.py` opens.
"""

from ipaddress import ip_address
from struct import Struct
from typing import Final, NamedTuple

from appliance.base.addresses import plain_address
from appliance.base.errors import MalformedRequest
from appliance.wire.declared import layout_of, of, record
from appliance.wire.fields import UNREADABLE, reader, writer
from appliance.wire.request_head import is_flexible, parse
from appliance.wire.varint import skip_tagged_fields

ENVELOPE: Final = 58
_HEAD: Final = Struct(">hhih")  # API key, version, correlation id, length of the client id
_VERSION: Final = Struct(">h")
_CORRELATION: Final = Struct(">i")


@record
class PrincipalData:
    """DefaultPrincipalData, version 0."""

    type: str = of("string")
    name: str = of("string")
    token_authenticated: bool = of("bool", default=False)


_LAYOUT: Final = layout_of(PrincipalData, 0)
_read: Final = reader(_LAYOUT)
_write: Final = writer(_LAYOUT)
_MOST_ELEMENTS: Final = 1 << 10


class Enclosed(NamedTuple):
    """A request that came in an envelope: whose header says so, and what follows that."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    body: bytes


def encode_principal(kind: str, name: str, by_token: bool = False) -> bytes:
    """`kind:name` with the version before it. by_token: of `Caller`."""
    out = [_VERSION.pack(0)]
    _write(out, PrincipalData(type=kind, name=name, token_authenticated=by_token))
    return b"".join(out)


def decode_principal(data: bytes) -> tuple[str, str, bool]:
    """(type, name, by_token). Raises MalformedRequest."""
    try:
        (version,) = _VERSION.unpack_from(data)
        if version < 0:
            raise MalformedRequest(f"a principal of version {version}")
        found, _ = _read(data, _VERSION.size, [_MOST_ELEMENTS])
    except UNREADABLE as cause:
        raise MalformedRequest(f"a principal that cannot be read: {cause}") from cause
    return found.type, found.name, found.token_authenticated


def encode_address(address: str) -> bytes:
    """4 or 16 bytes; none for who has no address."""
    return ip_address(address).packed if address else b""


def decode_address(data: bytes) -> str:
    """Raises MalformedRequest."""
    try:
        return plain_address(str(ip_address(data))) if data else ""
    except ValueError as cause:
        raise MalformedRequest(f"an address of {len(data)} bytes") from cause


def enclose(api_key: int, version: int, client_id: str, body: bytes) -> bytes:
    """A request with a header of its own, in which nothing is correlated."""
    name = client_id.encode()
    tags = b"\0" if is_flexible(api_key, version) else b""
    return b"".join((_HEAD.pack(api_key, version, 0, len(name)), name, tags, body))


def disclose(data: bytes) -> Enclosed:
    """Raises MalformedRequest."""
    with memoryview(data) as memory:
        key, version, correlation_id, name, at = parse(memory, 0, len(data))
    client_id = (name or b"").decode("utf-8", "replace")
    return Enclosed(key, version, correlation_id, client_id, data[at:])


def enclose_answer(request: Enclosed, body: bytes) -> bytes:
    """The answer to it with its header."""
    tags = b"\0" if is_flexible(request.api_key, request.version) else b""
    return _CORRELATION.pack(request.correlation_id) + tags + body


def disclose_answer(api_key: int, version: int, data: bytes) -> bytes:
    """The body of an answer. Raises MalformedRequest."""
    at = _CORRELATION.size
    with memoryview(data) as memory:
        if len(data) < at:
            raise MalformedRequest(f"an answer of {len(data)} bytes")
        if is_flexible(api_key, version):
            at = skip_tagged_fields(memory, at, len(data))
    return data[at:]
