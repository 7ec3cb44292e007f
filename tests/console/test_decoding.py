"""Decoders: nothing raises whatever the bytes, no digit is lost, and every refusal has a reason."""

import json
import re
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.coordinators.groups.records import OffsetCommitKey, OffsetCommitValue
from appliance.coordinators.runtime.records import encode_key, encode_value
from appliance.coordinators.transactions.records import (
    PartitionsOfTopic,
    TransactionLogKey,
    TransactionLogValue,
)
from console.model.decoding import json_text
from console.model.decoding.choosing import Decoders
from console.model.decoding.decoded import (
    CHOICES,
    HEX,
    JSON,
    KAFKA,
    KEY,
    MOST,
    MSGPACK,
    TEXT,
    VALUE,
)
from console.model.decoding.kafka_records import TOPICS
from console.model.decoding.memory import Choice, Choices
from console.model.decoding.message_pack import packed

msgpack = pytest.importorskip("msgpack")

OFFSETS_KEY = encode_key(OffsetCommitKey(group="g", topic="t", partition=3))
OFFSETS_VALUE = encode_value(OffsetCommitValue(offset=17, metadata="m", commit_timestamp=1), 4)

NESTED = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def decoders(decoder="auto", part=VALUE):
    return Decoders(Choices(None, "", {part: Choice(decoder)}))


def read(data, decoder="auto"):
    return decoders(decoder).value("t", None, data)


@pytest.mark.parametrize(
    ("data", "decoder", "text"),
    [
        (b"", TEXT, ""),
        (b"17", TEXT, "17"),
        ("Größe\t1".encode(), TEXT, "Größe\t1"),
        (b'{"a": 1}', JSON, '{"a": 1}'),
        (b' [1, "x"]', JSON, ' [1, "x"]'),
        (b"{not json}", TEXT, "{not json}"),
        (b"\x00\x00\x00\x00\x00\x00\x06A", HEX, "0000000000000641"),
        (b"\xff\xfe", HEX, "fffe"),
        (b"\x82\xa1a\x01\xa1b\xc4\x01\xff", MSGPACK, '{"a": 1, "b": "0xff"}'),
        (b"\x93\x01\xc0\xc3", MSGPACK, "[1, null, true]"),
        (b"\x05", HEX, "05"),
    ],
)  # fmt: skip
def test_the_automatic_choice(data, decoder, text):
    found = read(data)
    assert (found.decoder, found.text, found.data) == (decoder, text, data)
    assert bool(found.reason) == (decoder == HEX)


@given(st.binary(max_size=200), st.sampled_from(CHOICES))
def test_no_bytes_raise_and_nothing_is_lost(data, decoder):
    for found in (read(data, decoder), Decoders(Choices(None, "")).key("t", data)):
        assert found.data == data
        assert "\n" not in found.line or found.decoder == TEXT
        list(found.lines())
        if found.decoder == HEX:
            assert bytes.fromhex(found.text) == data
        if found.decoder == TEXT:
            assert found.text.encode() == data
        if found.is_json:
            json.loads(found.line)
    if decoder not in ("auto", HEX) and found.decoder == HEX:
        assert found.reason


@given(st.binary(max_size=60))
def test_why_tells_of_every_decoder(data):
    told = decoders().why("t", VALUE, None, data)
    assert told[-1].decoder == HEX
    assert all(one.why for one in told)
    fits = next(one.decoder for one in told if one.fits)
    assert fits == read(data).decoder
    assert {one.decoder for one in told} >= {JSON, TEXT, MSGPACK, HEX}


@given(NESTED)
def test_json_stays_as_it_was_written(value):
    for text in (
        json.dumps(value),
        json.dumps(value, indent=3),
        json.dumps(value, ensure_ascii=False),
    ):
        data = text.encode()
        found = read(data, JSON)
        assert (found.decoder, found.text, found.data) == (JSON, text, data)
        assert json.loads(found.line) == value
        assert json.loads("\n".join(found.lines())) == value


