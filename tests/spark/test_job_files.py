"""What a job file may say, and every kind of mistake in one. No Spark here."""

import subprocess
import sys
from pathlib import Path

import pytest

from spark_local import ddl
from spark_local.job import Files
from spark_local.jobfile import JobFileError, load, parse

GOOD = """
name = "delays"
sql = "SELECT * FROM flights JOIN airlines USING (carrier)"
trigger = "1 s"
[sources.flights]
topic = "flights"
schema = "carrier STRING, at TIMESTAMP"
event_time = "at"
watermark = "2 hours"
start = "2013-01-01T00:00:00Z"
[tables.airlines]
topic = "airlines"
key = "carrier"
schema = "carrier STRING, name STRING"
[sink]
topic = "delays"
key = ["carrier"]
mode = "update"
partitions = 2
config = {cleanup.policy = "compact", retention.ms = 1000}
[restart]
first = "2 s"
attempts = 3
[spark]
spark.sql.shuffle.partitions = 3
"""


def mistakes(text, path="delays.toml"):
    with pytest.raises(JobFileError) as wrong:
        parse(text, Path(path))
    return [str(one) for one in wrong.value.mistakes]


def test_a_job_file_means_what_it_says():
    job = parse(GOOD, Path("/jobs/x.toml"))
    (source,), (table,) = job.sources, job.tables
    assert (job.name, job.trigger_ms, job.once) == ("delays", 1000, False)
    assert (source.watermark_ms, source.start, source.format) == (7200000, "1356998400000", "json")
    assert (table.key, table.refresh_ms) == (("carrier",), 30_000)
    assert job.sink.config == {"cleanup.policy": "compact", "retention.ms": "1000"}
    assert (job.restart.first_ms, job.restart.longest_ms, job.restart.attempts) == (2000, 60000, 3)
    assert job.spark == {"spark.sql.shuffle.partitions": "3"}
    assert job.dead_letters == "delays.dlq"
    assert job.inputs == [source, table]


def test_options_of_values_are_those_that_change_how_they_are_read():
    text = GOOD.replace("[tables", 'options = {timestampFormat = "yyyy/MM/dd"}\n[tables', 1)
    job = parse(text.replace('watermark = "2 hours"', 'watermark = "2 hours"\nmax_ahead = "1 h"'),
                Path("/jobs/x.toml"))  # fmt: skip
    assert job.sources[0].options == {"timestampFormat": "yyyy/MM/dd"}
    assert (job.sources[0].max_ahead_ms, job.tables[0].options) == (3_600_000, {})
    (mode,) = mistakes(text.replace("timestampFormat =", "mode ="))
    assert "options.mode" in mode and "is a dead letter" in mode
    (near,) = mistakes(text.replace("timestampFormat =", "timestampformat ="))
    assert "did you mean timestampFormat?" in near
    (alone,) = mistakes(GOOD.replace('watermark = "2 hours"', 'max_ahead = "1 h"'))
    assert "[sources.flights] max_ahead" in alone


def test_a_topic_may_get_its_rows_exactly_once(tmp_path):
    text = GOOD.replace("[sink]", f'[sink]\n{ONCE}\ntransaction_timeout = "2 minutes"')
    assert parse(text, tmp_path / "x.toml").sink.transaction_timeout_ms == 120_000
    usual = parse(text.replace('transaction_timeout = "2 minutes"', ""), tmp_path / "x.toml").sink
    assert (usual.delivery, usual.transaction_timeout_ms) == ("exactly-once", 300_000)
    assert parse(GOOD, tmp_path / "x.toml").sink.delivery == "at-least-once"
    told = mistakes(text.replace('trigger = "1 s"', 'master = "yarn"'))
    assert "workers of a cluster cannot share a transaction" in told[0]
    told = mistakes(text.replace('mode = "update"', "").replace('trigger = "1 s"', "batch = true"))
    assert ["[sink] delivery" in one and 'trigger = "once"' in one for one in told].count(True) == 1


def test_paths_are_relative_to_the_file(tmp_path):
    (tmp_path / "load.py").write_text("def derive(spark, sources): ...\n")
    (tmp_path / "load.toml").write_text(
        'python = "load.py:derive"\nbatch = true\n'
        '[sources.rows]\nfile = {path = "in", format = "parquet"}\n[sink]\ntopic = "t"\n'
    )
    job = load(tmp_path / "load.toml")
    assert job.name == "load"
    assert job.sources[0].place.file == Files(str(tmp_path / "in"), "parquet")
    assert job.files == [tmp_path / "load.toml", tmp_path / "load.py"]


ONCE = 'delivery = "exactly-once"'


# What is changed in GOOD → what the one mistake must say.
def test_an_event_time_is_a_column_or_an_expression_with_a_name():
    (source,) = parse(GOOD, Path("/jobs/x.toml")).sources
    assert (source.event_time, source.event_expression) == ("at", None)
    cast = GOOD.replace('event_time = "at"', 'event_time = "cast(at AS TIMESTAMP) as  b"')
    (source,) = parse(cast, Path("/jobs/x.toml")).sources
    assert (source.event_time, source.event_expression) == ("b", "cast(at AS TIMESTAMP)")


