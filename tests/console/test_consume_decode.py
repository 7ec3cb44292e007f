"""`penstock consume --decode`: what values say, and which ones say nothing to the decoder."""

import json

import pytest

import penstock

pytest.importorskip("msgpack")

PAIR = {"type": "record", "name": "Pair", "fields": [{"name": "a", "type": "long"}]}


@pytest.fixture(scope="module")
def mixed(appliance):
    """A topic with JSON, text, MessagePack and bytes, under text keys."""
    with penstock.connect(appliance.bootstrap).producer() as producer:
        for value in (b'{"n": 9007199254740993,\n "d": 1.10}', b"word",
                      b"\x81\xa1n\xcf" + b"\xff" * 8, b"\xff\x00", None):  # fmt: skip
            producer.produce("decode.mixed", value, key=b"k", partition=0)
        producer.produce("decode.avro", b"\xfe" + b"\xff" * 8 + b"\x01")
    return "decode.mixed"


def test_each_value_by_the_decoder_that_fits(run, mixed):
    done = run("consume", mixed, "-e", "--decode", "auto", "-J")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row.get("value_decoder") for row in rows] == ["json", "text", "msgpack", "hex", None]
    assert [row["value"] for row in rows] == [
        {"n": 9007199254740993, "d": 1.1}, "word", {"n": 2**64 - 1}, "ff00", None,
    ]  # fmt: skip
    assert "1.10" in done.stdout
    assert rows[3]["value_problem"]
    assert {row["key_decoder"] for row in rows} == {"text"}
    assert "1 of them in hexadecimal digits; decode.mixed partition 0 offset 3: no" in done.stderr


def test_one_decoder_for_all_says_what_it_does_not_fit(run, mixed):
    done = run("consume", mixed, "-e", "--decode", "json", "-f", "%k %v\\n")
    assert done.stdout.splitlines()[1:] == [
        "k 776f7264",
        "k 81a16ecfffffffffffffffff",
        "k ff00",
        "k ",
    ]
    assert (
        "3 of them in hexadecimal digits; decode.mixed partition 0 offset 1: json: " in done.stderr
    )


def test_the_offsets_of_groups_are_readable(run, mixed):
    run("consume", mixed, "-g", "decode.readers", "-n", "2")
    done = run("consume", "__consumer_offsets", "-e", "--decode", "auto", "-J")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    mine = [row["value"] for row in rows if row["key"].get("topic") == mixed and row["value"]]
    assert mine[-1]["offset"] == 2
    ours = [row["key"] for row in rows if row["key"].get("group") == "decode.readers"]
    assert {key["type"] for key in ours} == {"OffsetCommit", "GroupMetadata"}


def test_a_schema_of_a_file(run, mixed, tmp_path):
    pytest.importorskip("fastavro")
    (tmp_path / "pair.avsc").write_text(json.dumps(PAIR))
    found = run(
        "consume", "decode.avro", "-e", "--decode", "avro", "--schema", str(tmp_path / "pair.avsc")
    )
    assert found.stdout == '{"a": 9223372036854775807}\n'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--schema", "x.avsc"), "say how --decode"),
        (("--decode", "avro", "--schema", "none.avsc"), "cannot be read"),
        (("--decode", "auto", "--registry", "here"), "no registry's address"),
        (("--decode", "thrift"), "thrift"),
    ],
)
def test_wrong_usage(run, words, told):
    assert told in run("consume", "decode.mixed", *words, code=2).stderr
