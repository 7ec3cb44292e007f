"""Requests cut into parts: every row is in one part, joined answers are the whole answer."""

import dataclasses

import pytest

from appliance.coordinators.groups.kind import GROUPS
from appliance.coordinators.runtime.request_parts import ROWS, CutPart, cut, join
from appliance.coordinators.transactions.kind import TRANSACTIONS
from appliance.wire import messages
from benchmarks import largest

PARTITIONS = 5
COUNT = 3 * ROWS + 7
KINDS = {8: GROUPS, 9: GROUPS, 13: GROUPS, 15: GROUPS, 28: GROUPS, 42: GROUPS, 47: GROUPS,
         69: GROUPS, 24: TRANSACTIONS, 65: TRANSACTIONS}  # fmt: skip
CASES = [
    (key, version)
    for key, kind in KINDS.items()
    for version in messages.request_versions(key)
    if kind.rows(key, version) is not None
]


def finished(steps):
    """The value that these steps return, and how many there were."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


def cut_up(key, version, request):
    rows = KINDS[key].rows(key, version)
    only = (2, messages.encode_request(request)) if rows.name is None else None
    parts, _ = finished(cut(rows, request, PARTITIONS, only))
    return rows, parts


def rows_in(request, path):
    """(outer element, row) of each row, by what identifies them."""
    found = []
    for one in getattr(request, path[0]):
        if len(path) == 1:
            found.append(one)
        else:
            name = getattr(one, "name", None) or one.topic_id
            found += [(name, row) for row in getattr(one, path[1])] or [(name, None)]
    return found


def answer_to(key, version, request, rows):
    """An encoded answer with an error code for each row."""
    layout = messages.layout_of(messages.response_type(key, version))
    (outer,) = (one for one in layout.fields if one.array and one.tag < 0)
    elements = []
    for number, one in enumerate(getattr(request, rows.path[0])):
        values = {
            field.name: getattr(one, field.name, None) for field in outer.nested.fields
            if field.kind != "error_code"
        }  # fmt: skip
        elements.append(filled(outer.nested, values, one, number, rows))
    values = {one.name: largest._value(one, (), 0, 0, False) for one in layout.fields
              if one is not outer and one.tag < 0}  # fmt: skip
    if "error_code" in values:
        values["error_code"] = type(values["error_code"])(0)
    values[outer.name] = tuple(elements)
    return messages.encode_response(layout.make(**values))


def filled(layout, values, element, number, rows):
    """One element of an answer, with the names of the asked one and made-up values."""
    one = largest._struct(layout, (), 1, 7, False)
    changes = {
        name: value for name, value in values.items()
        if value is not None and not isinstance(value, tuple)
    }  # fmt: skip
    if len(rows.path) == 2:
        (array,) = (field for field in layout.fields if field.array)
        inner = largest._struct(array.nested, (), 1, 7, False)
        asked = getattr(element, rows.path[1])
        indexes = [getattr(row, "partition_index", row) for row in asked]
        changes[array.name] = tuple(
            dataclasses.replace(inner, partition_index=index) for index in indexes
        )
    return dataclasses.replace(one, **changes)


def requests_of(key, version, path):
    """A request whose rows lie in many outer elements, and one with few large ones."""
    request_layout = messages.layout_of(messages.request_type(key, version))
    yield largest._struct(request_layout, path[:1], COUNT, 0, False)
    if len(path) == 2:
        large = largest._struct(request_layout, path, COUNT, 0, False)
        small = largest._struct(request_layout, path, 2, 0, False)
        (big,), (little,) = getattr(large, path[0]), getattr(small, path[0])
        key_of = "topic_id" if hasattr(big, "topic_id") else "name"
        names = [getattr(one, key_of) for one in requests_named(request_layout, path)]
        elements = [little, big, little, little, big, big, little]
        elements = [
            dataclasses.replace(one, **{key_of: name})
            for one, name in zip(elements, names, strict=True)
        ]
        yield dataclasses.replace(large, **{path[0]: tuple(elements)})


def requests_named(layout, path):
    return getattr(largest._struct(layout, path[:1], 7, 1, False), path[0])


@pytest.mark.parametrize(("key", "version"), CASES)
def test_parts_have_all_rows_and_their_answers_make_the_whole_answer(key, version):
    path = KINDS[key].rows(key, version).path
    for request in requests_of(key, version, path):
        rows, parts = cut_up(key, version, request)
        asked = [finished(messages.decode_in_slices(key, version, part.body))[0] for part in parts]
        assert len(parts) > 2
        assert all(len(rows_in(one, path)) <= ROWS for one in asked)
        found = [row for one in asked for row in rows_in(one, path)]
        named = rows.name is not None
        told = [str(row) for row in rows_in(request, path)]
        if named:
            assert sorted(map(str, found)) == sorted(told)
            continue
        assert [str(row) for row in found] == told
        answers = [answer_to(key, version, one, rows) for one in asked]
        whole = answer_to(key, version, request, rows)
        assert join(rows, key, version, parts, answers) == whole


def test_an_error_for_the_whole_answer_is_the_answer():
    rows = GROUPS.rows(13, 5)
    fine = b"\0\0\0\0" + b"\0\0" + b"\2" + b"\1\0\0\0\0" + b"\0"
    wrong = b"\0\0\0\0" + b"\0\x10" + b"\1" + b"\0"
    parts = [CutPart(0, b"")] * 2
    assert join(rows, 13, 5, parts, [fine, wrong]) == wrong


def test_a_short_request_stays_one_part():
    layout = messages.layout_of(messages.request_type(8, 9))
    request = largest._struct(layout, ("topics", "partitions"), ROWS, 0, False)
    _, parts = cut_up(8, 9, request)
    assert parts == [CutPart(2, messages.encode_request(request))]
