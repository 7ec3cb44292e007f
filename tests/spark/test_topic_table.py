"""The job file that `penstock topic table` writes, and the keys of [sink.table]. No Spark here."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from console.commands.topic.table import command
from spark_local.cause import JobError
from spark_local.engine import stores
from spark_local.job import ObjectStore
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
        ("", 'format = "hudi"', "choose one of iceberg, delta"),
        ("", 'format = "delta"\npartition_by = "days(at)"', "by columns alone"),
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
    with pytest.raises(JobFileError, match="only folders and buckets are served"):
        parse(text.replace("[sink.table]", '[sink.table]\npath = "gs://b"'), Path("/jobs/x.toml"))


S3 = """
[sink.table.s3]
endpoint = "http://store:9000"
access_key = "${file:keys:ak}"
secret_key = "${file:/etc/keys:sk}"
"""


def in_bucket(old="", new=""):
    text = (JOB.format(sink="", table="") + S3).replace('"lake"', '"s3://lakes/mine/"')
    return parse(text.replace(old, new, 1), Path("/jobs/x.toml")).sink.place.table


def test_a_table_in_a_bucket_names_the_file_of_its_keys():
    table = in_bucket()
    assert table.location == "s3://lakes/mine/db/events"
    assert (table.store.bucket, table.store.endpoint) == ("lakes", "http://store:9000")
    assert table.store.keys == ("/jobs/keys:ak", "/etc/keys:sk")
    assert in_bucket(S3).store.keys is None, "AWS's own tools find them"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"s3://lakes/mine/"', '"lake"', 'write path = "s3://bucket/lake" too'),
        ('access_key = "${file:keys:ak}"', "", "[sink.table.s3] access_key: it is missing"),
        ("http://store:9000", "store:9000", "no address of a store"),
        ("${file:/etc/keys:sk}", "hunter2", "a job file has no secrets"),
    ],
)
def test_a_bucket_that_cannot_be_reached_so_is_told(old, new, told):
    with pytest.raises(JobFileError) as wrong:
        in_bucket(old, new)
    assert told in str(wrong.value)
    assert "hunter2" not in str(wrong.value)


def test_keys_of_a_bucket_are_lines_of_a_file(tmp_path):
    (tmp_path / "keys").write_text("ak = one\nsk=two=2\n")
    assert stores.secret_of(f"{tmp_path}/keys:sk") == "two=2"
    with pytest.raises(JobError, match="has no line xx="):
        stores.secret_of(f"{tmp_path}/keys:xx")
    with pytest.raises(JobError, match="cannot be read"):
        stores.secret_of(f"{tmp_path}/none:sk")


def test_settings_of_a_bucket_come_from_the_file_or_from_awss_variables():
    named = stores.store_settings(ObjectStore("b", "http://store:9000"), {"AWS_REGION": "eu"})
    assert named == {
        "endpoint": "http://store:9000", "endpoint.region": "eu", "connection.ssl.enabled": "false",
    }  # fmt: skip
    assert stores.store_settings(ObjectStore("b"), {}) == {}


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


def test_a_table_of_delta_lake_has_a_column_of_days(run, tmp_path):
    assert run("orders", "lake", "--table-format", "delta").exception is None
    job = load(tmp_path / "orders-table.toml")
    table = job.sink.place.table
    assert (table.format, table.partition_by) == ("delta", ("day",))
    assert job.sql.rstrip().endswith("CAST(_timestamp AS DATE) AS day\nFROM records")


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
