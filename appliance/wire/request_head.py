"""The head of a request, parsed where it lies, and the head of a response.

A request header is (api key, version, correlation id), a nullable client id with a two-byte length,
and tagged fields when the version of the API is flexible (header 2, KIP-482). The netproc calls
`parse` once per frame: it never copies more than the client id and never reads past `end`.
"""

from struct import Struct
from typing import Final

from appliance.base.errors import MalformedRequest
from appliance.wire.varint import skip_tagged_fields

API_VERSIONS: Final = 18
_HEAD: Final = Struct(">hhih").unpack_from  # api key, version, correlation id, client id length
_RESPONSE: Final = Struct(">ii")
_RESPONSE_TAGGED: Final = Struct(">iib")

_NEVER: Final = 1 << 15
FIRST_FLEXIBLE: Final[dict[int, int]] = {
    0: 9, 1: 12, 2: 6, 3: 9, 4: 4, 5: 2, 6: 6, 7: 3, 8: 8, 9: 6, 10: 3, 11: 6, 12: 4, 13: 4,
    14: 4, 15: 5, 16: 3, 17: _NEVER, 18: 3, 19: 5, 20: 4, 21: 2, 22: 2, 23: 4, 24: 3, 25: 3,
    26: 3, 27: 1, 28: 3, 29: 2, 30: 2, 31: 2, 32: 4, 33: 2, 34: 2, 35: 2, 36: 2, 37: 2, 38: 2,
    39: 2, 40: 2, 41: 2, 42: 2, 43: 2, 44: 1, 45: 0, 46: 0, 47: _NEVER, 48: 1, 49: 1, 50: 0,
    51: 0, 52: 0, 53: 1, 54: 1,
}  # fmt: skip
"""API key → first version with compact lengths and tagged fields; from 55 on: the first."""

_BY_KEY: Final = [FIRST_FLEXIBLE.get(key, 0) for key in range(128)]


def parse(memory: memoryview, position: int, end: int) -> tuple[int, int, int, bytes | None, int]:
    """(api key, version, correlation id, client id, position of the body) of memory[position:end].

    Raises MalformedRequest. A key or version that we do not serve is not an error here.
    """
    if end - position < 10:
        raise MalformedRequest(f"request of {end - position} bytes; a header takes at least 10")
    key, version, correlation_id, size = _HEAD(memory, position)
    position += 10
    client_id = None
    if size >= 0:
        after = position + size
        if after > end:
            raise MalformedRequest(f"client id of {size} bytes, {end - position} remain")
        client_id = bytes(memory[position:after])
        position = after
    if version >= (_BY_KEY[key] if 0 <= key < 128 else 0):
        if position < end and not memory[position]:
            position += 1
        else:
            position = skip_tagged_fields(memory, position, end)
    return key, version, correlation_id, client_id, position


def is_flexible(api_key: int, version: int) -> bool:
    """True if a request of this version has compact lengths and tagged fields."""
    return version >= FIRST_FLEXIBLE.get(api_key, 0)


def response_head(api_key: int, version: int, correlation_id: int, body_length: int) -> bytes:
    """Frame length and response header for a body of `body_length` bytes.

    ApiVersions is always answered with header 0: a client that asks with a version that we do not
    know must be able to read the answer (KIP-511).
    """
    if api_key != API_VERSIONS and version >= FIRST_FLEXIBLE.get(api_key, 0):
        return _RESPONSE_TAGGED.pack(body_length + 5, correlation_id, 0)
    return _RESPONSE.pack(body_length + 4, correlation_id)
