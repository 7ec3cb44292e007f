"""The bytes of the records that coordinators keep in their internal topics, as Kafka's tools read
them.

A key is a record type (int16) and its fields, never flexible; a value is its version (int16) and
its fields, flexible from the version that the class names. The classes are the tables
(`wire/declared.py`); each kind of coordinator has a `RecordTypes` of its own, as every topic counts
its types from 0. Callers: `Turn.write` (encode) and `Shard.replay` (decode).
"""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, Final, TypeVar

from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.wire.declared import layout_of
from appliance.wire.fields import UNREADABLE, Reader, StructLayout, Writer, reader, writer

_I16: Final = Struct(">h")
STRING_MAX: Final = 0x7FFF
"""Bytes in a text of a key or of a value that is not flexible."""
_Key = TypeVar("_Key")


class RecordTypes:
    """The records of one internal topic, by the type in their key."""

    def __init__(self) -> None:
        self._classes: dict[int, tuple[Any, Any]] = {}

    def declare(self, *types: int, value: type) -> Callable[[type[_Key]], type[_Key]]:
        """A class decorator: records whose key has one of these types have keys of this class."""

        def register(key: type[_Key]) -> type[_Key]:
            for one in types:
                assert one not in self._classes, f"two records of type {one}"
                self._classes[one] = key, value
            return key

        return register

    def decode(self, key: bytes | None, value: bytes | None) -> tuple[Any, Any] | None:
        """(key, value or None for a tombstone); None for a type that nobody here knows.

        A value of a newer version than ours is read as our newest: from the first flexible version
        on, versions add tagged fields only (KIP-915). Raises PeerError(CORRUPT_MESSAGE).
        """
        try:
            if key is None:
                raise ValueError("it has no key")
            found = self._classes.get(_I16.unpack_from(key)[0])
            if found is None:
                return None
            decoded_key, _ = _key_reader(found[0])(key, 2, [len(key)])
            if value is None:
                return decoded_key, None
            version = min(_I16.unpack_from(value)[0], found[1].VERSIONS[-1])
            if version not in found[1].VERSIONS:
                raise ValueError(f"version {version} of {found[1].__name__} is not known")
            decoded, _ = _value_reader(found[1], version)(value, 2, [len(value)])
        except UNREADABLE as cause:
            raise PeerError(CORRUPT_MESSAGE, f"record of a coordinator: {cause}") from cause
        return decoded_key, decoded


def fits(*texts: str | None) -> bool:
    """True if each of these texts can be written."""
    for text in texts:  # noqa: SIM110 - there may be many: no call for each
        if text is not None and len(text.encode()) > STRING_MAX:
            return False
    return True


def encode_key(key: Any) -> bytes:
    """The bytes of a record's key."""
    out = [_I16.pack(key.TYPE)]
    cls: type = type(key)
    _key_writer(cls)(out, key)
    return b"".join(out)


def encode_value(value: Any, version: int) -> bytes:
    """The bytes of a record's value in the version to write."""
    out = [_I16.pack(version)]
    cls: type = type(value)
    _value_writer(cls, version)(out, value)
    return b"".join(out)


def _stiff(layout: StructLayout) -> StructLayout:
    """The same fields without compact lengths and tags."""
    fields = tuple(
        field._replace(nested=field.nested and _stiff(field.nested)) for field in layout.fields
    )
    return StructLayout(layout.make, fields, False)


def _value_layout(cls: Any, version: int) -> StructLayout:
    layout = layout_of(cls, version)
    only_in = getattr(cls, "ONLY_IN", {})
    kept = tuple(f for f in layout.fields if only_in.get(f.name, version) == version)
    layout = layout._replace(fields=kept)
    return layout if version >= cls.FLEXIBLE_SINCE else _stiff(layout)


@cache
def _key_writer(cls: type) -> Writer:
    return writer(_stiff(layout_of(cls, 0)))


@cache
def _key_reader(cls: type) -> Reader:
    return reader(_stiff(layout_of(cls, 0)))


@cache
def _value_writer(cls: type, version: int) -> Writer:
    return writer(_value_layout(cls, version))


@cache
def _value_reader(cls: type, version: int) -> Reader:
    return reader(_value_layout(cls, version))