WRONG = [
    ('trigger = "1 s"', 'trigger = "1 fortnight"', 'trigger = "1 fortnight": the unit is unknown'),
    ('trigger = "1 s"', "trigger = 5", "trigger = 5: it is no length of time"),
    ('trigger = "1 s"', 'triger = "1 s"', 'triger = "1 s": there is no such key; did you mean'),
    ('trigger = "1 s"', 'master = "mesos://x"', "Spark knows no such master"),
    ('trigger = "1 s"', 'bootstrap = "x"', "it is no list of HOST:PORT"),
    ('trigger = "1 s"', 'python = "x.py:f"', "there is no such file"),
    ('trigger = "1 s"', 'python = "../x.py:f"', "it lies in another folder"),
    ('trigger = "1 s"', 'python = "x:f"', "it is no file with a function"),
    ('trigger = "1 s"', "batch = 1", "it is neither true nor false"),
    ('name = "delays"', 'name = "De lays"', "it is no name of a job"),
    ('name = "delays"', "name = 7", "it is no name of a job"),
    ('sql = "SELECT', 'sql = "" # "SELECT', "it must be a text"),
    ("FROM flights", "FROM flight", "it does not use flights"),
    ("[sources.flights]\n", "[sources.fli-ghts]\n", "SQL cannot use it"),
    ('topic = "flights"', 'topic = "flig hts"', "it is no name of a topic"),
    ('topic = "flights"', 'file = {path = "x"}\ntopic = "f"', "there is topic too"),
    ('topic = "flights"', 'topic = "flights"\nformat = "jsn"', "did you mean json?"),
    ('topic = "flights"', 'topic = "flights"\nformat = "string"', "a string has one column, value"),
    ("at TIMESTAMP", "at TIMESTAMPP", "there is no type 'TIMESTAMPP'"),
    ("at TIMESTAMP", "at", "'at' is no column with a type"),
    ("at TIMESTAMP", "at TIMESTAMP, at INT", "the column 'at' is there twice"),
    ('event_time = "at"', 'event_time = "on"', "the schema has no column 'on'; it has carrier, at"),
    ('event_time = "at"\n', "", "no column says when an event was; write event_time too"),
    ('event_time = "at"', 'event_time = "at + 1"', "an expression needs a name; write event_time"),
    ('event_time = "at"', 'event_time = "x AS at"', "the schema has a column 'at'; write another"),
    ('start = "2013', 'start = "x2013', "it is no place to begin"),
    ('start = "2013-01-01T00:00:00Z"', "max_records = 0", "it is no whole number of the range"),
    ('start = "2013-01-01T00:00:00Z"', "tasks = 0", "it is no whole number of the range"),
    ('start = "2013-01-01T00:00:00Z"', 'on_loss = "ignore"', "choose one of stop, continue"),
    ('key = "carrier"', 'key = "code"', "the schema has no column 'code'"),
    ('key = "carrier"\n', "", "a table of a topic has a key"),
    ('key = ["carrier"]', 'key = ["carrier", "carrier"]', "a column is named twice"),
    ('key = ["carrier"]', "key = [1]", "it must name one column or several"),
    ('mode = "update"', 'mode = "upsert"', "there is no such choice"),
    ('mode = "update"', 'delivery = "once"', "choose one of at-least-once, exactly-once"),
    ('mode = "update"', 'transaction_timeout = "9 min"', "no transaction is made; write delivery"),
    ('mode = "update"', f'{ONCE}\ntransaction_timeout = "10 ms"', "it is too short; write 1000 ms"),
    ('mode = "update"', f'{ONCE}\ntransaction_timeout = "25 days"', 'too long; write "24 days"'),
    ('[sink]\ntopic = "delays"', f'[sink]\n{ONCE}\nfile = {{path = "x"}}', "files have no trans"),
    ('[sink]\ntopic = "delays"', f'[sink]\n{ONCE}\njdbc = {{url = "jdbc:x"}}', "a database takes"),
    ("partitions = 2", "partitions = true", "it is no whole number of the range"),
    ("retention.ms = 1000", "retention.ms = [1]", "it is no text and no number"),
    ('[sink]\ntopic = "delays"', '[sink]\ntopic = "flights"', "the job would read what it writes"),
    ('[sink]\ntopic = "delays"', "[sink]", "nothing says where"),
    ('first = "2 s"', 'first = "2 days"', "it is shorter than the first wait"),
    ("spark.sql.shuffle.partitions", "spark.driver.memory", "it belongs to all jobs together"),
]


@pytest.mark.parametrize(("old", "new", "said"), WRONG, ids=range(len(WRONG)))
def test_a_mistake_names_file_key_value_and_remedy(old, new, said):
    assert GOOD.count(old) >= 1
    told = mistakes(GOOD.replace(old, new, 1))
    assert any(said in one for one in told), told
    for one in told:
        assert one.startswith("delays.toml: ")
        assert "; " in one
        assert "\n" not in one


