"""Jobs whose values name their schemas by id: Avro of several writers, JSON Schema, and what a
registry says before a job starts. Values are written and judged by fastavro."""

import io
import json

import pytest
from registry_server import TestRegistry, serving

from spark_local.engine import jars
from spark_local.registry import frame_head

fastavro = pytest.importorskip("fastavro")

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings(  # py4j leaves its sockets to the collector
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
FIRST = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "who", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}  # fmt: skip
PAID = {"name": "paid", "type": "boolean", "default": False}
SECOND = {**FIRST, "fields": [*FIRST["fields"], PAID]}
THIRD = {
    **FIRST,
    "fields": [*SECOND["fields"], {"name": "tags", "default": [],
                                   "type": {"type": "array", "items": "string"}}],
}  # fmt: skip
OTHER = {"type": "record", "name": "Order", "namespace": "shop",
         "fields": [{"name": "id", "type": "string"}]}  # fmt: skip


def framed(number, schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return frame_head(number) + out.getvalue()


def unframed(registry, value):
    """(id, the value) of what a job wrote."""
    number = int.from_bytes(value[1:5], "big")
    schema = fastavro.parse_schema(json.loads(registry.schemas[number - 1][1]))
    rest = io.BytesIO(value[5:])
    found = fastavro.schemaless_reader(rest, schema, None)
    assert value[0] == 0
    assert rest.read() == b""
    return number, found


def avro_job(source, sink, url, extra="", sql="SELECT id, who, paid FROM orders"):
    return f"""
sql = "{sql}"
[sources.orders]
topic = "{source}"
format = "avro"
registry = {url}
[sink]
topic = "{sink}"
key = "id"
{extra}
"""


@pytest.fixture
def registry():
    with serving(TestRegistry()) as found:
        yield found


@pytest.fixture(autouse=True)
def _needs_avro(spark):
    if not jars.has_schemas():
        pytest.skip("Spark's jar for Avro is not here")


def test_values_of_several_writers_are_read_and_written_by_id(bench, registry):
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    subject = f"{source}-value"
    one, two = registry.register(subject, FIRST), registry.register(subject, SECOND)
    bench.write(source, framed(one, FIRST, {"id": 1, "who": "a", "at": 0}))
    bench.write(source, framed(two, SECOND, {"id": 2, "who": None, "at": 0, "paid": True}))
    bench.write(source, b'{"id": 3}', b"\0\0\0\0\x63xyz", frame_head(two) + b"\x02", None)
    extra = f'delivery = "exactly-once"\nformat = "avro"\nregistry = "{registry.url}"'
    place = bench.add("avro", avro_job(source, sink, f'"{registry.url}"', extra))
    bench.read_rows(place, 6)
    registry.asked.clear()
    three = registry.register(subject, THIRD)
    bench.write(
        source, framed(three, THIRD, {"id": 4, "who": "d", "at": 0, "paid": True, "tags": []})
    )
    told = bench.read_rows(place, 7)
    assert told["progress"]["dead_letters"] == 3
    assert (told["state"], told["restarts"]) == ("running", 0), "a new schema is no failure"
    bench.folder.at("avro").wish_for("stopped")
    bench.state(place, "stopped")
    read = [unframed(registry, m.value()) for m in bench.read(sink)]
    assert [one for _, one in read] == [
        {"id": 1, "who": "a", "paid": False},
        {"id": 2, "who": None, "paid": True},
        {"id": 4, "who": "d", "paid": True},
    ]
    assert {number for number, _ in read} == set(registry.subjects[f"{sink}-value"])
    letters = {dict(m.headers())["offset"]: dict(m.headers())["error"].decode()
               for m in bench.read("avro.dlq")}  # fmt: skip
    assert "does not begin with a byte 0" in letters[b"2"]
    assert "no Avro schema of id 99" in letters[b"3"]
    assert "do not fit schema 2" in letters[b"4"]


def test_a_registry_that_is_away_delays_the_first_start_alone(bench):
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    with serving(TestRegistry()) as registry:
        one = registry.register("orders", SECOND)
        where = f'{{url = "{registry.url}", subject = "orders"}}'
        text = avro_job(source, sink, where)
        bench.write(source, framed(one, SECOND, {"id": 1, "who": "a", "at": 0, "paid": True}))
        place = bench.add("away", text)
        bench.read_rows(place, 1)
        bench.folder.at("away").wish_for("stopped")
        bench.state(place, "stopped")
    bench.write(source, framed(one, SECOND, {"id": 2, "who": "b", "at": 0, "paid": True}))
    place = bench.add("away", text)
    bench.read_rows(place, 2)
    assert bench.rows(sink)["2"] == {"id": 2, "who": "b", "paid": True}
    fresh = bench.add("fresh", text)
    told = bench.state(fresh, "waiting")
    assert "cannot be reached" in told["cause"]


def test_what_does_not_fit_the_registry_is_told_before_a_row_is_written(bench, registry):
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    registry.register(f"{source}-value", SECOND)
    registry.register(f"{sink}-value", OTHER)
    extra = f'format = "avro"\nregistry = "{registry.url}"'
    told = bench.state(
        bench.add("unfit", avro_job(source, sink, f'"{registry.url}"', extra)), "failed"
    )
    assert f"do not fit the versions of {sink}-value" in told["cause"]
    assert "TYPE_MISMATCH: id" in told["cause"]
    registry.register(f"{source}-value", OTHER)
    pinned = f'{{url = "{registry.url}", version = 1}}'
    told = bench.state(bench.add("pinned", avro_job(source, sink, pinned)), "failed")
    assert "version 2" in told["cause"] and "cannot be read by version 1" in told["cause"]
    assert bench.read(sink) == []


def test_json_schema_and_a_login(bench, tmp_path):
    from base64 import b64encode

    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "who": {"type": ["string", "null"]},
                       "at": {"type": "string", "format": "date-time"}},
    }  # fmt: skip
    (tmp_path / "keys").write_text("user=u\npassword=p:w\n")
    login = f"Basic {b64encode(b'u:p:w').decode()}"
    source, sink = bench.topic("in"), f"out-{bench.mark}"
    with serving(TestRegistry(login)) as registry:
        one = registry.register(f"{source}-value", schema, "JSON")
        head = frame_head(one)
        bench.write(source, head + b'{"id": 5, "who": "a", "at": "2013-01-01T00:00:00Z"}')
        bench.write(source, b'{"id": 6}', head + b'{"id": "x"}', head + b"{")
        keys = tmp_path / "keys"
        where = (f'{{url = "{registry.url}", user = "${{file:{keys}:user}}", '
                 f'password = "${{file:{keys}:password}}"}}')  # fmt: skip
        text = avro_job(source, sink, where, f'format = "json-schema"\nregistry = {where}',
                        "SELECT id, who, at FROM orders")  # fmt: skip
        place = bench.add("json", text.replace('format = "avro"', 'format = "json-schema"'))
        told = bench.read_rows(place, 4)
        assert told["progress"]["dead_letters"] == 3
        (row,) = bench.read(sink)
        number = int.from_bytes(row.value()[1:5], "big")
        assert registry.subjects[f"{sink}-value"] == [number]
        assert json.loads(row.value()[5:]) == {
            "id": 5, "who": "a", "at": "2013-01-01T00:00:00.000000Z"
        }  # fmt: skip
        kept = json.loads(registry.schemas[number - 1][1])
        assert kept["properties"]["at"]["oneOf"][1] == {"type": "string", "format": "date-time"}
        bench.folder.at("json").wish_for("stopped")
        bench.state(place, "stopped")
        (tmp_path / "keys").write_text("user=u\npassword=other\n")
        told = bench.state(bench.add("shut", text.replace("avro", "json-schema")), "failing")
        assert "refuses the login" in told["cause"]
    errors = [dict(m.headers())["error"].decode() for m in bench.read("json.dlq")]
    assert "does not begin with a byte 0" in errors[0]
    assert 'id = "x"' in errors[1] and "it is not JSON" in errors[2]


def test_a_batch_job_and_a_preview_read_what_no_version_says(bench, registry):
    from spark_local.engine import look
    from spark_local.jobfile import parse

    source, sink = bench.topic("in"), f"out-{bench.mark}"
    registry.register(f"{source}-value", SECOND)
    foreign = registry.register("elsewhere", THIRD)
    value = {"id": 1, "who": "a", "at": 0, "paid": True, "tags": ["x"]}
    bench.write(source, framed(foreign, THIRD, value), b"text")
    text = avro_job(source, sink, f'"{registry.url}"')
    found = look.preview(
        bench.spark, parse(text, bench.path / "p.toml"), bench.kafka, rows=5, last=10
    )
    assert found.rows == [{"id": 1, "who": "a", "paid": True}]
    assert found.unreadable["orders"][0] == 1
    place = bench.add("whole", f"batch = true\n{text}")
    bench.state(place, "finished")
    assert bench.rows(sink) == {"1": {"id": 1, "who": "a", "paid": True}}
    assert place.state()["progress"]["dead_letters"] == 1
