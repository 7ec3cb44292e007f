"""MessagePack, as JSON: keys of any type become text, bytes "0x…", extensions say their number.

Callers: `choosing`. The library holds every declared length against the bytes that are there, and
bounds how deeply they are nested.
"""

import json
from math import isfinite
from typing import Any, Final

from console.model.decoding import json_text
from console.model.decoding.decoded import MOST, MSGPACK, PARTS_MOST, Decoded, Unfit
from console.model.decoding.json_text import Pairs
from console.model.decoding.moments import NANOS, moment
from console.model.decoding.plain_forms import too_long

_CONTAINERS: Final = frozenset((*range(0x80, 0xC0), *range(0xD9, 0xE0)))
"""First bytes of maps, arrays and texts."""
_MOST_DIGITS: Final = 21
_MISSING: Final = "it needs msgpack, which is not here: pip install msgpack"


def message_pack(data: bytes) -> Decoded:
    """Any MessagePack: one value and nothing behind it. Raises Unfit."""
    if len(data) > MOST:
        raise too_long(data)
    if not data:
        raise Unfit("it is empty")
    try:
        value = _unpacked(data)
        return Decoded(MSGPACK, json_text.written(value, PARTS_MOST, _tell), data)
    except RecursionError:
        raise Unfit("it is nested too deeply") from None
    except (ValueError, OverflowError) as wrong:
        raise Unfit(str(wrong) or type(wrong).__name__) from None


def likely_message_pack(data: bytes) -> Decoded:
    """A map, an array or a text: any small number is MessagePack, too. Raises Unfit."""
    if data and data[0] not in _CONTAINERS:
        raise Unfit(f"it begins with 0x{data[0]:02x}, not a map, array or text")
    return message_pack(data)


def packed(text: str) -> bytes:
    """The MessagePack of JSON. Raises ValueError for what is no JSON, and for what MessagePack has
    no form for: integers and decimals beyond 64 bits, keys that come twice."""
    try:
        import msgpack
    except ImportError:
        raise ValueError(_MISSING) from None
    try:
        found = msgpack.packb(_DECODER.decode(text))
    except (OverflowError, RecursionError) as wrong:
        raise ValueError(str(wrong) or "it is nested too deeply") from None
    assert isinstance(found, bytes)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice in one object")
    return found


def _double(written: str) -> float:
    found = float(written)
    if not isfinite(found):
        raise ValueError(f"{written} does not fit 64 bits")
    return found


def _int64(written: str) -> int:
    if len(written) > _MOST_DIGITS or not -(1 << 63) <= int(written) < 1 << 64:
        raise ValueError(f"{written[:_MOST_DIGITS]} does not fit 64 bits")
    return int(written)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=_double, parse_int=_int64, parse_constant=_double
)


def _unpacked(data: bytes) -> Any:
    try:
        import msgpack
    except ImportError:
        raise Unfit(_MISSING) from None
    parts = _Parts()
    try:
        return msgpack.unpackb(
            data, use_list=False, strict_map_key=False, object_pairs_hook=parts.pairs,
            list_hook=parts.elements, ext_hook=parts.extension, unicode_errors="backslashreplace",
        )  # fmt: skip
    except msgpack.ExtraData as more:
        raise Unfit(f"{len(more.extra)} bytes follow its end") from None
    except msgpack.StackError:
        raise Unfit("it is nested too deeply") from None
    except msgpack.FormatError:
        raise Unfit("it has a byte that MessagePack does not use") from None


class _Parts:
    """Counts the containers that the library makes, and limits them."""

    def __init__(self) -> None:
        self._left = PARTS_MOST

    def _one(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Unfit(f"it has more than {PARTS_MOST} parts")

    def pairs(self, found: list[tuple[Any, Any]]) -> Pairs:
        self._one()
        return Pairs(found)

    def elements(self, found: tuple[Any, ...]) -> tuple[Any, ...]:
        self._one()
        return found

    def extension(self, code: int, data: bytes) -> dict[str, Any]:
        self._one()
        return {"ext": code, "data": data}


def _tell(stamp: Any) -> str:
    """The one type that the library makes beside JSON's."""
    return moment(stamp.seconds * NANOS + stamp.nanoseconds, NANOS)
