"""Requests split among the partitions of a coordinator's topic, and their answers put together:
what the kinds have in common.

Pure functions for the network process. Of a request that names one thing only that name is looked
at; answers are spliced by their lists, whose rows nobody reads.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from struct import Struct
from typing import Any, Final

from appliance.base.errors import MalformedRequest
from appliance.coordinators.runtime.kind import partition_of
from appliance.wire.fields import put_uvarint
from appliance.wire.request_head import is_flexible
from appliance.wire.varint import read_uvarint

_SHORT: Final = Struct(">h").unpack_from
_COUNT: Final = Struct(">i")


def first_text(key: int, version: int, body: bytes) -> str:
    """The text that a request begins with: a group's id, a transactional id. Raises
    MalformedRequest, of null as well."""
    if is_flexible(key, version):
        size, at = read_uvarint(memoryview(body), 0, len(body))
        size -= 1
    elif len(body) >= 2:
        size, at = _SHORT(body)[0], 2
    else:
        size, at = -1, 0
    if not 0 <= size <= len(body) - at:
        raise MalformedRequest(f"an id of {size} bytes, {len(body) - at} remain")
    try:
        return body[at : at + size].decode()
    except UnicodeDecodeError as cause:
        raise MalformedRequest(f"the id is not UTF-8: {cause}") from cause


def second_text(key: int, version: int, body: bytes) -> str:
    """The text behind that: of a transaction's offsets the group's id."""
    if is_flexible(key, version):
        size, at = read_uvarint(memoryview(body), 0, len(body))
        end = at + size - 1
    else:
        end = 2 + _SHORT(body)[0] if len(body) >= 2 else 0
    if not 0 < end <= len(body):
        raise MalformedRequest(f"an id ends at byte {end} of {len(body)}")
    return first_text(key, version, body[end:])


def split(request: Any, field: str, name: Callable[[Any], str], partitions: int) -> dict[int, Any]:
    """Splits a request for several things into one for each partition, in ascending order. field:
    the list of the things. name: the text that decides where a thing belongs.

    At least one partition is asked: the first, by who asks about nothing.
    """
    found: dict[int, list[Any]] = {}
    for one in getattr(request, field):
        found.setdefault(partition_of(name(one), partitions), []).append(one)
    if len(found) < 2:
        return dict.fromkeys(found or (0,), request)
    return {one: replace(request, **{field: tuple(found[one])}) for one in sorted(found)}


def splice(answers: Sequence[bytes], head: int, *, flexible: bool) -> bytes:
    """One encoded answer of those of several partitions: the list that each has from `head` on to
    its end, put together behind the first one's head."""
    rows, count = [], 0
    for answer in answers:
        if flexible:
            assert answer[-1] == 0, "an answer with tagged fields"
            several, at = read_uvarint(memoryview(answer), head, len(answer))
            count += several - 1
            rows.append(answer[at:-1])
        else:
            count += _COUNT.unpack_from(answer, head)[0]
            rows.append(answer[head + 4 :])
    out = [answers[0][:head]]
    if flexible:
        put_uvarint(out, count + 1)
        rows.append(b"\0")
    else:
        out.append(_COUNT.pack(count))
    return b"".join(out + rows)
