"""Requests of versions that Apache Kafka 4 gave up, written and read as plainly as they can be."""

import socket
import struct
from typing import NamedTuple

PRODUCE, FETCH = 0, 1


class Peer:
    """A connection to a broker."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, 30)
        self._number = 0

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, key: int, version: int, body: bytes, *, silent: bool = False) -> "Reader":
        """The body of the answer; b"" where the connection was closed instead. silent: there is
        none."""
        self._number += 1
        head = struct.pack(">hhi", key, version, self._number) + string("old")
        self._socket.sendall(struct.pack(">i", len(head + body)) + head + body)
        if silent:
            return Reader(b"")
        frame = self._read(4)
        answer = self._read(*struct.unpack(">i", frame)) if frame else b""
        assert not answer or struct.unpack(">i", answer[:4]) == (self._number,)
        return Reader(answer[4:])

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                return b""
            data += piece
        return data


class Reader:
    """Takes fields from the front of an answer."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, fields: str) -> tuple:
        """As `struct` names them."""
        found = struct.unpack_from(">" + fields, self.data, self.at)
        self.at += struct.calcsize(">" + fields)
        return found

    def string(self) -> str | None:
        (size,) = self.take("h")
        return None if size < 0 else self._bytes(size).decode()

    def sized(self) -> bytes | None:
        (size,) = self.take("i")
        return None if size < 0 else self._bytes(size)

    def array(self, read) -> list:
        (count,) = self.take("i")
        return [read() for _ in range(count)]

    def end(self) -> None:
        assert self.at == len(self.data), (self.at, self.data)

    def _bytes(self, size: int) -> bytes:
        self.at += size
        assert self.at <= len(self.data)
        return self.data[self.at - size : self.at]


def string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    return struct.pack(">h", len(text.encode())) + text.encode()


def sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def array(*elements: bytes) -> bytes:
    return struct.pack(">i", len(elements)) + b"".join(elements)


def produce(
    peer: Peer, version: int, topic: str, records: bytes | None, *, partition: int = 0,
    acks: int = -1, timeout_ms: int = 10_000,
) -> dict:  # fmt: skip
    """The answer for one partition; {} where the connection was closed."""
    head = string(None) if version >= 3 else b""
    body = struct.pack(">hi", acks, timeout_ms)
    one = string(topic) + array(struct.pack(">i", partition) + sized(records))
    answer = peer.ask(PRODUCE, version, head + body + array(one), silent=acks == 0)
    if not answer.data:
        return {}
    told: dict = {}
    assert answer.take("i") == (1,)
    assert answer.string() == topic
    assert answer.take("i") == (1,)
    told["partition"], told["error"], told["offset"] = answer.take("ihq")
    if version >= 2:
        (told["append_time"],) = answer.take("q")
    if version >= 1:
        (told["throttle"],) = answer.take("i")
    answer.end()
    return told


class Message(NamedTuple):
    """One entry of a message set, as it lies there."""

    offset: int
    magic: int
    attributes: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None


def fetch(
    peer: Peer, version: int, topic: str, offset: int, *, partition: int = 0, most: int = 1 << 20,
    everything: int = 1 << 20, wait_ms: int = 500, least: int = 1,
) -> dict:  # fmt: skip
    """The answer for one partition."""
    body = struct.pack(">iii", -1, wait_ms, least)
    body += struct.pack(">i", everything) if version >= 3 else b""
    one = string(topic) + array(struct.pack(">iqi", partition, offset, most))
    answer = peer.ask(FETCH, version, body + array(one))
    told: dict = {}
    if version >= 1:
        (told["throttle"],) = answer.take("i")
    assert answer.take("i") == (1,)
    assert answer.string() == topic
    assert answer.take("i") == (1,)
    told["partition"], told["error"], told["high_watermark"] = answer.take("ihq")
    told["set"] = answer.sized()
    answer.end()
    return told


def messages(data: bytes | None) -> list[Message]:
    """The whole entries of a message set; what is cut off is left out."""
    found = []
    at = 0
    while data is not None and len(data) - at >= 12:
        offset, size = struct.unpack_from(">qi", data, at)
        if size > len(data) - at - 12:
            break
        reader = Reader(data[at + 16 : at + 12 + size])
        magic, attributes = reader.take("bb")
        time = reader.take("q")[0] if magic else None
        key, value = reader.sized(), reader.sized()
        reader.end()
        found.append(Message(offset, magic, attributes, time, key, value))
        at += 12 + size
    return found
