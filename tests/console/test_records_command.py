"""`penstock consume` with places, ranges and filters, as scripts use it."""

import csv
import io
import json

import pytest

from console.model.asking.link import Link
from console.model.records import reading
from console.model.records.seeking import places
from console.model.topics.topics import trim

MOST = (1 << 63) - 1


@pytest.fixture(scope="module")
def topic(run):
    run("topic", "create", "filtered", "-p", "2")
    for partition in (0, 1):
        lines = "".join(f'k{n},{{"n": {n}, "big": {MOST - n}}}\n' for n in range(10))
        run("produce", "filtered", "-p", str(partition), "-f", "%k,%v\\n", stdin=lines)
    return "filtered"


def test_ranges_and_filters_say_what_is_printed(run, topic):
    def numbers(*words):
        done = run("consume", topic, "-e", *words)
        return sorted(json.loads(line)["n"] for line in done.stdout.splitlines())

    assert numbers("-o", "0:2..5 1:-2") == [2, 3, 4, 8, 9]
    assert numbers("--filter", f"$.big = {MOST - 3} partition:1") == [3]
    assert numbers("--filter", "key:/^k[78]$/ !$.n = 8") == [7, 7]
    assert numbers("-p", "0", "-o", "..2") == [0, 1]
    assert numbers("-n", "1", "--filter", "$.n >= 4 partition:0") == [4]


def test_csv_loses_nothing(run, topic):
    run("produce", topic, "-k", "bin", "-p", "0", stdin='a "quoted", one\n')
    done = run("consume", topic, "-e", "--csv", "--filter", "key:bin")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["key"], row["key_form"], row["value_form"]) == ("bin", "text", "text")
    assert row["value"] == 'a "quoted", one'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-o", "5 6"), "'6' is not a place to look at"),
        (("--filter", "bob /(/"), "the filter, character 5: not an expression of RE2"),
        (("-f", "%v", "--csv"), "one of them"),
        (("-g", "g", "--filter", "x"), "the group's offsets say what is read"),
    ],
)  # fmt: skip
def test_what_is_no_place_or_filter_is_refused(run, topic, words, told):
    assert told in run("consume", topic, "-e", *words, code=2).stderr


@pytest.mark.parametrize(
    ("words", "cut", "left"),
    [
        (("-o", "start"), 4, [4, 5, 0, 1]),
        (("-o", "0:2..5 1:0"), 3, [3, 4, 0, 1]),
        (("-o", "..2"), 5, [0, 1]),
    ],
)
def test_what_goes_away_before_it_is_read_is_passed_over(
    run, appliance, monkeypatch, words, cut, left
):
    """Retention is quicker than who has looked where a partition begins."""
    name = f"away.{cut}"
    run("topic", "create", name, "-p", "2")
    for partition, count in ((0, 6), (1, 2)):
        lines = "".join(f"{n}\n" for n in range(count))
        run("produce", name, "-p", str(partition), stdin=lines)

    def looked(asked, partitions, seek):
        found = places(asked, partitions, seek)
        trim(Link(appliance.bootstrap, {}, 30), name, {0: cut})
        return found

    monkeypatch.setattr(reading, "places", looked)
    done = run("consume", name, "-e", *words, "-f", "%p %v\\n")
    shown = sorted(done.stdout.splitlines())
    assert shown == sorted(f"{int(at >= len(left) - 2)} {n}" for at, n in enumerate(left))
    begins = 2 if "0:" in words[1] else 0
    said = f"{name} partition 0: offsets {begins} to {cut - 1} went away before they were read"
    assert f"{said}; on at {cut}\n" in done.stderr
