"""Cuts a request with many rows into parts, and joins the answers to these parts.

A coordinator decides a part in one turn. Rows are independent of each other in the APIs that are
cut: each has an error code of its own. Pure functions for the network process, in steps of some
hundred µs. Caller: `handlers/coordinate.py`.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple

from appliance.coordinators.runtime.kind import Part, RowsOf, partition_of
from appliance.wire import messages
from appliance.wire.fields import Reader, field_reader, put_uvarint
from appliance.wire.messages import is_flexible, layout_of, response_type
from appliance.wire.varint import read_uvarint

ROWS: Final = 256
"""Rows of one part: a coordinator needs 2 to 10 ms for them."""
_COUNT: Final = Struct(">i")

Steps = Generator[None, None, "list[CutPart]"]


class CutPart(NamedTuple):
    """partition, body: as of a Part. goes_on: its only outer element is the rest of the last one of
    the part before."""

    partition: int
    body: bytes
    goes_on: bool = False


def cut(rows: RowsOf, request: Any, partitions: int, only: Part | None) -> Steps:
    """Cuts a decoded request. only: the partition that the whole request goes to, and its bytes;
    None: each outer element names its own."""
    found: list[CutPart] = []
    if only is not None:
        found = yield from _cut_one(rows.path, request, only[0])
        return found if len(found) > 1 else [CutPart(*only)]
    assert rows.name is not None
    field = rows.path[0]
    several: dict[int, list[Any]] = {}
    seen: set[str] = set()
    for number, one in enumerate(getattr(request, field), 1):
        if rows.is_once:
            if one in seen:
                continue
            seen.add(one)
        several.setdefault(partition_of(rows.name(one), partitions), []).append(one)
        if number % ROWS == 0:
            yield
    for partition in sorted(several):
        elements = several.pop(partition)
        for at in range(0, len(elements), ROWS):
            part = replace(request, **{field: tuple(elements[at : at + ROWS])})
            found.append(CutPart(partition, messages.encode_request(part)))
            yield
    return found


def _cut_one(path: tuple[str, ...], request: Any, partition: int) -> Steps:
    found: list[CutPart] = []
    field = path[0]
    for elements, goes_on in _pieces(getattr(request, field), path[1:]):
        body = messages.encode_request(replace(request, **{field: elements}))
        found.append(CutPart(partition, body, goes_on))
        yield
    return found


def _pieces(
    elements: Sequence[Any], within: tuple[str, ...]
) -> Generator[tuple[tuple[Any, ...], bool], None, None]:
    """(outer elements of one part, whether they go on with the last one of the part before)."""
    if not within:
        for at in range(0, len(elements), ROWS):
            yield tuple(elements[at : at + ROWS]), False
        return
    (field,) = within
    whole: list[Any] = []
    room = ROWS
    for one in elements:
        rows = getattr(one, field)
        if whole and max(len(rows), 1) > room:
            yield tuple(whole), False
            whole, room = [], ROWS
        if len(rows) <= ROWS:
            whole.append(one)
            room -= max(len(rows), 1)
            continue
        for at in range(0, len(rows), ROWS):
            yield (replace(one, **{field: rows[at : at + ROWS]}),), at > 0
    if whole:
        yield tuple(whole), False


# Answers ------------------------------------------------------------------------------------------


def join(
    rows: RowsOf, api_key: int, version: int, parts: Sequence[CutPart], answers: Sequence[bytes]
) -> bytes:
    """The encoded answer to the whole request out of the answers to its parts. A part with an error
    code for the whole answer is the answer: its rows look complete otherwise."""
    if rows.code_at >= 0:
        for answer in answers:
            if answer[rows.code_at : rows.code_at + 2] != b"\0\0":
                return answer
    flexible = is_flexible(api_key, version)
    count, out = 0, [answers[0][: rows.head]]
    lists: list[bytes] = []
    at = 0
    while at < len(parts):
        end = at + 1
        while end < len(parts) and parts[end].goes_on:
            end += 1
        if end - at == 1:
            several, begin = _read_count(answers[at], rows.head, flexible)
            count += several
            lists.append(answers[at][begin : -1 if flexible else None])
        else:
            count += 1
            lists += _join_one(rows, api_key, version, answers[at:end])
        at = end
    _put_count(out, count, flexible)
    if flexible:
        lists.append(b"\0")
    return b"".join(out + lists)


def _join_one(rows: RowsOf, api_key: int, version: int, answers: Sequence[bytes]) -> list[bytes]:
    """The bytes of one outer element out of its pieces, each alone in its answer."""
    flexible = is_flexible(api_key, version)
    before = _readers_before_rows(api_key, version, rows.path)
    count, pieces, first = 0, [], b""
    for answer in answers:
        several, begin = _read_count(answer, rows.head, flexible)
        assert several == 1, "a piece of an element is alone in its answer"
        at = begin
        for reader in before:
            _, at = reader(answer, at, [len(answer)])
        first = first or answer[begin:at]
        more, at = _read_count(answer, at, flexible)
        count += more
        pieces.append(answer[at : -2 if flexible else None])
    out = [first]
    _put_count(out, count, flexible)
    out += pieces
    if flexible:
        out.append(b"\0")
    return out


@cache
def _readers_before_rows(api_key: int, version: int, path: tuple[str, ...]) -> list[Reader]:
    """Read the fields of an outer element before its rows, which are its last field."""
    layout = layout_of(response_type(api_key, version))
    (outer,) = (one.nested for one in layout.fields if one.array and one.tag < 0)
    assert outer is not None and len(path) > 1
    *before, last = (one for one in outer.fields if one.tag < 0)
    assert last.array, "rows are the last field"
    return [field_reader(one, layout.flexible) for one in before]


def _read_count(answer: bytes, at: int, flexible: bool) -> tuple[int, int]:
    if flexible:
        count, at = read_uvarint(memoryview(answer), at, len(answer))
        return count - 1, at
    return _COUNT.unpack_from(answer, at)[0], at + 4


def _put_count(out: list[bytes], count: int, flexible: bool) -> None:
    if flexible:
        put_uvarint(out, count + 1)
    else:
        out.append(_COUNT.pack(count))
