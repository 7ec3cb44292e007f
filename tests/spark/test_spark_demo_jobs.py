"""The job files that people copy, over a week of the demo's data: what they derive is what plain
Python computes from the same CSV files."""

import csv
import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

import spark_local
from console.commands.demo.data import TABLES, dictionaries, events, folder, records
from console.commands.demo.figures import DERIVED, Found, expected
from spark_local.jobfile import load

pytestmark = [
    pytest.mark.timeout(300),  # a busy machine needs minutes for what takes seconds on a quiet one
    pytest.mark.filterwarnings(  # py4j leaves its sockets to the collector
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
JOBS = Path(spark_local.__file__).parent / "jobs"
END = "2013-01-08T00:00:00Z"


def cut(table, source, target):
    """The rows of a table's file before END."""
    rows = [row for row in dictionaries(table, source) if row["time_hour"] < END]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    if table.file.endswith(".zip"):
        with zipfile.ZipFile(target / table.file, "w") as archive:
            archive.writestr(table.file.removesuffix(".zip"), text.getvalue())
    else:
        (target / table.file).write_text(text.getvalue())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The demo's files, with a week of flights and weather."""
    target = tmp_path_factory.mktemp("week")
    for table in TABLES:
        if table.stream:
            cut(table, folder(), target)
        else:
            shutil.copy(folder() / table.file, target)
    return target


@pytest.fixture(scope="module")
def week(data):
    """The figures that the week must give."""
    return expected(data)


@pytest.fixture
def flights(bench, data):
    """All topics, filled: how many flights there are."""
    names = {table.topic: bench.topic(table.topic) for table in TABLES}
    rows = [
        (table.topic, key, value)
        for table in TABLES
        if not table.stream
        for key, value in records(table, data)
    ]
    rows += [(topic, key, value) for _, topic, key, value in events(data)]
    for topic, key, value in rows:
        bench.writer.produce(names[topic], value, key)
    assert bench.writer.flush(60) == 0
    return sum(topic == "flights" for topic, _, _ in rows)


def start(bench, name):
    """The job file as it is, but for the names of topics and how often tables are looked at."""
    text = re.sub(r'^topic = "(.+)"$', rf'topic = "\1-{bench.mark}"', file_of(name), flags=re.M)
    text = text.replace('refresh = "5 seconds"', 'refresh = "200 ms"')
    return bench.add(name, text, **{py.stem: py.read_text() for py in JOBS.glob(f"{name}.py")})


def file_of(name):
    return (JOBS / f"{name}.toml").read_text()


def stop(bench, place):
    place.wish_for("stopped")
    return bench.state(place, "stopped")


def found(bench, job):
    one = Found(next(derived for derived in DERIVED if derived.job == job))
    for message in bench.read(f"{one.derived.topic}-{bench.mark}"):
        one.add(message.value())
    return one.figures


def test_every_job_file_is_right_and_is_tested():
    names = {load(file).name for file in JOBS.glob("*.toml")}
    assert names == {derived.job for derived in DERIVED} | {"to_parquet"}


@pytest.mark.parametrize("name", ["totals", "cancelled"])
def test_a_job_derives_what_the_csv_files_say(bench, flights, week, name):
    place = start(bench, name)
    bench.read_rows(place, flights)
    told = stop(bench, place)
    topic = next(derived.topic for derived in DERIVED if derived.job == name)
    assert found(bench, name) == week[topic]
    assert told["progress"]["lag_records"] == 0
    assert told["progress"]["dead_letters"] == 0


def test_two_streams_meet(bench, flights, week):
    place = start(bench, "weather")
    bench.read_rows(place, flights + len(bench.read(f"weather-{bench.mark}")))
    stop(bench, place)
    assert found(bench, "weather") == week["flights-weather"]


def test_flights_may_come_late_but_not_later_than_the_watermark(bench, flights, week):
    place = start(bench, "delays")
    bench.read_rows(place, flights)
    assert found(bench, "delays") == week["delays"]

    def late(hour):
        flight = {"origin": "EWR", "time_hour": f"{hour}:00:00Z", "dep_delay": 999}
        bench.write(f"flights-{bench.mark}", flight)

    newest = max(hour for _, hour in week["delays"])
    in_time = newest[:8] + "07" + newest[10:]
    late("2013-01-05T12")  # its window is closed
    bench.until(place, lambda told: told["progress"]["late_rows"] == 1)
    late(in_time)
    bench.read_rows(place, flights + 2)
    told = stop(bench, place)
    changed = dict(found(bench, "delays").items() ^ week["delays"].items())
    assert changed.keys() == {("EWR", in_time)}
    assert found(bench, "delays")["EWR", in_time][3] == 999
    assert told["progress"]["late_rows"] == 1


def test_names_come_from_tables_that_change_while_the_job_runs(bench, flights, week):
    place = start(bench, "enriched")
    bench.read_rows(place, flights)
    assert found(bench, "enriched") == week["flights-enriched"]

    bench.write(f"airlines-{bench.mark}", {"carrier": "UA", "name": "Untied"}, key="UA")
    bench.until(place, lambda _: "airlines was read again" in place.log_file.read_text())
    bench.write(f"flights-{bench.mark}", {"carrier": "UA", "dest": "ORD"})
    bench.read_rows(place, flights + 1)
    stop(bench, place)
    rows = [json.loads(one.value()) for one in bench.read(f"flights-enriched-{bench.mark}")]
    names = [row["destination"] for row in rows if row["airline"] == "Untied"]
    assert names == ["Chicago Ohare Intl"]


def test_a_topic_becomes_files_and_the_files_a_topic(bench, flights, week):
    bench.state(start(bench, "to_parquet"), "finished")
    bench.state(start(bench, "from_parquet"), "finished")
    assert found(bench, "from_parquet") == week["routes"]
