"""Kafka's text form of a 16-byte id: 22 characters of URL-safe base64 without padding."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

_NONE = bytes(16)


def uuid_bytes(value: UUID | None) -> bytes:
    """The 16 bytes of an id as messages have it; None is all zeros."""
    return _NONE if value is None else value.bytes


def format_uuid(value: bytes) -> str:
    """16 bytes as 22 characters."""
    assert len(value) == 16
    return urlsafe_b64encode(value).decode()[:22]


def parse_uuid(text: str) -> bytes:
    """The 16 bytes of a 22-character id. Raises ValueError naming what is wrong."""
    try:
        value = urlsafe_b64decode(text + "==") if len(text) == 22 else b""
    except ValueError:
        value = b""
    if len(value) != 16 or format_uuid(value) != text:
        raise ValueError(f"{text!r} is not an id; it must be 22 characters of A-Z a-z 0-9 - _")
    return value
