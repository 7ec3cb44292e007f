"""Tables of Apache Iceberg on a real session, read back by PyIceberg: each row once, whatever
breaks around the commit; merged by key; new columns; maintained."""

import json
from collections import Counter
from pathlib import Path

import pytest

from spark_local import topic_table
from spark_local.engine import jars
from spark_local.engine.iceberg import IcebergSink

pyiceberg = pytest.importorskip("pyiceberg.table")
pytest.importorskip("pyarrow")
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
COPIES = """
sql = "SELECT id, who, at FROM events"
trigger = "0 ms"
[sources.events]
topic = "{source}"
schema = "id BIGINT, who STRING, at TIMESTAMP"
max_records = 20
[sink]
table = {{path = "{lake}", name = "db.copies", partition_by = ["days(at)"]}}
[restart]
first = "100 ms"
"""
LATEST = """
sql = '''
SELECT coalesce(id, CAST(CAST(_key AS STRING) AS BIGINT)) AS id, n, _offset AS place,
  _tombstone AS gone FROM events
'''
trigger = "0 ms"
[sources.events]
topic = "{source}"
schema = "id BIGINT, n INT"
metadata = true
tombstones = true
[sink]
mode = "update"
key = "id"
[restart]
first = "100 ms"
[sink.table]
path = "{lake}"
name = "db.latest"
latest = "place"
deleted = "gone"
maintain = "1 ms"
keep = "1 ms"
"""


@pytest.fixture(scope="module", autouse=True)
def iceberg(spark):
    if not jars.has_tables():
        pytest.skip("Apache Iceberg's jar cannot be fetched")


def opened(lake, name, namespace="db"):
    """The newest state of a table, as a reader without Spark finds it."""
    folder = lake / namespace / name / "metadata"
    newest = max(
        folder.glob("v*.metadata.json"),
        key=lambda one: int(one.name.removeprefix("v").split(".")[0]),
    )
    return pyiceberg.StaticTable.from_metadata(str(newest))


def read(lake, name, namespace="db"):
    return opened(lake, name, namespace).scan().to_arrow().to_pylist()


def has(lake, name, count, namespace="db"):
    """True if the table is there with so many rows."""
    made = any((lake / namespace / name / "metadata").glob("v*.metadata.json"))
    return made and len(read(lake, name, namespace)) == count


def event(number):
    return {
        "id": number,
        "who": "abc"[number % 3],
        "at": f"2013-01-0{1 + number % 5}T00:00:00.123456Z",
    }


def stop(bench, place):
    place.wish_for("stopped")
    return bench.state(place, "stopped")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_that_breaks_around_its_commit_is_in_the_table_once(bench, monkeypatch, when):
    source, lake = bench.topic("in"), bench.path / "lake"
    whole, broken = IcebergSink._commit, []

    def commit(self, write, marks):
        breaks = len(broken) < 2
        if breaks and when == "before":
            broken.append(marks)
            raise OSError("the host went away")
        whole(self, write, marks)
        if breaks:
            broken.append(marks)
            raise OSError("the host went away")

    monkeypatch.setattr(IcebergSink, "_commit", commit)
    bench.write(source, *map(event, range(50)))
    place = bench.add(f"copies-{bench.mark}", COPIES.format(source=source, lake=lake))
    bench.until(place, lambda told: len(broken) == 2 and told.get("state") == "running")
    bench.write(source, *map(event, range(50, 70)))
    bench.until(place, lambda told: has(lake, "copies", 70))
    stop(bench, place)
    rows = read(lake, "copies")
    assert Counter(row["id"] for row in rows) == Counter(range(70))
    assert {(r["id"], r["who"], r["at"].isoformat()) for r in rows} == {
        (e["id"], e["who"], e["at"].replace("Z", "+00:00")) for e in map(event, range(70))
    }
    assert [one.name for one in opened(lake, "copies").spec().fields] == ["at_day"]


