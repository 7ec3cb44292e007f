"""The job file that `penstock topic table` writes, and the keys of [sink.table]. No Spark here."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from console.commands.topic.table import command
from spark_local.jobfile import JobFileError, load, parse
from spark_local.topic_table import job_name, table_name

JOB = """
sql = "SELECT id, at FROM events"
[sources.events]
topic = "events"
schema = "id BIGINT, at TIMESTAMP"
[sink]
{sink}
[sink.table]
path = "lake"
name = "db.events"
{table}
"""


def mistakes(sink="", table=""):
    with pytest.raises(JobFileError) as wrong:
        parse(JOB.format(sink=sink, table=table), Path("/jobs/x.toml"))
    return [str(one) for one in wrong.value.mistakes]


def test_a_table_is_appended_to_every_ten_seconds_unless_told():
    job = parse(JOB.format(sink="", table='partition_by = ["days(at)", "bucket(8, id)"]'),
                Path("/jobs/x.toml"))  # fmt: skip
    table = job.sink.place.table
    assert (table.path, table.name) == ("/jobs/lake", "db.events")
    assert table.partition_by == ("days(at)", "bucket(8, id)")
    assert (job.trigger_ms, job.sink.mode, job.sink.is_transactional) == (10_000, "append", False)


@pytest.mark.parametrize(
    ("sink", "table", "told"),
    [
        ('mode = "update"', "", "[sink] key"),
        ('mode = "complete"\nkey = "id"', "", "or merged by key"),
        ('key = "id"', "", 'write mode = "update" too'),
        ('delivery = "at-least-once"', "", "by its own commit"),
        ("partitions = 3", "", "only topics have it"),
        ('topic = "t"', "", "there is table too"),
        ("", 'latest = "at"', "table.latest"),
        ("", 'partition_by = "day(at); DROP"', "[sink.table] partition_by"),
        ("", 'keep = "soon"', "[sink.table] keep"),
        ("", "compact = true", "there is no such key"),
    ],
)
def test_a_mistake_names_the_key_and_what_helps(sink, table, told):
    (said,) = mistakes(sink, table)
    assert told in said


def test_a_table_needs_a_folder_and_a_name():
    text = JOB.format(sink="", table="").replace('path = "lake"\nname = "db.events"', "")
    with pytest.raises(JobFileError) as wrong:
        parse(text, Path("/jobs/x.toml"))
    assert [str(one).split(":")[1].strip() for one in wrong.value.mistakes] == [
        "[sink.table] path", "[sink.table] name",
    ]  # fmt: skip
    with pytest.raises(JobFileError, match="only folders are served"):
        parse(text.replace("[sink.table]", '[sink.table]\npath = "s3://b"'), Path("/jobs/x.toml"))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(command, list(words), standalone_mode=False)


def test_a_topic_becomes_a_job_of_raw_columns(run, tmp_path):
    done = run("Orders.eu", "lake")
    assert done.exception is None
    job = load(tmp_path / "orders_eu-table.toml")
    (source,) = job.sources
    assert (source.place.topic, source.format) == ("Orders.eu", "binary")
    assert (source.headers, source.tombstones, source.metadata) == (True, True, True)
    assert job.sink.place.table.name == "kafka.orders_eu"
    assert job.sink.place.table.path == str(tmp_path / "lake")
    assert job.sink.place.table.partition_by == ("days(timestamp)",)


def test_with_a_key_it_is_merged_and_tombstones_delete(run, tmp_path):
    done = run("people", "lake", "--schema", "id BIGINT, name STRING", "--key", "id")
    assert done.exception is None
    job = load(tmp_path / "people-table.toml")
    assert (job.sink.mode, job.sink.key) == ("update", ("id",))
    assert (job.sink.place.table.latest, job.sink.place.table.deleted) == (
        "record_offset", "deleted",
    )  # fmt: skip
    again = run("people", "lake", "--key", "id")
    assert "the schema has no column 'id'" in str(again.exception)


def test_names_of_topics_become_names_of_jobs_and_tables():
    assert (job_name("A.b-c"), table_name("A.b-c")) == ("a_b-c-table", "kafka.a_b_c")
    assert (job_name("..."), table_name("9x")) == ("topic-table", "kafka._9x")
