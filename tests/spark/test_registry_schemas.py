"""A schema registry's answers, and schemas of Avro and JSON made of columns and read as such. No
Spark here."""

import io
import json
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

from spark_local import avro_schemas, json_schemas
from spark_local.cause import JobError
from spark_local.job import RegistryPlace
from spark_local.jobfile import JobFileError, parse
from spark_local.registry import Registered, SchemaRegistry, frame_head, schema_number

INNER = {"type": "record", "name": "City", "fields": [{"name": "zip", "type": "string"}]}
NAMED = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [
        {"name": "from", "type": "geo.City"},
        {"name": "to", "type": ["null", "geo.City"]},
        {"name": "via", "type": {"type": "array", "items": "geo.City"}},
    ],
}  # fmt: skip
JOB = """
sql = "SELECT * FROM orders"
[sources.orders]
topic = "orders"
format = "avro"
registry = "http://host:8081/apis/ccompat/v7/"
[sink]
topic = "out"
"""


def answering(answers):
    """A registry that answers from memory: path → content, an error to raise, or bytes."""
    asked = []

    def send(method, url, body):
        path = url.removeprefix("http://r")
        asked.append((method, path, body and json.loads(body)))
        found = answers.get(path, 404)
        if isinstance(found, int):
            raise HTTPError(url, found, "no", {}, io.BytesIO(b'{"message": "said so"}'))
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, bytes) else json.dumps(found).encode()

    return SchemaRegistry("http://r/", send=send), asked


def test_versions_come_with_the_schemas_that_they_name():
    registry, asked = answering({
        "/subjects/a%2Fb/versions": [1],
        "/subjects/a%2Fb/versions/1": {
            "id": 7, "schema": "{}", "references": [{"name": "x", "subject": "x", "version": 2}],
        },
        "/subjects/x/versions/2": {
            "schema": "X", "references": [{"name": "y", "subject": "y", "version": 1}],
        },
        "/subjects/y/versions/1": {"schema": "Y"},
        "/schemas/ids/7": {"schema": "{}", "schemaType": "JSON"},
    })  # fmt: skip
    assert registry.versions("a/b") == [Registered(7, "AVRO", "{}", ("Y", "X"), 1)]
    assert registry.by_number(7) == Registered(7, "JSON", "{}")
    assert (registry.by_number(8), registry.versions("none")) == (None, [])
    assert asked[0] == ("GET", "/subjects/a%2Fb/versions", None)


def test_a_schema_is_judged_and_registered():
    compatible = "/compatibility/subjects/s/versions/latest?verbose=true"
    registry, asked = answering({compatible: {"is_compatible": False, "messages": ["a", "b"]},
                                 "/subjects/s/versions": {"id": 9}})  # fmt: skip
    assert registry.refusal("s", "AVRO", "T") == "a; b"
    assert registry.refusal("fresh", "AVRO", "T") == ""
    silent, _ = answering({compatible: {"is_compatible": False}})
    assert "rule of compatibility" in silent.refusal("s", "AVRO", "T")
    assert registry.register("s", "JSON", "T") == 9
    assert asked[-1] == ("POST", "/subjects/s/versions", {"schema": "T", "schemaType": "JSON"})


@pytest.mark.parametrize(
    ("answer", "told", "final", "waits"),
    [
        (URLError("refused"), "cannot be reached: refused", False, True),
        (TimeoutError("it takes too long"), "cannot be reached", False, True),
        (401, "refuses the login", False, False),
        (422, "answered 422: said so", True, False),
        (503, "answered 503: said so", False, False),
        (b"<html>", "does not answer as a schema registry does", False, False),
        (["1"], "does not answer as a schema registry does", False, False),
        ({"id": 1}, "does not answer as a schema registry does", False, False),
    ],
)
def test_what_a_registry_does_wrong_is_told(answer, told, final, waits):
    registry, _ = answering({"/subjects/s/versions": answer})
    with pytest.raises(JobError, match=told) as wrong:
        registry.versions("s")
    assert (wrong.value.final, wrong.value.waits) == (final, waits)


def test_references_without_end_are_refused():
    one = {"schema": "X", "references": [{"name": "z", "subject": "x", "version": 1}]}
    registry, _ = answering({"/schemas/ids/1": one, "/subjects/x/versions/1": one})
    with pytest.raises(JobError, match="names more than 200 others"):
        registry.by_number(1)


def test_a_head_is_a_zero_and_an_id():
    assert frame_head(258) == b"\0\0\0\1\2"
    assert schema_number(frame_head(2**32 - 1) + b"x") == 2**32 - 1
    assert [schema_number(one) for one in (b"", b"\0\0\0\1", b"\1\0\0\0\1")] == [None] * 3


def test_named_schemas_become_one_text_that_fastavro_reads():
    fastavro = pytest.importorskip("fastavro")
    city = json.dumps({**INNER, "namespace": "geo"})
    found = avro_schemas.inlined(json.dumps(NAMED), (city,))
    value = {"from": {"zip": "1"}, "to": None, "via": [{"zip": "2"}]}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(found), value)
    out.seek(0)
    reader = fastavro.parse_schema(avro_schemas.marked(found))
    read = fastavro.schemaless_reader(out, fastavro.parse_schema(found), reader)
    assert read == value | {avro_schemas.MARK: 1}
    with pytest.raises(JobError, match="no record"):
        avro_schemas.marked(avro_schemas.parse_schema("string"))


