"""The framing of records that say their type and version themselves (KIP-631).

A value is frame version 1, API key and version, all unsigned varints, then the fields in flexible
encoding. Callers: kraft_records.py and `remotelog/records.py`, with a table of types each.
"""

from collections.abc import Mapping
from typing import Any, Final

from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.wire.declared import reader_of, writer_of
from appliance.wire.fields import UNREADABLE, put_uvarint, read_uvarint

FRAME_VERSION: Final = 1


class RecordFrames:
    """The framed records of one log."""

    __slots__ = ("_noun", "_types")

    def __init__(self, noun: str, types: Mapping[int, type]) -> None:
        """noun: what an error calls a record of the log. types: the class of each API key."""
        self._noun = noun
        self._types = types

    def encode(self, value: object, version: int | None = None) -> bytes:
        """The value of the record that carries `value`, in the newest version unless told
        otherwise."""
        cls: Any = type(value)
        if version is None:
            version = cls.VERSIONS[-1]
        assert version in cls.VERSIONS, f"{cls.__name__} has no version {version}"
        out: list[bytes] = []
        put_uvarint(out, FRAME_VERSION)
        put_uvarint(out, cls.API_KEY)
        put_uvarint(out, version)
        writer_of(cls, version)(out, value)
        return b"".join(out)

    def decode(self, value: bytes | memoryview) -> Any:
        """The record in a value; raises PeerError(CORRUPT_MESSAGE)."""
        return self.decode_versioned(value)[0]

    def decode_versioned(self, value: bytes | memoryview) -> tuple[Any, int]:
        """As `decode`, with the version in which it was written."""
        data = bytes(value)
        try:
            frame, position = read_uvarint(data, 0)
            key, position = read_uvarint(data, position)
            version, position = read_uvarint(data, position)
            cls: Any = self._types.get(key)
            if frame != FRAME_VERSION or cls is None or version not in cls.VERSIONS:
                known = f"frame {frame}, record type {key}, version {version} is not known"
                raise ValueError(known)
            found, position = reader_of(cls, version)(data, position, [len(data)])
            if position != len(data):
                raise ValueError(f"{len(data) - position} bytes after the end of {cls.__name__}")
        except UNREADABLE as cause:
            raise PeerError(CORRUPT_MESSAGE, f"{self._noun}: {cause}") from cause
        return found, version
