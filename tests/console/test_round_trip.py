"""What `consume -J` prints, `produce -J` takes: records come out as they went in. And the last N
are N records, whatever else has offsets."""

import json

import pytest
from confluent_kafka import Producer

from tests.console.forked_commands import Forks

RECORDS = [
    {"key": b"a", "value": b"plain", "partition": 0, "timestamp": 1_357_038_000_000},
    {"key": b"gone", "value": None, "partition": 1, "timestamp": 1_357_038_000_001},
    {"key": None, "value": b"", "partition": 2, "timestamp": 0},
    {"key": b"", "value": b"\xff\x00\xfe", "partition": 0, "timestamp": 3},
    {"key": b"\xff", "value": "Grüße\n\u2028\x1b".encode(), "partition": 1, "timestamp": 4},
    {
        "key": None, "value": None, "partition": 2, "timestamp": 5,
        "headers": [("h", b"\xff"), ("h", None), ("empty", b""), ("text", b"t"), ("Ü", b"\n")],
    },
]  # fmt: skip


@pytest.fixture(scope="module")
def forks(alone):
    made = Forks(PENSTOCK_BOOTSTRAP=alone.bootstrap)
    yield made
    made.close()


@pytest.fixture
def producer(alone):
    return Producer({"bootstrap.servers": alone.bootstrap})


def _lines(forks, topic, *words):
    done = forks.run("consume", topic, "-J", "-e", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout, sorted(
        (
            {k: v for k, v in json.loads(line).items() if k != "topic"}
            for line in done.stdout.splitlines()
        ),
        key=lambda row: (row["partition"], row["offset"]),
    )


def test_records_come_out_as_they_went_in(forks, producer):
    for topic in ("trip.from", "trip.to"):
        assert forks.run("topic", "create", topic, "-p", "3").returncode == 0
    for record in RECORDS:
        producer.produce("trip.from", **record)
    assert producer.flush(60) == 0
    out, rows = _lines(forks, "trip.from")
    done = forks.run("produce", "trip.to", "-J", stdin=out)
    assert done.returncode == 0, done.stderr
    assert _lines(forks, "trip.to")[1] == rows
    assert len(rows) == len(RECORDS)


def test_options_win_over_what_a_line_says(forks):
    forks.run("topic", "create", "trip.options", "-p", "3")
    line = b'{"partition": 1, "value": "x", "headers": [{"key": "b", "value": "2"}]}\n'
    done = forks.run("produce", "trip.options", "-J", "-p", "2", "-H", "a=1", stdin=line)
    assert done.returncode == 0, done.stderr
    (row,) = _lines(forks, "trip.options")[1]
    assert row["partition"] == 2 and [one["key"] for one in row["headers"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "it is not an object"),
        (b'{"value": 5}', "value is neither text nor null"),
        (b'{"value": {"a": 1}, "value_decoder": "json"}', "consume without --decode"),
        (b'{"value": "\\ud800"}', "half a surrogate pair"),
        (b'{"value_base64": "?"}', "value_base64 is not base64"),
        (b'{"value_base64": "\xc3\xbc"}', "value_base64 is not base64"),
        (b'{"value_base64": 5}', "value_base64 is not text"),
        (b'{"value": null, "value_base64": ""}', "one of the two"),
        (b'{"headers": 5}', "headers is not a list"),
        (b'{"headers": [5]}', "headers is not a list"),
        (b'{"headers": [{}]}', "a header's key is not text"),
        (b'{"headers": [{"key": "\\udfff"}]}', "half a surrogate pair"),
        (b'{"partition": true}', "partition is not a number"),
        (b'{"timestamp": -1}', "timestamp is not a number"),
    ],
)
def test_a_line_that_is_wrong_is_told_by_its_number(forks, line, why):
    forks.run("topic", "create", "trip.wrong", "--if-not-exists")
    done = forks.run("produce", "trip.wrong", "-J", stdin=b'{"value": "first"}\n' + line + b"\n")
    assert done.returncode == 2
    assert done.stderr.decode().startswith("penstock: line 2: "), done.stderr
    assert why in done.stderr.decode()


def test_a_record_for_a_partition_that_is_not_there_is_told_by_its_number(forks):
    forks.run("topic", "create", "trip.one")
    lines = b'{"value": "a"}\n{"partition": 0, "value": "b"}\n{"partition": 1, "value": "c"}\n'
    done = forks.run("produce", "trip.one", "-J", stdin=lines)
    said = done.stderr.decode()
    assert done.returncode == 1
    assert said.startswith("penstock: record 3 is for partition 1, and trip.one has partition 0 al")
    assert "penstock topic add-partitions trip.one --to 2" in said
    forks.run("topic", "create", "trip.three", "-p", "3")
    done = forks.run("produce", "trip.three", "-p", "7", stdin=b"a\n")
    assert b"record 1 is for partition 7, and trip.three has the partitions 0 to 2" in done.stderr


@pytest.mark.parametrize("other", ["-f%v", "-kx", "-K:", "-Z", "--null", "--encoding=hex"])
def test_what_says_the_same_twice_is_refused(forks, other):
    done = forks.run("produce", "trip.wrong", "-J", other)
    assert done.returncode == 2 and b"-J" in done.stderr


def test_the_last_records_are_records(alone, forks):
    forks.run("topic", "create", "trip.once")
    settings = {"bootstrap.servers": alone.bootstrap, "transactional.id": "trip"}
    producer = Producer(settings)
    producer.init_transactions(60)
    for number in range(8):
        producer.begin_transaction()
        producer.produce("trip.once", f"{number}".encode())
        producer.flush(60)
        producer.abort_transaction(60) if number in (5, 6) else producer.commit_transaction(60)
    for wanted in (1, 2, 3, 6, 7):
        rows = _lines(forks, "trip.once", "-o", f"-{wanted}")[1]
        kept = [row["value"] for row in rows]
        assert kept == ["0", "1", "2", "3", "4", "7"][-wanted:], wanted
    done = forks.run("consume", "trip.once", "-o", "-2", "-n", "1", "-e")
    assert done.stdout == b"4\n"
