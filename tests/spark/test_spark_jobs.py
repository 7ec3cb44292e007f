"""Jobs as people run them: a real session, a real appliance, wishes in a folder."""

import json

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

# py4j leaves its sockets to the garbage collector.
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
COUNTS = """
sql = "SELECT who, count(*) AS n FROM events GROUP BY who"
[sources.events]
topic = "{source}"
schema = "who STRING, at TIMESTAMP"
event_time = "at"
[sink]
topic = "{sink}"
key = "who"
mode = "update"
"""


def event(who, minute=0):
    return {"who": who, "at": f"2013-01-01T10:{minute:02d}:00Z"}


def test_a_job_derives_goes_on_where_it_was_and_shows_its_position(bench):
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    bench.write(source, event("a"), event("b"), event("a"))
    place = bench.add("counts", COUNTS.format(source=source, sink=sink))
    bench.read_rows(place, 3)
    place.wish_for("stopped")
    bench.state(place, "stopped")
    assert bench.rows(sink) == {"a": {"who": "a", "n": 2}, "b": {"who": "b", "n": 1}}
    written = len(bench.read(sink))

    bench.write(source, event("a"))
    place.wish_for("running")
    bench.read_rows(place, 4)
    place.wish_for("stopped")
    told = bench.state(place, "stopped")
    assert told["progress"]["rows_per_s"] == 0
    assert bench.rows(sink)["a"] == {"who": "a", "n": 3}
    assert len(bench.read(sink)) == written + 1  # a clean stop repeats nothing
    assert told["progress"]["lag_records"] == 0
    admin = bench.link.admin()
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("counts")])
    assert asked["counts"].result(30).topic_partitions == [TopicPartition(source, 0, 4)]
    told = bench.folder.find_job("counts").remembers()
    assert set(told) == {"checkpoint", "dead.json", "topics.json"}


POISON = """
sql = "SELECT who, at FROM events"
[sources.events]
topic = "{source}"
schema = "who STRING, n INT, at TIMESTAMP"
event_time = "at"
[sink]
topic = "{sink}"
key = "who"
"""


def test_bad_records_go_to_the_dead_letter_topic_and_are_counted(bench):
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    bad = [b"{nope", b'{"who": "x", "n": "many", "at": "2013-01-01T10:00:00Z"}', b'{"who": "y"}']
    z = json.dumps(event("z")).encode()
    bad += [z + b" and more", z + z, z.replace(b"who", b"Who"), b"\xef\xbb\xbf" + z]
    bench.write(source, event("a"), *bad, None, event("b}{"), key="k")
    place = bench.add(f"poison-{bench.mark}", POISON.format(source=source, sink=sink))
    told = bench.read_rows(place, 10)
    told = bench.until(place, lambda told: told["progress"].get("dead_letters") == 7)
    assert told["progress"]["tombstones"] == 1
    assert set(bench.rows(sink)) == {"a", "b}{"}
    letters = bench.read(f"poison-{bench.mark}.dlq")
    assert [letter.value() for letter in letters] == bad
    headers = [dict(letter.headers()) for letter in letters]
    assert [h["offset"] for h in headers] == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]
    assert {(h["topic"], h["partition"]) for h in headers} == {(source.encode(), b"0")}
    assert [h["error"].decode().split(":")[0] for h in headers] == [
        "it is not JSON",
        "it does not fit the schema",
        "it has no at, the event time",
        "it is not JSON",
        "it is not JSON",
        "it has no who",
        "it begins with a byte order mark, which JSON does not",
    ]


TABLE = """
sql = "SELECT who, name FROM events JOIN names USING (who)"
[sources.events]
topic = "{source}"
schema = "who STRING"
[tables.names]
topic = "{table}"
key = "who"
schema = "who STRING, name STRING"
refresh = "200 ms"
[sink]
topic = "{sink}"
key = "who"
"""


