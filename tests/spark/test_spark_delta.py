"""Tables of Delta Lake on a real session, read back by the deltalake package: each row once,
whatever breaks around the commit; merged by key; new columns; maintained."""

import json
from collections import Counter

import pytest
from test_spark_tables import COPIES, LATEST, event, stop

from spark_local.engine import jars
from spark_local.engine.delta import DeltaSink

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyarrow")
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
COPIES = COPIES.replace('partition_by = ["days(at)"]', 'format = "delta", partition_by = "who"')
LATEST = LATEST.replace("[sink.table]", '[sink.table]\nformat = "delta"')


@pytest.fixture(scope="module", autouse=True)
def delta(spark):
    if not jars.has_delta():
        pytest.skip("Delta Lake's jars cannot be fetched")


def opened(lake, name):
    """The newest state of a table, as a reader without Spark finds it."""
    return deltalake.DeltaTable(str(lake / "db" / name))


def read(lake, name):
    return opened(lake, name).to_pyarrow_table().to_pylist()


def has(lake, name, count):
    """True if the table is there with so many rows."""
    made = (lake / "db" / name / "_delta_log" / f"{0:020}.json").exists()
    return made and len(read(lake, name)) == count


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_that_breaks_around_its_commit_is_in_the_table_once(bench, monkeypatch, when):
    source, lake = bench.topic("in"), bench.path / "lake"
    whole, broken = DeltaSink._commit, []

    def commit(self, write, mark):
        breaks = len(broken) < 2
        if breaks and when == "before":
            broken.append(mark)
            raise OSError("the host went away")
        whole(self, write, mark)
        if breaks:
            broken.append(mark)
            raise OSError("the host went away")

    monkeypatch.setattr(DeltaSink, "_commit", commit)
    bench.write(source, *map(event, range(50)))
    place = bench.add(f"copies-{bench.mark}", COPIES.format(source=source, lake=lake))
    # Three attempts, each with the first commit of a table: several seconds of a quiet processor.
    bench.until(place, lambda told: len(broken) == 2 and told.get("state") == "running", 300)
    bench.write(source, *map(event, range(50, 70)))
    bench.until(place, lambda told: has(lake, "copies", 70))
    stop(bench, place)
    rows = read(lake, "copies")
    assert Counter(row["id"] for row in rows) == Counter(range(70))
    assert {(r["id"], r["who"], r["at"].isoformat()) for r in rows} == {
        (e["id"], e["who"], e["at"].replace("Z", "+00:00")) for e in map(event, range(70))
    }
    assert opened(lake, "copies").metadata().partition_columns == ["who"]


def test_rows_are_merged_by_key_and_tombstones_delete_while_it_is_maintained(bench):
    source, lake = bench.topic("in"), bench.path / "lake"
    place = bench.add(f"latest-{bench.mark}", LATEST.format(source=source, lake=lake))
    want = {}
    for turn in range(4):
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
    there = len(list((lake / "db/latest").glob("*.parquet")))
    assert there <= len(opened(lake, "latest").file_uris()) + 2, "vacuumed but for the last batch"


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
