"""Where an encoded answer says how long its client should pause, to write it there afterwards.

Nearly every response begins with throttle_time_ms; Produce has it before the tagged fields at its
end, of which only their number is in the piece that comes here, and so have the four APIs of
delegation tokens; OffsetDelete has it behind its error code, ApiVersions behind its list of APIs,
and the oldest versions have none. Called only for clients over a quota.
"""

from functools import cache
from struct import Struct
from typing import Final

from appliance.handlers import k00_produce, k18_api_versions
from appliance.wire.messages import response_type
from appliance.wire.varint import read_uvarint

_MS: Final = Struct(">i")
_COUNT: Final = Struct(">i").unpack_from
_AT_THE_END: Final = {0: 9, 38: 2, 39: 2, 40: 2, 41: 2}
"""API keys → the first version with tagged fields, of answers that end with it."""
_OLDEST: Final = {0: 1, 2: 1}
"""API keys → the first version with the field, of those whose oldest versions have none."""
_FIRST_FLEXIBLE_API_VERSIONS: Final = 3
_OFFSET_DELETE: Final = 47
_ERROR_CODE: Final = 2  # bytes of what comes first there and in ApiVersions
_API: Final = 6  # bytes of one of its entries; one more when it may have tagged fields

PRODUCE: Final = k00_produce.HANDLER.key


def read_pause(key: int, version: int, answer: bytes) -> int:
    """The pause in ms that an answer of plain bytes tells already, 0 when it cannot."""
    at = _place(key, version, answer)
    return 0 if at is None else int(_MS.unpack_from(answer, at)[0])


def write_pause(key: int, version: int, answer: bytes, pause_ms: int) -> bytes:
    """The answer with the pause in ms in its place; as it was when it has none."""
    at = _place(key, version, answer)
    if at is None:
        return answer
    return answer[:at] + _MS.pack(min(pause_ms, 2**31 - 1)) + answer[at + _MS.size :]


def _place(key: int, version: int, answer: bytes) -> int | None:
    if version < _OLDEST.get(key, 0):
        return None
    if key in _AT_THE_END:
        return len(answer) - _MS.size - (version >= _AT_THE_END[key])
    if not _has_one(key, version):
        return None
    if key == _OFFSET_DELETE:
        return _ERROR_CODE
    if key != k18_api_versions.KEY:
        return 0
    if version < _FIRST_FLEXIBLE_API_VERSIONS:
        return _ERROR_CODE + 4 + _API * int(_COUNT(answer, _ERROR_CODE)[0])
    count, at = read_uvarint(memoryview(answer), _ERROR_CODE, len(answer))
    return at + (_API + 1) * (count - 1)


@cache
def _has_one(key: int, version: int) -> bool:
    return "throttle_time" in response_type(key, version).__dataclass_fields__  # type: ignore[attr-defined]