def test_a_table_changes_while_the_job_runs(bench):
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    table = bench.topic("names", cleanup_policy="compact")
    for who in "abc":
        bench.write(table, {"who": who, "name": "old"}, key=who)
    bench.write(source, {"who": "a"}, {"who": "b"}, {"who": "c"})
    place = bench.add("names", TABLE.format(source=source, sink=sink, table=table))
    bench.read_rows(place, 3)
    assert {row["name"] for row in bench.rows(sink).values()} == {"old"}

    bench.write(table, {"who": "a", "name": "new"}, key="a")
    bench.until(place, lambda _: place.log_file.read_text().count("was read again") >= 1)
    bench.write(table, None, key="b")
    bench.until(place, lambda _: place.log_file.read_text().count("was read again") >= 2)
    bench.write(source, {"who": "a"}, {"who": "b"}, {"who": "c"})
    bench.read_rows(place, 6)
    place.wish_for("stopped")
    bench.state(place, "stopped")
    written = [json.loads(message.value()) for message in bench.read(sink)]
    assert sorted((row["who"], row["name"]) for row in written) == [
        ("a", "new"), ("a", "old"), ("b", "old"), ("c", "old"), ("c", "old"),
    ]  # fmt: skip


LATE = """
sql = "SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')"
[sources.events]
topic = "{source}"
schema = "who STRING, at TIMESTAMP"
event_time = "at"
watermark = "1 hour"
[sink]
topic = "{sink}"
key = "hour"
"""


def test_late_rows_are_dropped_and_counted(bench):
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    bench.write(source, event("a", 0), event("a", 59))
    place = bench.add("late", LATE.format(source=source, sink=sink))
    bench.read_rows(place, 2)
    bench.write(source, {"who": "a", "at": "2013-01-01T14:00:00Z"})
    told = bench.until(
        place, lambda told: "13:00" in str(told.get("progress", {}).get("watermark"))
    )
    bench.write(source, event("too late", 30), {"who": "a", "at": "2013-01-01T16:30:00Z"})
    told = bench.until(place, lambda told: told["progress"].get("late_rows"))
    assert told["progress"]["late_rows"] == 1
    # Append: a window is written once, when no event may come for it any more.
    bench.until(place, lambda told: "15:30" in str(told["progress"]["watermark"]))
    place.wish_for("stopped")
    bench.state(place, "stopped")
    hours = {key[:13]: row["n"] for key, row in bench.rows(sink).items()}
    assert hours["2013-01-01T10"] == 2


def test_retention_that_overtakes_a_job_is_one_sentence(bench):
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    bench.write(source, event("a"), event("b"))
    text = COUNTS.format(source=source, sink=sink)
    place = bench.add("overtaken", text)
    bench.read_rows(place, 2)
    place.wish_for("stopped")
    bench.state(place, "stopped")
    bench.write(source, *[event("c")] * 8)
    admin, place_0 = bench.link.admin(), TopicPartition(source, 0, 6)
    admin.delete_records([place_0])[place_0].result(30)
    place.wish_for("running")
    told = bench.state(place, "failed")
    assert "deleted before the job read them" in told["cause"]
    assert "penstock job reset overtaken" in told["remedy"]
    assert "\n" not in told["cause"]

    place = bench.add("overtaken", text.replace("[sink]", 'on_loss = "continue"\n[sink]'))
    bench.read_rows(place, 6)
    place.wish_for("stopped")
    told = bench.state(place, "stopped")
    assert bench.rows(sink)["c"]["n"] == 4
    assert (told["progress"]["lost_records"], told["progress"]["lost_unknown"]) == (4, 0)
    assert place.log_file.read_text().count("4 records of topic") == 1


COPIES = """
sql = "SELECT value FROM events"
trigger = "0 ms"
[sources.events]
topic = "{source}"
format = "string"
[sink]
topic = "{sink}"
delivery = "exactly-once"
[restart]
first = "100 ms"
"""


