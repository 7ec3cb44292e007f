"""JSON values by the newest schema of a registry's subject: they are read back the same."""

import json
import threading
from http.server import ThreadingHTTPServer

import pytest
from test_decoding_schemas import Handler

from console.model.asking.failure import Failure
from console.model.decoding.choosing import Decoders
from console.model.decoding.memory import Choices
from console.model.decoding.registry import Registry
from console.model.records.by_schema import SchemaWriter

pytest.importorskip("fastavro")
ADDRESS = {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "paid", "type": ["null", "boolean"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9,
                                   "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "raw", "type": "bytes"},
        {"name": "home", "type": ["null", "Address"]},
        {"name": "tags", "type": {"type": "map", "values": "double"}},
    ],
}  # fmt: skip
VALUE = {
    "id": 5, "paid": True, "price": 12.5, "at": "2013-01-01T00:00:00.000001Z", "raw": "0x00ff",
    "home": {"city": "Ny"}, "tags": {"a": 1},
}  # fmt: skip


def registry(**subjects):
    """One that answers from memory, by path."""
    answers = {f"http://r/subjects/{name}/versions/latest": one for name, one in subjects.items()}
    answers["http://r/subjects/address/versions/1"] = {"schema": json.dumps(ADDRESS)}
    answers["http://r/schemas/ids/7"] = subjects.get("orders", {})

    def get(url):
        if url not in answers:
            raise OSError("nobody is there")
        return json.dumps(answers[url]).encode()

    return Registry("http://r", get)


def orders():
    references = [{"name": "Address", "subject": "address", "version": 1}]
    return registry(orders={"id": 7, "schema": json.dumps(ORDER), "references": references})


def test_a_value_is_framed_and_read_back():
    found = SchemaWriter(orders(), "orders").encode_value(json.dumps(VALUE).encode())
    assert found[:5] == b"\0\0\0\0\x07"
    told = json.loads(Decoders(Choices(None, ""), orders()).value("t", None, found).text)
    assert told["at"].startswith("2013-01-01T00:00:00.000001")
    assert float(told["price"]) == 12.5
    assert {**told, "at": VALUE["at"], "price": 12.5, "tags": {"a": 1}} == VALUE
    assert SchemaWriter(orders(), "orders").encode_value(json.dumps(told).encode()) == found


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"id": "5"}, "is no long"),
        ({"id": 2**64}, "does not fit"),
        ({"id": True}, "is no long"),
        ({"more": 1}, "no field more"),
        ({"raw": "xyz"}, "0x and hexadecimal"),
        ({"home": {"town": "x"}}, "no type of a union"),
        ({"at": "soon"}, "Invalid isoformat"),
    ],
)
def test_json_that_does_not_fit_names_what_is_wrong(change, told):
    writer = SchemaWriter(orders(), "orders")
    with pytest.raises(Failure, match=told):
        writer.encode_value(json.dumps(VALUE | change).encode())


def test_a_field_without_default_is_needed_and_one_with_it_is_not():
    writer = SchemaWriter(orders(), "orders")
    less = {name: one for name, one in VALUE.items() if name != "paid"}
    assert writer.encode_value(json.dumps(less).encode())
    del less["id"]
    with pytest.raises(Failure, match="field id is missing"):
        writer.encode_value(json.dumps(less).encode())


def test_json_schema_is_framed_and_protobuf_is_refused():
    both = registry(j={"id": 1, "schema": "{}", "schemaType": "JSON"},
                    p={"id": 2, "schema": "syntax", "schemaType": "PROTOBUF"})  # fmt: skip
    assert SchemaWriter(both, "j").encode_value(b'{"a":1}') == b'\0\0\0\0\x01{"a":1}'
    with pytest.raises(Failure, match="values of Avro and JSON Schema are written"):
        SchemaWriter(both, "p")
    with pytest.raises(Failure, match="subject x of http://r"):
        SchemaWriter(both, "x")


def test_a_command_writes_by_a_subject_and_another_reads_it(run):
    schema = {"type": "record", "name": "Pair", "fields": [{"name": "a", "type": "long"}]}
    newest = {"id": 3, "schema": json.dumps(schema)}
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        server.answers = {"/subjects/pairs-value/versions/latest": (200, newest),
                          "/schemas/ids/3": (200, newest)}  # fmt: skip
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            at = ("--registry", f"http://127.0.0.1:{server.server_address[1]}")
            words = ("produce", "pairs", "--subject", "pairs-value")
            run(*words, *at, "--value", '{"a": 5}')
            run(*words, *at, "--null", "-k", "gone")
            done = run("consume", "pairs", "-e", "--decode", "avro", *at)
            assert done.stdout == '{"a": 5}\n\n'
            refused = run(*words, *at, "--value", '{"b": 5}', code=2)
            assert "no field b" in refused.stderr
            other = run(*words, *at, "--encoding", "hex", "--value", "00", code=2)
            assert "leave one of them out" in other.stderr
        finally:
            server.shutdown()
            thread.join()
    assert "needs a registry" in run(*words, "--value", "{}", code=2).stderr
