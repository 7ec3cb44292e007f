"""Tables of Iceberg and Delta Lake as inputs of jobs: what is appended as a stream, and a lookup
that sees what was written meanwhile."""

from collections import Counter

import pytest
from test_spark_tables import COPIES, LATEST, event

from spark_local.engine import jars

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
FORMATS = {"iceberg": jars.has_tables, "delta": jars.has_delta}
TAIL = """
sql = "SELECT id, who FROM copies"
trigger = "0 ms"
[sources.copies]
table = {{path = "{lake}", name = "db.{name}", format = "{form}"}}
[sink]
topic = "{out}"
key = "id"
[restart]
attempts = 0
"""
LOOK = """
sql = "SELECT a.id, c.who FROM asks a LEFT JOIN copies c ON a.id = c.id"
trigger = "0 ms"
[sources.asks]
topic = "{asks}"
schema = "id BIGINT"
[tables.copies]
table = {{path = "{lake}", name = "db.copies", format = "{form}"}}
refresh = "100 ms"
[sink]
topic = "{out}"
key = "id"
"""


@pytest.fixture(params=FORMATS)
def form(request, spark):
    if not FORMATS[request.param]():
        pytest.skip(f"the jars of {request.param} cannot be fetched")
    return request.param


def keyed(bench, topic):
    """How often each key is there."""
    return Counter(int(one.key()) for one in bench.read(topic))


def test_a_job_reads_what_is_appended_and_looks_up_what_is_there(bench, form):
    source, lake, mark = bench.topic("in"), bench.path / "lake", bench.mark
    table = COPIES.format(source=source, lake=lake)
    table = table.replace('partition_by = ["days(at)"]', f'format = "{form}"')
    tail, asks, out = bench.topic("tail"), bench.topic("asks"), bench.topic("out")
    words = {"lake": lake, "form": form, "asks": asks}
    reader = bench.add(f"tail-{mark}", TAIL.format(name="copies", out=tail, **words))
    bench.until(reader, lambda told: "there is no table db.copies" in str(told))
    bench.write(source, *map(event, range(10)))
    bench.add(f"copies-{mark}", table)
    bench.until(reader, lambda told: sum(keyed(bench, tail).values()) >= 10)
    bench.write(source, *map(event, range(10, 30)))
    bench.until(reader, lambda told: sum(keyed(bench, tail).values()) >= 30)
    assert keyed(bench, tail) == Counter(range(30))

    looker = bench.add(f"look-{mark}", LOOK.format(out=out, **words))
    bench.write(asks, {"id": 4}, {"id": 30})
    bench.until(looker, lambda told: len(bench.read(out)) >= 2)
    assert {k: row["who"] for k, row in bench.rows(out).items()} == {"4": "b", "30": None}
    bench.write(source, event(30))
    bench.until(looker, lambda told: "was read again" in looker.log_file.read_text())
    bench.write(asks, {"id": 30})
    bench.until(looker, lambda told: len(bench.read(out)) >= 3)
    assert bench.rows(out)["30"]["who"] == "a"


def test_a_row_that_is_changed_ends_a_stream_unless_it_passes_over(bench, form):
    source, lake, out = bench.topic("in"), bench.path / "lake", bench.topic("out")
    latest = LATEST.format(source=source, lake=lake).replace(
        "[sink.table]", f'[sink.table]\nformat = "{form}"'
    )
    latest = latest.replace(" n,", " CAST(n AS STRING) AS who,").replace('maintain = "1 ms"', "")
    latest = latest.replace('keep = "1 ms"', "")
    writer = bench.add(f"latest-{bench.mark}", latest)
    bench.write(source, {"id": 1, "n": 1}, key="1")
    bench.read_rows(writer, 1)
    bench.write(source, {"id": 1, "n": 2}, key="1")
    bench.read_rows(writer, 2)
    text = TAIL.format(lake=lake, name="latest", form=form, out=out)
    name = f"tail-{bench.mark}"
    reader = bench.add(name, text)
    if form == "delta":  # it begins with what is there now
        bench.until(reader, lambda told: "1" in bench.rows(out))
        bench.write(source, {"id": 1, "n": 3}, key="1")
    told = bench.state(reader, "failed")
    assert "were changed or deleted" in str(told)
    reader = bench.add(name, text.replace("[sink]", 'on_change = "skip"\n[sink]'))
    bench.state(reader, "running")
    assert set(bench.rows(out)) == ({"1"} if form == "delta" else set())