@pytest.mark.parametrize(
    "number",
    ["9007199254740993", "-" + "9" * 400, "0.10", "1.0000000000000000000000001", "1E400",
     "1e-7", "-0", "1" * 5000, "0." + "3" * 5000],
)  # fmt: skip
def test_every_digit_of_a_number_is_kept(number):
    found = read(f'{{"a": [{number}]}}'.encode())
    assert found.decoder == JSON
    assert found.text == f'{{"a": [{number}]}}'
    assert number in "".join(found.lines())
    (kept,) = found.tree["a"]
    if number != "-0":
        assert str(kept) == number
    if len(number) < 20:
        assert kept == (float(number) if {*number} & {*".eE"} else int(number))


def test_keys_that_come_twice_are_both_shown():
    found = read(b'{"a": 1, "a": 2}')
    assert "".join(found.lines()) == '{  "a": 1,  "a": 2}'


@given(NESTED)
def test_message_pack_reads_what_the_library_writes(value):
    try:
        data = packed(json.dumps(value))
    except ValueError:
        assert any(abs(int(one)) >= 2**63 for one in re.findall(r"\d{19,}", json.dumps(value)))
        return
    found = read(data, MSGPACK)
    assert found.decoder == MSGPACK
    assert json_text.parse(found.text) == value


def test_message_pack_that_json_has_no_word_for():
    data = msgpack.packb(
        {1: "int", None: "nil", b"\x00": "bin", "t": msgpack.Timestamp(1, 5),
         "e": msgpack.ExtType(7, b"\xab"), "inf": float("inf"), "most": 2**64 - 1}
    )  # fmt: skip
    assert read(data).tree == {
        "1": "int", "null": "nil", "0x00": "bin", "t": "1970-01-01T00:00:01.000000005Z",
        "e": {"ext": 7, "data": "0xab"}, "inf": "inf", "most": 2**64 - 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["1" * 30, "1e999", "NaN", '{"a": 1, "a": 2}', "{", "[" * 5000, str(2**64)]
)
def test_what_message_pack_has_no_form_for_is_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        packed(text)