def create_again(bench, topic, *values):
    admin = bench.link.admin()
    admin.delete_topics([topic])[topic].result(30)
    bench.topic(topic.removesuffix(f"-{bench.mark}"))
    bench.write(topic, *(value.encode() for value in values))


def test_a_topic_that_is_created_again_is_another_topic(bench):
    source, sink, name = bench.topic("in"), f"out-{bench.mark}", f"again-{bench.mark}"
    bench.write(source, *(b"old" for _ in range(3)))
    text = COPIES.format(source=source, sink=sink)
    place = bench.add(name, text)
    bench.read_rows(place, 3)
    # While it runs; with more records than before, so that its offset is there.
    create_again(bench, source, "new 0", "new 1", "new 2", "new 3", "new 4")
    told = bench.state(place, "failed")
    assert told["cause"] == f"topic {source} was deleted and created again: it is another topic"
    assert f"penstock job reset {name}" in told["remedy"]

    place = bench.add(name, text.replace("[sink]", 'on_loss = "continue"\n[sink]'))
    bench.read_rows(place, 8)
    place.wish_for("stopped")
    told = bench.state(place, "stopped")
    assert (told["progress"]["lost_records"], told["progress"]["lost_unknown"]) == (0, 1)
    assert "continues at its start (partition: offset 0: 0)" in place.log_file.read_text()

    create_again(bench, source, "newer")  # while it rests, and with fewer than before
    place.wish_for("running")
    bench.read_rows(place, 9)
    place.wish_for("stopped")
    bench.state(place, "stopped")
    written = [json.loads(message.value())["value"] for message in bench.read(sink)]
    assert sorted(written) == sorted(["old"] * 3 + [f"new {n}" for n in range(5)] + ["newer"])


LARGE = """
sql = "SELECT repeat(value, 2000000) AS v FROM events"
[sources.events]
topic = "{source}"
format = "string"
[sink]
topic = "{sink}"
[restart]
first = "100 ms"
"""


def test_a_row_may_be_as_large_as_its_topic_takes_and_a_larger_one_ends_the_job(bench):
    source, sink = bench.topic("in"), bench.topic("out", max_message_bytes=3_000_000)
    bench.write(source, b"a")
    place = bench.add("large", LARGE.format(source=source, sink=sink))
    bench.read_rows(place, 1)
    assert [len(message.value()) for message in bench.read(sink)] == [2_000_008]
    bench.write(source, b"ab")
    told = bench.state(place, "failed")
    assert "a row of 4,000," in told["cause"] and "larger than the sink's topic" in told["cause"]
    assert "max.message.bytes" in told["remedy"]
    assert told["restarts"] == 0


TIMES = """
sql = "SELECT at, temp FROM temps"
[sources.temps]
topic = "{source}"
format = "csv"
schema = "at TIMESTAMP, temp DOUBLE"
options = {{timestampFormat = "yyyy/MM/dd HH:mm"}}
event_time = "at"
watermark = "1 hour"
[sink]
topic = "{sink}"
key = "at"
"""


def test_times_are_read_as_they_are_written_and_none_of_the_future_moves_the_watermark(bench):
    from spark_local.engine import look

    source, sink, name = bench.topic("in"), f"out-{bench.mark}", f"times-{bench.mark}"
    future, bad = b"9999/01/01 00:00,1.5", b'"2010-01-01 00:00","x,y"'
    bench.write(source, b"2010/01/01 00:30,39.4", future, bad, b"2010/01/01 02:00,39.6")
    place = bench.add(name, TIMES.format(source=source, sink=sink))
    bench.read_rows(place, 4)
    bench.until(place, lambda told: told["progress"].get("dead_letters") == 2)
    bench.write(source, b"2010/01/01 03:00,39.9")  # the next batch tells the watermark of this one
    bench.until(place, lambda told: str(told["progress"]["watermark"]).startswith("2010"))
    letters = bench.read(f"{name}.dlq")
    assert [letter.value() for letter in letters] == [future, bad]
    reasons = [dict(letter.headers())["error"].decode() for letter in letters]
    assert reasons == [
        "its at, the event time, is more than 86400 s ahead (max_ahead)",
        'it does not fit the schema: at = "2010-01-01 00:00", temp = "x,y"',
    ]
    found = look.preview(bench.spark, place.job(), bench.kafka, rows=5, last=10)
    assert found.unreadable == {"temps": (2, 5, reasons)}
    assert [row["temp"] for row in found.rows] == [39.4, 39.6, 39.9]
    place.wish_for("stopped")
    assert bench.state(place, "stopped")["progress"]["late_rows"] == 0


