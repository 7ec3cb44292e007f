"""`penstock job bench`: stages of a job, told from Spark's accounts and measured on a topic."""

import json

import pytest

from console.root import root
from spark_local.cause import JobError
from spark_local.engine import bench as benches
from spark_local.job import Jdbc, Job, LakeTable, ObjectStore, Place, Sink, Source

JOB = """
sql = "SELECT who, n FROM events WHERE n > 2"
[sources.events]
topic = "{source}"
schema = "who STRING, n INT, at TIMESTAMP"
[sink]
topic = "{sink}"
key = "who"
delivery = "exactly-once"
"""


def told(number, work_ms, whole_ms, records=10, rows=5):
    return {
        "batchId": number, "numInputRows": records,
        "durationMs": {"addBatch": work_ms, "triggerExecution": whole_ms},
        "observedMetrics": {"output": {"rows": rows}},
    }  # fmt: skip


def test_a_stage_is_what_the_later_run_takes_longer():
    first = told(0, 5000, 6000)
    read = [[first, told(1, 10, 20), told(2, 10, 20)], [first, told(1, 5, 20)]]
    derived = [first, told(1, 50, 70), told(2, 50, 70)]
    written = [first, told(1, 90, 100), told(2, 110, 130)]
    found = benches.result_of(read, derived, written)
    stages = {one.name: one.ms for one in found.stages}
    assert stages == {"read": 25, "derive": 75, "write": 100, "bookkeeping": 30}
    assert (found.ms, found.slowest.name, found.first_ms) == (230, "write", 6000)
    assert (found.records, found.rows, found.batches) == (20, 10, 2)


def test_runs_that_differ_by_chance_make_no_negative_stage():
    first = told(0, 1, 1)
    found = benches.result_of(
        [[first, told(1, 80, 90)]], [first, told(1, 60, 90)], [first, told(1, 50, 55)]
    )
    assert [one.ms for one in found.stages] == [60, 0, 0, 5]


TABLE = LakeTable(path="s3://b/tables", name="a.b", store=ObjectStore("b"))
FILES = Place(topic="events")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"batch": True}, "batch job"),
        ({"sources": ()}, "not all of its sources are topics"),
        ({"sink": Sink(Place(table=TABLE))}, "its sink is a table in a bucket"),
        ({"sink": Sink(Place(jdbc=Jdbc("jdbc:x", "t")))}, "its sink is a database"),
    ],
)
def test_a_job_that_cannot_be_measured_is_told_with_the_remedy(tmp_path, change, why):
    source = Source("events", FILES, "json", "who STRING")
    plain = {"sources": (source,), "sink": Sink(Place(topic="out"), key=("who",))}
    job = Job("people", tmp_path / "people.toml", **plain | change)
    with pytest.raises(JobError, match=why) as refused:
        benches.scratch_job(job, "people-bench-1", tmp_path)
    assert refused.value.remedy


def test_a_table_is_measured_in_a_folder_of_the_benchs_own(tmp_path):
    source = Source("events", FILES, "json", "who STRING")
    table = LakeTable(path="/lake", name="a.b", format="delta")
    job = Job("people", tmp_path / "people.toml", sources=(source,), sink=Sink(Place(table=table)))
    found = benches.scratch_job(job, "people-bench-1", tmp_path).sink.place.table
    assert (found.location, found.format) == (f"{tmp_path}/lake/a/b", "delta")


def names(bench):
    """Of all topics but internal ones."""
    return {one for one in bench.link.admin().list_topics().topics if not one.startswith("__")}


@pytest.mark.timeout(300)
def test_a_job_is_measured_and_leaves_nothing(bench, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("spark_local.engine.session.start_session", lambda *_, **__: bench.spark)
    monkeypatch.setattr("spark_local.engine.session.end_session", lambda _: None)
    monkeypatch.setattr(benches, "_BATCHES", 3)
    source = bench.topic("in", 2)
    bench.write(source, *({"who": "abc"[n % 3], "n": n} for n in range(300)))
    file = tmp_path / "people.toml"
    file.write_text(JOB.format(source=source, sink=f"out-{bench.mark}"))
    before = names(bench)
    code = root.main(
        ["job", "bench", str(file), "-n", "200", "-b", bench.broker.bootstrap, "-o", "json"],
        prog_name="penstock", standalone_mode=False,
    )  # fmt: skip
    said = capsys.readouterr()
    rows = json.loads(said.out)
    assert code == 0
    assert [row["stage"] for row in rows] == ["read", "derive", "write", "bookkeeping"]
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=0.01)
    assert f"The slowest stage is {max(rows, key=lambda row: row['ms'])['stage']}" in said.err
    assert "batches of 6" in said.err
    assert names(bench) == before
    groups = bench.link.admin().list_consumer_groups().result().valid
    assert not [one.group_id for one in groups if "-bench-" in one.group_id]