def test_columns_become_fields_that_may_come_and_go():
    fastavro = pytest.importorskip("fastavro")
    inner = {"type": "struct", "fields": [{"name": "x", "type": "double"}]}
    columns = [
        {"name": "id", "type": "long"}, {"name": "price", "type": "decimal(9,2)"},
        {"name": "at", "type": "timestamp"}, {"name": "raw", "type": "binary"},
        {"name": "one", "type": inner}, {"name": "two", "type": inner},
        {"name": "many", "type": {"type": "array", "elementType": inner, "containsNull": True}},
        {"name": "by", "type": {"type": "map", "keyType": "string", "valueType": "integer"}},
    ]  # fmt: skip
    old = avro_schemas.record_of(columns[:2], avro_schemas.record_name("my-topic"), "penstock")
    new = avro_schemas.record_of(columns, "my_topic", "penstock")
    assert (old["name"], avro_schemas.record_name("1.a")) == ("my_topic", "_1_a")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(old), {"id": 1})
    out.seek(0)
    read = fastavro.schemaless_reader(out, fastavro.parse_schema(old), fastavro.parse_schema(new))
    assert read == {"id": 1} | dict.fromkeys(["price", "at", "raw", "one", "two", "many", "by"])
    with pytest.raises(JobError, match="no field 'a b'"):
        avro_schemas.record_of([{"name": "a b", "type": "long"}], "r")
    with pytest.raises(JobError, match="no void"):
        avro_schemas.record_of([{"name": "a", "type": "void"}], "r")


def test_json_schemas_say_columns():
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"}, "who": {"type": ["null", "string"]},
            "on": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date"}]},
            "many": {"type": "array", "items": {"$ref": "#/definitions/part"}},
            "by": {"type": "object", "additionalProperties": {"type": "number"}},
            "odd": {"type": ["string", "integer"]}, "me": {"$ref": "#"},
        },
        "definitions": {"part": {"properties": {"a b": {"type": "boolean"}}}},
    }  # fmt: skip
    schema["properties"]["me"] = {"type": "string", "format": "date-time"}
    assert json_schemas.columns_of(schema) == (
        "`id` BIGINT, `who` STRING, `on` DATE, `many` ARRAY<STRUCT<`a b`: BOOLEAN>>, "
        "`by` MAP<STRING, DOUBLE>, `odd` STRING, `me` TIMESTAMP"
    )
    endless = {"properties": {"me": {"$ref": "#"}}}
    assert json_schemas.columns_of(endless).endswith("STRING" + ">" * 29)
    with pytest.raises(JobError, match="names no properties"):
        json_schemas.columns_of({"type": "array"})


def test_rows_say_a_json_schema_that_says_their_columns():
    columns = [
        {"name": "id", "type": "long"}, {"name": "at", "type": "timestamp"},
        {"name": "many", "type": {"type": "array", "elementType": "date"}},
        {"name": "in", "type": {"type": "struct", "fields": [{"name": "x", "type": "float"}]}},
        {"name": "by", "type": {"type": "map", "keyType": "string", "valueType": "boolean"}},
        {"name": "price", "type": "decimal(9,2)"},
    ]  # fmt: skip
    assert json_schemas.columns_of(json_schemas.schema_of(columns, "t")) == (
        "`id` BIGINT, `at` TIMESTAMP, `many` ARRAY<DATE>, `in` STRUCT<`x`: DOUBLE>, "
        "`by` MAP<STRING, BOOLEAN>, `price` DOUBLE"
    )


def test_a_job_file_names_a_registry():
    (source,) = parse(JOB, Path("/jobs/x.toml")).sources
    url = "http://host:8081/apis/ccompat/v7"
    assert source.registry == RegistryPlace(url, "orders-value")
    table = '{url = "http://h", subject = "s", version = 3, user = "${file:k:u}", '
    table += 'password = "${file:k:p}"}'
    text = JOB.replace('"http://host:8081/apis/ccompat/v7/"', table)
    (source,) = parse(text, Path("/jobs/x.toml")).sources
    assert source.registry == RegistryPlace("http://h", "s", 3, "/jobs/k:u", "/jobs/k:p")
    sink = parse(f'{JOB}format = "avro"\nregistry = "http://h"\n', Path("/jobs/x.toml")).sink
    assert (sink.format, sink.registry) == ("avro", RegistryPlace("http://h", "out-value"))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('registry = "http://host:8081/apis/ccompat/v7/"', "", "name a schema in one"),
        ('"http://host:8081/apis/ccompat/v7/"', '"http://u:p@host"', "no address of a schema"),
        ('"http://host:8081/apis/ccompat/v7/"', "{subject = 's'}", "registry] url: it is missing"),
        ('"http://host:8081/apis/ccompat/v7/"', "{url = 'http://h', password = 'x'}",
         "a job file has no secrets"),
        ('"http://host:8081/apis/ccompat/v7/"', "{url = 'http://h', user = '${file:a:b}'}",
         "password: it is missing"),
        ('format = "avro"', 'format = "avro"\nschema = "a INT"', "the registry has it"),
        ('format = "avro"', 'format = "string"', "values of this format need none"),
        ("[sink]", '[tables.t]\ntopic = "t"\nkey = "a"\nformat = "avro"\n[sink]',
         "tables of topics have no registry"),
        ("[sink]", '[sink]\nformat = "avro"', "name a schema in one"),
        ("[sink]", "[sink]\nformat = 'avro'\nregistry = {url = 'http://h', version = 2}",
         "rows are written by a schema of their own columns"),
        ('[sink]\ntopic = "out"', '[sink]\nfile = {path = "x"}\nformat = "avro"',
         "only topics have it"),
    ],
)  # fmt: skip
def test_mistakes_about_registries_are_told_at_once(old, new, told):
    with pytest.raises(JobFileError) as wrong:
        parse(JOB.replace(old, new), Path("/jobs/x.toml"))
    assert told in str(wrong.value)
    assert "= x" not in str(wrong.value), "no secret is repeated"