def test_all_mistakes_come_at_once():
    text = GOOD.replace("2 hours", "2 ours").replace('"update"', '"updat"').replace("= 3", "= -3")
    assert len(mistakes(text)) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["sources: the job reads nothing", "[sink]", "sql: the job derives nothing"]),
        ("name = ", ["it is not TOML"]),
        ("sources = 1\nsink = 2", ["sources = 1: it must be a table", "sink = 2: it must be"]),
        ("[sources]\nx = 1\n[sink]\ntopic = 't'", ["[sources] x = 1: it must be a table"]),
    ],
)
def test_what_is_no_job_at_all(text, said):
    told = "\n".join(mistakes(text))
    for one in said:
        assert one in told


def test_sinks_and_sources_that_do_not_fit_together():
    file = '[sink]\nfile = {path = "x", format = "json"}\n'
    base = 'sql = "select * from a"\n[sources.a]\ntopic = "a"\nschema = "x INT"\n'
    assert parse(base + file, Path("a.toml")).sink.place.text.endswith("x")
    assert "rows are only added" in mistakes(base + file + 'mode = "update"')[0]
    assert "only topics have it" in mistakes(base + file + 'key = "x"')[0]
    jdbc = 'sql = "select * from a"\n[sources.a]\njdbc = {url = "jdbc:x", table = "t"}\n'
    assert "a database is no stream" in mistakes(jdbc + file)[0]
    assert (
        "it is no JDBC address" in mistakes("batch = true\n" + jdbc.replace("jdbc:", "") + file)[0]
    )
    plain = 'sql = "select * from a"\n[sources.a]\nfile = {path = "x"}\n'
    assert "it is missing" in mistakes(plain + file)[0]
    compact = '[sink]\ntopic = "t"\nconfig = {cleanup.policy = "compact"}\n'
    assert "a compacted topic needs keys" in mistakes(base + compact)[0]
    late = base.replace('topic = "a"', 'topic = "a"\nstart = "latest"')
    assert "cannot begin at the end" in mistakes("batch = true\n" + late + file)[0]
    once = "batch = true\ntrigger = 'once'\n"
    assert "a batch job runs once" in mistakes(once + base + file)[0]


def test_a_table_is_a_source_or_a_lookup_and_never_what_the_job_writes():
    text = """
sql = "SELECT a.id FROM a JOIN b USING (id)"
[sources.a]
table = {path = "lake", name = "db.a", format = "delta"}
on_change = "skip"
[tables.b]
table = {path = "lake", name = "db.b"}
[sink.table]
path = "lake"
name = "db.c"
"""
    job = parse(text, Path("/jobs/x.toml"))
    table = job.sources[0].place.table
    assert (table.location, table.format) == ("/jobs/lake/db/a", "delta")
    assert (job.sources[0].on_change, job.tables[0].place.table.format) == ("skip", "iceberg")
    for old, new, told in (
        ("db.c", "db.a", "would read what it writes"),
        ('"db.b"}', '"db.b", keep = "1 day"}', "there is no such key"),
        ('on_change = "skip"', 'schema = "id INT"', "a table has one itself"),
        ('on_change = "skip"', "max_records = 3", "only topics have it"),
        (
            'table = {path = "lake", name = "db.a", format = "delta"}',
            'topic = "t"\nschema = "id INT"',
            "only rows of a table change",
        ),
    ):
        with pytest.raises(JobFileError, match=told):
            parse(text.replace(old, new), Path("/jobs/x.toml"))


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(JobFileError, match="cannot be read: No such file"):
        load(tmp_path / "none.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(JobFileError, match="not UTF-8"):
        load(tmp_path / "x.toml")
    (tmp_path / "Big Job.toml").write_text(GOOD.replace('name = "delays"\n', ""))
    with pytest.raises(JobFileError, match="the file's name 'Big Job' is no name of a job"):
        load(tmp_path / "Big Job.toml")


def test_columns_of_every_shape():
    text = "a STRING, b: INT NOT NULL, `c d` ARRAY<STRUCT<e: MAP<STRING, DECIMAL(10, 2)>>>"
    assert list(ddl.columns(f"{text}, f DOUBLE COMMENT 'x, y'")) == ["a", "b", "c d", "f"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a STRUCT<b INT", "a bracket is not closed"),
        ("a INT>", "a bracket closes that was not opened"),
        ("a MAP<INT>", "there is no type 'MAP<INT>'"),
        ("a ARRAY<FOO>", "there is no type 'FOO'"),
        ("", "'' is no column with a type"),
    ],
)
def test_columns_that_are_none(text, said):
    with pytest.raises(ValueError, match=said) as told:
        ddl.columns(text)
    assert len(told.value.args) == 2


def test_checking_a_file_loads_neither_spark_nor_the_appliance():
    code = (
        "import sys, spark_local.jobfile, spark_local.folder, spark_local.board\n"
        "bad = [n for n in sys.modules if n.split('.')[0] in ('pyspark', 'py4j', 'appliance')]\n"
        "assert not bad, bad\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, timeout=60)


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parents[2] / "spark_local" / "jobs").glob("*.toml")), ids=str
)
def test_the_jobs_that_come_along_are_right(file):
    assert load(file).description
