"""OffsetDelete (API key 47, version 0) over a plain connection: confluent-kafka does not offer it.

One request, one answer, to the first server that takes the connection: on one host every server is
the coordinator; another broker says NOT_COORDINATOR and that is told.
"""

import socket
import struct
from typing import Final

from appliance.base import errors
from appliance.cli.exits import UNREACHABLE, Failure
from appliance.cli.groups import Place
from appliance.cli.link import Link, name_of_code

_KEY: Final = 47
_HEAD: Final = struct.Struct(">hhi")
_MOST: Final = 64 << 20


def delete_offsets(link: Link, group: str, places: list[Place]) -> dict[Place, str]:
    """Place → the name of the error, of those that were not deleted. Raises Failure."""
    server = link.bootstrap.split(",")[0].strip().rpartition("://")[2]
    host, _, port = server.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), link.timeout_s) as peer:
            body = _request(group, places)
            peer.sendall(struct.pack(">i", len(body)) + body)
            size = struct.unpack(">i", _take(peer, 4))[0]
            if not 10 <= size <= _MOST:
                raise ValueError(f"an answer of {size} bytes")
            return _answer(group, _take(peer, size))
    except (OSError, ValueError, struct.error) as problem:
        raise Failure(
            f"{server} did not answer as a broker does: {problem}",
            "a listener with TLS or SASL cannot be asked for this",
            code=UNREACHABLE,
            name="UNREACHABLE",
        ) from None


def _take(peer: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = peer.recv(size - len(parts))
        if not part:
            raise ValueError("the connection was closed")
        parts += part
    return bytes(parts)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _request(group: str, places: list[Place]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, number in places:
        topics.setdefault(topic, []).append(number)
    body = _HEAD.pack(_KEY, 0, 1) + _text("penstock") + _text(group)
    body += struct.pack(">i", len(topics))
    for topic, numbers in topics.items():
        body += _text(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return body


def _answer(group: str, data: bytes) -> dict[Place, str]:
    _, code, _, count = struct.unpack_from(">ihii", data)
    if code != errors.NONE:
        name = name_of_code(code)
        raise Failure(f"{group}: {name}", name=name, kafka_code=code)
    at = 14
    refused: dict[Place, str] = {}
    for _ in range(count):
        (size,) = struct.unpack_from(">h", data, at)
        topic = data[at + 2 : at + 2 + size].decode()
        (partitions,) = struct.unpack_from(">i", data, at + 2 + size)
        at += 6 + size
        for _ in range(partitions):
            number, code = struct.unpack_from(">ih", data, at)
            at += 6
            if code != errors.NONE:
                refused[topic, number] = name_of_code(code)
    return refused