EXPRESSION = """
sql = "SELECT happened, temp FROM temps"
[sources.temps]
topic = "{source}"
schema = "at BIGINT, key STRING, temp DOUBLE"
event_time = "timestamp_micros(1000 * at + length(key)) AS happened"
watermark = "1 hour"
[sink]
topic = "{sink}"
key = "happened"
"""


def test_an_event_time_is_made_of_the_records_columns_and_its_nulls_are_dead_letters(bench):
    from spark_local.engine import look

    source, sink, name = bench.topic("in"), f"out-{bench.mark}", f"made-{bench.mark}"
    future = b'{"at": 253370764800000, "key": "k", "temp": 1}'
    none = b'{"at": 7, "temp": 2}'
    good = b'{"at": 1262304000000, "key": "abc", "temp": 3}'
    bench.write(source, good, future, none)
    place = bench.add(name, EXPRESSION.format(source=source, sink=sink))
    bench.read_rows(place, 3)
    bench.until(place, lambda told: told["progress"].get("dead_letters") == 2)
    letters = bench.read(f"{name}.dlq")
    assert [dict(letter.headers())["error"].decode() for letter in letters] == [
        "its happened, the event time, is more than 86400 s ahead (max_ahead)",
        "its event time, timestamp_micros(1000 * at + length(key)), is null",
    ]
    (message,) = bench.read(sink)
    happened = "2010-01-01T00:00:00.000003Z"
    assert json.loads(message.value()) == {"temp": 3, "happened": happened}
    assert message.key().decode() == happened, "one form in keys and values"
    found = look.preview(bench.spark, place.job(), bench.kafka, rows=5, last=10)
    assert found.columns == ["happened", "temp"] and len(found.rows) == 1


def test_one_job_does_not_disturb_another(bench):
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    text = COUNTS.format(source=source, sink=sink)
    steady = bench.add("steady", text)
    bench.write(source, event("a"))
    bench.read_rows(steady, 1)
    since = steady.state()["since"]

    broken = bench.add("broken", text.replace("count(*) AS n", "nonsense(who) AS n"))
    told = bench.state(broken, "failed")
    assert "nonsense" in told["cause"]
    other = bench.add("other", text.replace(sink, f"{sink}-2"))
    bench.read_rows(other, 1)
    other.wish_for("removed")
    bench.until(other, lambda _: not other.path.exists())
    bench.write(source, event("a"))
    told = bench.read_rows(steady, 2)
    assert told["since"] == since
    assert told["state"] == "running"


def test_a_missing_topic_is_waited_for(bench):
    place = bench.add("early", COUNTS.format(source=f"in-{bench.mark}", sink=f"out-{bench.mark}"))
    told = bench.state(place, "waiting")
    assert "there is no topic" in told["cause"]
    assert told["next_attempt"]
    source = bench.topic("in")
    bench.write(source, event("a"))
    bench.read_rows(place, 1)


PYTHON = """
python = "{file}.py:derive"
trigger = "once"
[sources.events]
topic = "{source}"
schema = "infer"
[sink]
file = {{path = "{folder}", format = "parquet"}}
"""
BACK = """
batch = true
sql = "SELECT who, n FROM kept"
[sources.kept]
file = {{path = "{folder}", format = "parquet"}}
[sink]
topic = "{sink}"
key = ["who", "n"]
"""


