"""Requests in versions that Apache Kafka 4 gave up, with penstock.legacy.protocol.

Produce and Fetch know their old versions themselves. OffsetCommit versions 0 and 1 are read as
version 2, and OffsetFetch version 0 as version 1: the answers look the same. Version 0 of both
was about offsets in ZooKeeper; here they are those of the group. ListOffsets version 0 asked for
several offsets (`k02_list_offsets.py`). What is long is translated over several turns.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from struct import Struct, error
from typing import Final

from appliance.authorization.apis import APIS
from appliance.base.errors import MalformedRequest
from appliance.config.bounds import ELEMENTS
from appliance.handlers import k02_list_offsets
from appliance.handlers.exchange import Exchange, Handler, Host, Steps
from appliance.wire.messages import elements_max

_LIST_OFFSETS: Final = 2
_OFFSET_COMMIT: Final = 8
_OFFSET_FETCH: Final = 9
_LONG: Final = 1 << 14
"""Bytes of a request from which on it is translated over several turns."""
_MANY: Final = 1000

_I16: Final = Struct(">h")
_I32: Final = Struct(">i")
_ROW_1: Final = Struct(">iqq")  # partition, offset, time of the commit
_ROW_2: Final = Struct(">iq")
_NO_MEMBER: Final = b"\xff\xff\xff\xff\x00\x00"  # generation -1, member ""
_NO_RETENTION: Final = b"\xff" * 8


def lower_handler(handler: Handler) -> Handler:
    """The handler with the versions that Apache Kafka 4 gave up; itself where there are none."""
    lowest = APIS[handler.key].legacy
    if lowest is None:
        return handler
    begin = _BEGIN.get(handler.key, _as_it_is)
    return replace(handler, lowest=lowest, begin=begin(handler))


def _as_it_is(handler: Handler) -> Callable[[Host, Exchange], None]:
    return handler.begin


def _begin_translated(handler: Handler) -> Callable[[Host, Exchange], None]:
    """Makes of the request one of the lowest version that its handler reads."""

    def begin_request(host: Host, x: Exchange) -> None:
        if x.version >= handler.lowest:
            handler.begin(host, x)
            return
        body = bytes(host.memory[x.position : x.end])
        steps = _translate(x, body, handler.lowest)
        if len(body) >= _LONG:
            host.work(x, steps, partial(handler.begin, host, x))
            return
        for _ in steps:
            pass
        handler.begin(host, x)

    return begin_request


def _begin_list_offsets(handler: Handler) -> Callable[[Host, Exchange], None]:
    def begin_request(host: Host, x: Exchange) -> None:
        begin = handler.begin if x.version else k02_list_offsets.begin_version_0
        begin(host, x)

    return begin_request


_BEGIN: Final = {
    _LIST_OFFSETS: _begin_list_offsets,
    _OFFSET_COMMIT: _begin_translated,
    _OFFSET_FETCH: _begin_translated,
}


def _translate(x: Exchange, body: bytes, version: int) -> Steps:
    """Steps at whose end the exchange has the body and the number of that version. Raises
    MalformedRequest."""
    out: list[bytes] = []
    try:
        if x.handler.key == _OFFSET_FETCH:
            out.append(body)
        elif x.version == 0:
            at = _behind_string(body, 0)
            out += (body[:at], _NO_MEMBER, _NO_RETENTION, body[at:])
        else:
            yield from _translate_commit(body, out, elements_max(_OFFSET_COMMIT))
    except error as cause:
        raise MalformedRequest("the request ends inside a field") from cause
    x.version, x.decoded = version, b"".join(out)


def _translate_commit(body: bytes, out: list[bytes], most: int) -> Steps:
    """OffsetCommit version 1 as version 2: without the time of each commit."""
    at = _behind_string(body, _behind_string(body, 0) + _I32.size)
    out += (body[:at], _NO_RETENTION)
    (topics,) = _I32.unpack_from(body, at)
    start, at, rows = at, at + 4, 0
    for _ in range(topics):
        at = _behind_string(body, at)
        (count,) = _I32.unpack_from(body, at)
        at += 4
        out.append(body[start:at])
        for _ in range(count):
            partition, offset, _ = _ROW_1.unpack_from(body, at)
            start = at + _ROW_1.size
            at = _behind_string(body, start)
            out += (_ROW_2.pack(partition, offset), body[start:at])
            rows += 1
            if rows % _MANY == 0:
                yield
            if rows > most:
                text = f"more than {most} partitions (penstock.request.max.elements)"
                raise MalformedRequest(text, ELEMENTS)
        start = at
    out.append(body[start:at])


def _behind_string(body: bytes, at: int) -> int:
    (size,) = _I16.unpack_from(body, at)
    behind: int = at + 2 + max(0, size)
    if behind > len(body):
        raise MalformedRequest(f"string of {size} bytes, {len(body) - at - 2} remain")
    return behind