def test_rows_are_merged_by_key_and_tombstones_delete_while_it_is_maintained(bench):
    source, lake = bench.topic("in"), bench.path / "lake"
    place = bench.add(f"latest-{bench.mark}", LATEST.format(source=source, lake=lake))
    want = {}
    for turn in range(8):
        for key in range(4):
            value = None if (turn + key) % 3 == 2 else {"id": key, "n": 10 * turn + key}
            bench.write(source, value, key=str(key))
            bench.write(source, value, key=str(key))
            want[key] = value and value["n"]
        bench.read_rows(place, 8 * (turn + 1))
    stop(bench, place)
    rows = read(lake, "latest")
    assert {row["id"]: row["n"] for row in rows} == {k: n for k, n in want.items() if n is not None}
    assert len(rows) == len({row["id"] for row in rows})
    assert "gone" not in rows[0]
    assert len(opened(lake, "latest").metadata.snapshots) <= 3
    assert len(list((lake / "db/latest/data").glob("*.parquet"))) < 8


def test_a_new_column_is_added_and_any_other_change_stops_the_job(bench):
    source, lake = bench.topic("in"), bench.path / "lake"
    text, name = COPIES.format(source=source, lake=lake), f"grows-{bench.mark}"
    bench.write(source, event(1))
    place = bench.add(name, text)
    bench.read_rows(place, 1)
    stop(bench, place)  # or it may take the next event itself
    bench.write(source, event(2))
    place = bench.add(name, text.replace("who, at FROM", "who, at, id + 1 AS next FROM"))
    bench.until(place, lambda told: has(lake, "copies", 2))
    stop(bench, place)
    assert [(r["id"], r["next"]) for r in sorted(read(lake, "copies"), key=lambda r: r["id"])] == [
        (1, None), (2, 3),
    ]  # fmt: skip
    place = bench.add(name, text.replace("SELECT id,", "SELECT CAST(id AS STRING) AS id,"))
    told = bench.state(place, "failed")
    assert "column 'id' of table db.copies is long, and the job derives string" in json.dumps(told)
    place = bench.add(name, text)
    missing = "has a column 'next', and the job derives none"
    bench.until(place, lambda told: missing in json.dumps(told))


def test_the_job_of_a_topic_keeps_every_record_as_it_is(bench):
    source, lake = bench.topic("in"), bench.path / "lake"
    bench.writer.produce(source, b"\xff\x00", key=b"k", headers=[("h", b"1")], timestamp=1_500)
    bench.writer.produce(source, None, key=b"k", timestamp=2_500)
    assert bench.writer.flush(60) == 0
    wanted = topic_table.Wanted(source, str(lake), "db.raw")
    place = bench.add(f"raw-{bench.mark}", topic_table.job_text(wanted))
    bench.until(place, lambda told: has(lake, "raw", 2))
    stop(bench, place)
    first, second = sorted(read(lake, "raw"), key=lambda row: row["offset"])
    assert (first["key"], first["value"], first["partition"]) == (b"k", b"\xff\x00", 0)
    assert first["headers"] == [{"key": "h", "value": b"1"}]
    assert first["timestamp"].timestamp() == 1.5
    assert (second["value"], second["headers"], second["offset"]) == (None, [], 1)


def test_the_example_of_the_documentation_runs(bench):
    page = Path(__file__).parents[2] / "docs" / "job-tables.md"
    text = page.read_text().split("```toml\n")[1].split("```")[0]
    source, lake = bench.topic("orders"), bench.path / "files" / "lake"
    text = text.replace('topic = "orders"', f'topic = "{source}"')
    text = text.replace("[sources", 'trigger = "0 ms"\n[sources', 1)
    for key, amount in ((1, 5), (2, 6), (2, 7), (1, None)):
        at = "2013-01-01T00:00:00Z"
        value = amount and {"id": key, "amount": amount, "at": at}
        bench.write(source, value, key=str(key))
    place = bench.add(f"orders-{bench.mark}", text)
    bench.until(place, lambda told: has(lake, "orders", 1, "shop"))
    stop(bench, place)
    table = read(lake, "orders", "shop")
    assert [(row["id"], row["amount"]) for row in table] == [(2, 7)]