def test_python_infers_and_writes_parquet_and_a_batch_writes_it_back(bench):
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    bench.write(source, {"who": "a", "n": 1}, {"who": "b", "n": 2})
    folder = bench.path / "kept"
    code = "def derive(spark, sources):\n    return sources['events'].where('n > 1')\n"
    place = bench.add("once", PYTHON.format(source=source, folder=folder, file="once"), once=code)
    bench.state(place, "finished")
    back = bench.add("back", BACK.format(folder=folder, sink=sink))
    bench.state(back, "finished")
    messages = bench.read(sink)
    assert [(m.key(), m.value()) for m in messages] == [
        (b'{"who":"b","n":2}', b'{"who":"b","n":2}')
    ]


def test_jdbc_out_and_in(bench):
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    bench.write(source, {"who": "a"}, {"who": "b"})
    properties = bench.spark._jvm.java.lang.System
    properties.setProperty("derby.stream.error.file", f"{bench.path}/derby.log")
    url = f"jdbc:derby:directory:{bench.path}/db;create=true"
    text = f"""
sql = "SELECT who FROM events"
trigger = "once"
[sources.events]
topic = "{source}"
schema = "who STRING"
[sink]
jdbc = {{url = "{url}", table = "people"}}
"""
    bench.state(bench.add("todb", text), "finished")
    text = f"""
sql = "SELECT * FROM people"
batch = true
[sources.people]
jdbc = {{url = "{url}", table = "people"}}
[sink]
topic = "{sink}"
"""
    bench.state(bench.add("fromdb", text), "finished")
    assert sorted(m.value() for m in bench.read(sink)) == [b'{"who":"a"}', b'{"who":"b"}']


def test_preview_and_explain_write_nothing(bench):
    from spark_local.engine import look
    from spark_local.jobfile import parse

    source, sink = bench.topic("in"), f"out-{bench.mark}"
    bench.write(source, event("a"), event("a"), b"{nope")
    text = COUNTS.format(source=source, sink=sink).replace('"who STRING, at TIMESTAMP"', '"infer"')
    job = parse(text, bench.path / "seen.toml")
    found = look.preview(bench.spark, job, bench.kafka, rows=20, last=100)
    assert found.rows == [{"who": "a", "n": 2}]
    assert found.schemas == {"events": "`at` timestamp, `who` string"}
    told = look.explain(bench.spark, job, bench.kafka)
    assert told["state"] == [
        "aggregation: one row for each group, without end: no source has a watermark"
    ]
    assert "same keys (who)" in told["repeated"]
    with pytest.raises(KafkaException, match="Unknown topic"):
        bench.read(sink)


def test_preview_says_what_a_stream_refuses_and_of_how_much_it_is(bench, capfd):
    from spark_local.engine import look
    from spark_local.engine.causes import translate
    from spark_local.jobfile import parse

    source = bench.topic("in")
    bench.write(source, *[event("a")] * 10)
    text = COUNTS.format(source=source, sink=f"out-{bench.mark}")
    where = bench.path / "seen.toml"
    capfd.readouterr()
    for asked, said in (
        ("count(DISTINCT at)", "Distinct aggregations are not supported on streaming"),
        ("count(nobody)", "name `nobody` cannot be resolved"),
    ):
        job = parse(text.replace("count(*)", asked), where)
        for how in (
            lambda: look.preview(bench.spark, job, bench.kafka, rows=9, last=9),  # noqa: B023
            lambda: look.explain(bench.spark, job, bench.kafka),  # noqa: B023
        ):
            with pytest.raises(Exception, match=r"streaming|nobody") as told:
                how()
            found = translate(told.value, "seen")
            assert said in found.problem
            assert "query" in found.remedy
    assert "{" not in capfd.readouterr().err, "Spark's JSON"
    found = look.preview(bench.spark, parse(text, where), bench.kafka, rows=9, last=4)
    assert found.rows == [{"who": "a", "n": 4}]
    assert found.parts == {source: (4, 10)}
