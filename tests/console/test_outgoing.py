"""Records that are typed: the bytes that are meant, those that were not edited, and a command line
that writes the same."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

import penstock
from console.model.asking.failure import Failure
from console.model.records.outgoing import (
    MOST_TYPED,
    Outgoing,
    encoded,
    header_lines,
    headers_of,
    tombstone,
    typed,
    words,
)
from console.model.records.reading import Record
from tests.console_process import typing

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=6)), max_size=4)


@given(
    st.binary(max_size=60) | st.text(max_size=30).map(lambda text: text.encode("utf-8", "replace"))
)
def test_what_is_shown_to_be_edited_is_exactly_what_it_was(data):
    text, encoding = typed(data)
    assert encoded(text, encoding) == data
    assert all(line.isprintable() for line in text.split("\n"))


@given(HEADERS)
def test_headers_that_are_not_edited_stay_as_they_are(headers):
    lines = header_lines(headers)
    assert all("\n" not in line for line in lines if line.isprintable())
    if all(lines) and not any("\n" in line for line in lines):
        kept = headers_of("\n".join(lines), headers)
        assert sorted(map(repr, kept)) == sorted(map(repr, headers))
        assert [name for name, _ in kept] == [name for name, _ in headers]


def test_headers_with_one_name_keep_their_order():
    before = [
        ("a", b"1"),
        ("a", b"\xff"),
        ("b", None),
        ("a", b"1"),
        ("x=y", b"z"),
        ("h", b"hex:00"),
    ]
    lines = header_lines(before)
    assert lines == ["a=1", "a=hex:ff", "b", "a=1", "x=y=z", "h=hex:6865783a3030"]
    assert headers_of("\n".join(lines), before) == tuple(before)
    edited = ["a=2", *lines[1:], "new", "n=hex:00 01"]
    assert headers_of("\n".join(edited), before) == (
        ("a", b"2"), *before[1:], ("new", None), ("n", b"\x00\x01"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "encoding", "data"),
    [
        ("ä\n", "text", "ä\n".encode()),
        ('{"a": 1.10}', "json", b'{"a": 1.10}'),
        ("DE ad\nbe ef", "hex", b"\xde\xad\xbe\xef"),
        ("0x00", "hex", b"\x00"),
        (base64.b64encode(b"\xff\x00").decode(), "base64", b"\xff\x00"),
        ('{"a": [1, null]}', "msgpack", b"\x81\xa1a\x92\x01\xc0"),
    ],
)
def test_every_way_to_type_bytes(text, encoding, data):
    assert encoded(text, encoding) == data


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("{", "json"), ("NaN", "json"), ("abc", "hex"), ("é", "base64"), ("a", "base64"),
     ("{1", "msgpack"), ("\ud800", "text")],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(text, encoding):
    with pytest.raises(Failure, match=f"not valid {encoding}"):
        encoded(text, encoding)


def test_a_tombstone_goes_where_its_record_is():
    record = Record("t", 3, 7, None, b"k", b"v", [("h", b"1")])
    assert tombstone(record) == Outgoing("t", b"k", None, (), 3)
    with pytest.raises(Failure, match="no key"):
        tombstone(Record("t", 3, 7, None, None, b"v", []))


def test_the_command_writes_the_same(appliance, run):
    """The line of each record is run; what it wrote is what was meant."""
    meant = [
        Outgoing("producing.lines", b"-k", b"--value", (), 0),
        Outgoing(
            "producing.lines", b"\xff\x00", b"a\nb", (("a", b"1"), ("a", b"2"), ("n", None)), 0
        ),
        Outgoing(
            "producing.lines", "ä".encode(), None, (("a", b"\xff"), ("b", b"x"), ("c", b"")), 0
        ),
    ]
    for one in meant:
        run(*words(one))
    found = typing(appliance.bootstrap)("consume", "producing.lines", "-e", "-J", "-p", "0").stdout
    rows = [json_line(line) for line in found.splitlines()]
    assert rows == [(one.key, one.value, list(one.headers)) for one in meant]


def test_a_key_goes_where_javas_clients_put_it(appliance, run):
    """Their murmur2, as kafka-python has it too."""
    run("topic", "create", "outgoing.keys", "-p", "3")
    run("produce", "outgoing.keys", "-K:", stdin="".join(f"k{n}:v\n" for n in range(6)))
    read = penstock.connect(appliance.bootstrap).read("outgoing.keys")
    found = {one.key(): one.partition() for one in read}
    assert found == {key: (murmur2(key) & 0x7FFFFFFF) % 3 for key in found}
    assert len(set(found.values())) > 1


def json_line(line):
    row = json.loads(line)

    def part(of, name):
        if f"{name}_base64" in of:
            return base64.b64decode(of[f"{name}_base64"])
        return None if of[name] is None else of[name].encode()

    headers = [(one["key"], part(one, "value")) for one in row.get("headers", ())]
    return part(row, "key"), part(row, "value"), headers


def test_a_value_too_long_for_a_line_is_a_file():
    assert words(Outgoing("t", b"k", b"x" * (MOST_TYPED + 1)))[-1] == "value.bin"


def test_one_record_is_said_in_one_way(run):
    done = run("produce", "producing.lines", "--value", "a", "--null", code=2)
    assert "one of the three" in done.stderr
