"""Names of topics, groups and settings for the shell; those of topics and groups by the two oldest
requests over a plain connection.

Nothing of weight is imported and nothing is said: who presses TAB waits for 150 ms at most, and
gets no names when the broker does not answer in that time.
"""

import os
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, Final

import click

_BUDGET_S: Final = 0.15
_METADATA: Final = (3, 0)
_LIST_GROUPS: Final = (16, 0)
_MOST: Final = 8 << 20


def topic_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Those that begin so; internal ones only for who types their first letters."""
    found = _names(ctx, _METADATA, b"\0\0\0\0", _topics)
    return [
        name for name in found if name.startswith(incomplete or "") and _shown(name, incomplete)
    ]


def group_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Those that begin so."""
    return [n for n in _names(ctx, _LIST_GROUPS, b"", _groups) if n.startswith(incomplete)]


def topic_settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of settings of topics that begin so."""
    from appliance.config.topic_settings import TOPIC

    return [name for name in sorted(TOPIC) if name.startswith(incomplete)]


def setting_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of settings that begin so: of topics after -t, of groups after -g, else of the
    broker."""
    if ctx.params.get("topic"):
        return topic_settings(ctx, param, incomplete)
    if ctx.params.get("group"):
        from appliance.config.own_group_settings import GROUP

        known = sorted(GROUP)
    else:
        from appliance.config.broker_settings import BROKER

        known = sorted(BROKER)
    return [name for name in known if name.startswith(incomplete)]


def _shown(name: str, incomplete: str) -> bool:
    return incomplete.startswith("__") or not name.startswith("__")


def _names(
    ctx: click.Context, api: tuple[int, int], body: bytes, read: Callable[[bytes], list[str]]
) -> list[str]:
    try:
        return sorted(read(_ask(_server(ctx), api, body)))
    except (OSError, ValueError, struct.error):
        return []


def _server(ctx: click.Context) -> tuple[str, int]:
    named: Any = ctx.params.get("bootstrap") or os.environ.get("PENSTOCK_BOOTSTRAP")
    host, _, port = str(named or "localhost:9092").split(",")[0].rpartition(":")
    return host.rpartition("://")[2].strip("[]"), int(port)


def _ask(server: tuple[str, int], api: tuple[int, int], body: bytes) -> bytes:
    until = time.monotonic() + _BUDGET_S
    with socket.create_connection(server, _BUDGET_S) as peer:
        frame = struct.pack(">hhih", *api, 1, -1) + body
        peer.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", _take(peer, 4, until))
        if not 4 <= size <= _MOST:
            raise ValueError("not an answer")
        return _take(peer, size, until)[4:]


def _take(peer: socket.socket, size: int, until: float) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        peer.settimeout(max(0.001, until - time.monotonic()))
        part = peer.recv(size - len(parts))
        if not part:
            raise ValueError("the connection was closed")
        parts += part
    return bytes(parts)


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