MB = 1 << 20
BOMBS = {
    "deep json": b"[" * MB,
    "deep json that ends": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 200_000,
    "one string": b'["' + b"\\" * (MB - 4) + b'"]',
    "digits": b"[" + b"7" * MB + b"]",
    "many lists": b"[" + b"[]," * 349_000 + b"[]]",
    "deep message pack": b"\x91" * MB,
    "deep maps as keys": b"\x81" * MB,
    "a long array": b"\xdd\xff\xff\xff\xff" + b"\xc0" * 100,
    "a long map": b"\xdf\xff\xff\xff\xff",
    "a long text": b"\xdb\xff\xff\xff\xffabc",
    "a long extension": b"\xc9\xff\xff\xff\xff\x01abc",
    "many maps": b"\xdd" + struct.pack(">I", MB) + b"\x80" * MB,
    "nested keys": b"\x81" * 500 + b"\x01" * 501,
    "extensions": b"\xdd" + struct.pack(">I", MB // 3) + b"\xd4\x05\x00" * (MB // 3),
    "spaces": b"[\n" + b" " * MB + b"]",
    "too long": b'{"a": "' + b"x" * MOST + b'"}',
    "too long and binary": b"\x91\xc6\xff\xff" + b"\xff" * MOST,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_shown_all_the_same(name):
    data = BOMBS[name]
    for decoder in CHOICES:
        found = read(data, decoder)
        assert found.data == data
        assert found.decoder in ("text", "json", "msgpack") or found.reason or decoder == HEX
        assert isinstance(found.line, str)
        for _ in zip(found.lines(), range(50), strict=False):
            pass
        assert found.tree is None or found.is_json


def test_the_offsets_of_groups_can_be_read():
    both = Decoders(Choices(None, ""))
    key = both.key("__consumer_offsets", OFFSETS_KEY)
    value = both.value("__consumer_offsets", OFFSETS_KEY, OFFSETS_VALUE)
    assert key.decoder == value.decoder == KAFKA
    assert key.tree == {"type": "OffsetCommit", "group": "g", "topic": "t", "partition": 3}
    assert value.tree["offset"] == 17
    assert value.tree["metadata"] == "m"
    assert both.value("t", OFFSETS_KEY, OFFSETS_VALUE).decoder == HEX


def test_the_state_of_transactions_can_be_read():
    both = Decoders(Choices(None, ""))
    key = encode_key(TransactionLogKey(transactional_id="t"))
    value = TransactionLogValue(
        producer_id=2**40, producer_epoch=1, transaction_timeout=7, transaction_status=0,
        transaction_partitions=(PartitionsOfTopic(topic="a", partition_ids=(1, 2)),),
        last_update_timestamp=-1, start_timestamp=-1,
    )  # fmt: skip
    read = both.value("__transaction_state", key, encode_value(value, 1)).tree
    assert both.key("__transaction_state", key).tree["transactional_id"] == "t"
    assert read["producer_id"] == 2**40
    assert read["transaction_partitions"] == [{"topic": "a", "partition_ids": [1, 2]}]


@given(st.sampled_from(sorted(TOPICS)), st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_hostile_records_of_brokers_raise_nothing(topic, value, key):
    both = Decoders(Choices(None, ""))
    both.key(topic, key)
    both.value(topic, key, value)
    assert both.why(topic, VALUE, key, value)


def test_a_topic_with_objects_has_numbers_of_the_same_kind():
    both = decoders()
    assert both.value("t", None, b"\x05").decoder == HEX
    both.value("t", None, b"\x81\xa1a\x01")
    assert both.value("t", None, b"\x05").decoder == MSGPACK
    assert both.value("other", None, b"\x05").decoder == HEX
    both.value("j", None, b"{}")
    assert both.value("j", None, b"5").decoder == JSON
    assert both.value("j", None, b"five").decoder == TEXT


def test_what_was_chosen_is_remembered_by_broker_topic_and_part(tmp_path):
    path = tmp_path / "state" / "decoders.json"
    chosen = Choices(path, "a:9092")
    chosen.choose("t", VALUE, Choice(HEX))
    chosen.found("t", KEY, MSGPACK)
    Choices(path, "b:9092").choose("t", VALUE, Choice(TEXT))
    again = Choices(path, "a:9092")
    assert again.of("t", VALUE) == Choice(HEX)
    assert again.of("t", KEY) == Choice(seen=MSGPACK)
    assert again.of("other", VALUE) == Choice()
    assert Choices(path, "b:9092").of("t", VALUE) == Choice(TEXT)
    assert [one.name for one in path.parent.iterdir()] == ["decoders.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"topics": 3}', '{"topics": {"a t": {"value": 7}}}', "[" * 9999]
)
def test_a_damaged_memory_is_as_none(tmp_path, text):
    path = tmp_path / "decoders.json"
    path.write_text(text)
    chosen = Choices(path, "a")
    assert chosen.of("t", VALUE) == Choice()
    chosen.choose("t", VALUE, Choice(HEX))
    assert Choices(path, "a").of("t", VALUE) == Choice(HEX)


def test_where_nothing_can_be_written_it_is_known_until_the_end(tmp_path):
    (tmp_path / "file").write_text("")
    chosen = Choices(tmp_path / "file" / "decoders.json", "a")
    chosen.choose("t", VALUE, Choice(HEX))
    assert chosen.of("t", VALUE) == Choice(HEX)


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_the_dump_of_bytes_has_all_of_them(data):
    lines = list(decoders(HEX).value("t", None, data).lines())
    assert bytes.fromhex("".join(line[10:59].replace(" ", "") for line in lines)) == data
