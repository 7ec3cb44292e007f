"""Names of topics, groups and transactional ids at once, for who is about to type one: by the
oldest requests over a connection of our own. Nothing of weight is imported where no TLS is needed,
and there are no names when nobody answers.
"""

import struct
import time
from collections.abc import Callable
from typing import Final

from penstock.door import PLAIN, Door
from penstock.frames import exchange
from penstock.reach import address_of

_METADATA: Final = (3, 0)
_LIST_GROUPS: Final = (16, 0)
_LIST_TRANSACTIONS: Final = (66, 0)
_MOST: Final = 8 << 20


def topics(server: str, limit_s: float, door: Door = PLAIN) -> list[str]:
    """Every topic; none when `server` (HOST:PORT) does not answer in time."""
    return _names(server, limit_s, door, _METADATA, b"\0\0\0\0", _topics)


def groups(server: str, limit_s: float, door: Door = PLAIN) -> list[str]:
    """Every group; none when `server` (HOST:PORT) does not answer in time."""
    return _names(server, limit_s, door, _LIST_GROUPS, b"", _groups)


def transactional_ids(server: str, limit_s: float, door: Door = PLAIN) -> list[str]:
    """Every transactional id; none when `server` (HOST:PORT) does not answer in time."""
    # A flexible request: tags of its head, then two filters that let everything pass, and tags.
    return _names(server, limit_s, door, _LIST_TRANSACTIONS, b"\0\1\1\0", _transactional_ids)


def _names(
    server: str,
    limit_s: float,
    door: Door,
    api: tuple[int, int],
    body: bytes,
    read: Callable[[bytes], list[str]],
) -> list[str]:
    until = time.monotonic() + limit_s
    request = struct.pack(">hhih", *api, 1, -1) + body
    try:
        with door.open_connection(address_of(server), limit_s) as peer:
            answer = exchange(peer, request, least=4, most=_MOST, until=until)
        return sorted(read(answer[4:]))
    except (OSError, ValueError, struct.error):
        return []


class _Reader:
    """Integers and strings of the oldest versions, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def text(self) -> str:
        size = max(0, self.number("h"))
        data = self._data[self._at : self._at + size]
        self._at += size
        return data.decode()

    def size(self) -> int:
        """Reads the length of a compact string or array."""
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return max(0, value - 1)
            shift += 7

    def compact_text(self) -> str:
        size = self.size()
        data = self._data[self._at : self._at + size]
        self._at += size
        return data.decode()

    def skip_numbers(self) -> None:
        count = max(0, self.number("i"))
        self._at += 4 * count


def _topics(data: bytes) -> list[str]:
    reader = _Reader(data)
    for _ in range(reader.number("i")):  # brokers
        reader.number("i")
        reader.text()
        reader.number("i")
    names = []
    for _ in range(reader.number("i")):
        reader.number("h")
        names.append(reader.text())
        for _ in range(reader.number("i")):  # partitions
            for form in "hii":
                reader.number(form)
            reader.skip_numbers()
            reader.skip_numbers()
    return names


def _groups(data: bytes) -> list[str]:
    reader = _Reader(data)
    reader.number("h")
    names = []
    for _ in range(reader.number("i")):
        names.append(reader.text())
        reader.text()
    return names


def _transactional_ids(data: bytes) -> list[str]:
    reader = _Reader(data)
    for form in "Bih":  # tags of the head, throttle time, error
        reader.number(form)
    for _ in range(reader.size()):  # filters of states that it does not know
        reader.compact_text()
    names = []
    for _ in range(reader.size()):
        names.append(reader.compact_text())
        reader.number("q")
        reader.compact_text()
        reader.number("B")
    return names
