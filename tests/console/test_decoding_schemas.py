"""Avro and Protobuf: what their libraries write is read, by a file or a registry, in the wire
format of registries too; what cannot be bounded is refused."""

import base64
import io
import json
import threading
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.model.asking.failure import Failure
from console.model.decoding.choosing import Decoders
from console.model.decoding.decoded import AVRO, HEX, JSON, PROTOBUF, VALUE, Unfit
from console.model.decoding.memory import Choice, Choices
from console.model.decoding.registry import Registry
from console.model.decoding.schemas import load

fastavro = pytest.importorskip("fastavro")
descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")

PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
ORDER = {
    "type": "record", "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "who", "type": ["null", "string"]},
        {"name": "price", "type": PRICE},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "raw", "type": {"type": "fixed", "name": "Two", "size": 2}},
    ],
}  # fmt: skip
NODE = {
    "type": "record", "name": "Node",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
}  # fmt: skip
KNOT = {
    "type": "record",
    "name": "K",
    "fields": [{"name": "k", "type": {"type": "array", "items": "K"}}],
}
LONG, STRING, MESSAGE, ENUM = 3, 9, 11, 14


def proto():
    """message Order { int64 id = 1; repeated string tags = 2; Part part = 3; Color color = 4;
    map<string, sint64> count = 5; bytes raw = 6; message Part { bytes b = 1; } }, and Other."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=LONG, label=1)
    order.field.add(name="tags", number=2, type=STRING, label=3)
    order.field.add(name="part", number=3, type=MESSAGE, label=1, type_name=".shop.Order.Part")
    order.field.add(name="color", number=4, type=ENUM, label=1, type_name=".shop.Color")
    order.field.add(
        name="count", number=5, type=MESSAGE, label=3, type_name=".shop.Order.CountEntry"
    )
    part = order.nested_type.add(name="Part")
    part.field.add(name="b", number=1, type=12, label=1)
    entry = order.nested_type.add(name="CountEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=STRING, label=1)
    entry.field.add(name="value", number=2, type=18, label=1)
    color = file.enum_type.add(name="Color")
    color.value.add(name="NONE", number=0)
    color.value.add(name="RED", number=1)
    file.message_type.add(name="Other").field.add(name="x", number=1, type=LONG, label=1)
    return file


@pytest.fixture
def files(tmp_path):
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    (tmp_path / "node.avsc").write_text(json.dumps(NODE))
    descriptors = descriptor_pb2.FileDescriptorSet(file=[proto()])
    (tmp_path / "order.desc").write_bytes(descriptors.SerializeToString())
    return tmp_path


def read(data, decoder, schema="", message="", registry=None):
    choice = Choice(decoder, str(schema), message)
    return Decoders(Choices(None, "", {VALUE: choice}), registry).value("t", None, data)


def avro(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def test_avro_of_a_file(files):
    data = avro(
        ORDER,
        {"id": -(2**63), "who": "Ann", "price": Decimal("-0.01"), "at": 1_000_000_000_123,
         "tags": ["x"], "raw": b"\xab\xcd"},
    )  # fmt: skip
    found = read(data, AVRO, files / "order.avsc")
    assert found.decoder == AVRO
    assert found.text == (
        '{"id": -9223372036854775808, "who": "Ann", "price": -0.01,'
        ' "at": "2001-09-09T01:46:40.123Z", "tags": ["x"], "raw": "0xabcd"}'
    )


def test_bytes_that_were_written_down_are_read(files):
    """As the specifications of both formats have them."""
    fields = [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]
    schema = {"type": "record", "name": "test", "fields": fields}
    (files / "spec.avsc").write_text(json.dumps(schema))
    assert read(bytes.fromhex("3606666f6f"), AVRO, files / "spec.avsc").tree == {
        "a": 27,
        "b": "foo",
    }
    found = read(bytes.fromhex("089601"), PROTOBUF, files / "order.desc", "shop.Other")
    assert found.text == '{"x": 150}'


def test_protobuf_of_a_file(files):
    message = "088080808080808080800112017812017a1a030a01ff20012a050a0161100b3a01794005"
    found = read(bytes.fromhex(message), PROTOBUF, files / "order.desc", "shop.Order")
    assert found.decoder == PROTOBUF
    assert found.tree == {
        "id": -(2**63), "tags": ["x", "z"], "part": {"b": "0xff"}, "color": "RED",
        "count": {"a": -6}, "7": "0x79", "8": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none.avsc", "cannot be read"),
        ("order.proto", "descriptors are needed"),
        ("order.desc", "shop.Order, shop.Other"),
        ("what.txt", "does not show the kind of schema"),
        ("bad.avsc", "no Avro schema"),
        ("bad.desc", "no set of Protobuf descriptors"),
        ("nulls.avsc", "array of what takes no bytes"),
        ("endless.avsc", "its values never end"),
        ("deep.avsc", "no Avro schema"),
    ],
)
def test_a_schema_file_that_is_of_no_use_is_told(files, name, why):
    endless = {"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}
    contents = {
        "order.proto": b"", "what.txt": b"", "bad.avsc": b'{"type": "x"}', "bad.desc": b"\xff\xff",
        "nulls.avsc": b'{"type": "array", "items": "null"}',
        "endless.avsc": json.dumps(endless).encode(),
        "deep.avsc": b'{"type":"array","items":' * 5000,
    }  # fmt: skip
    if name in contents:
        (files / name).write_bytes(contents[name])
    with pytest.raises(Failure) as told:
        load(str(files / name))
    assert why in f"{told.value.message} {told.value.hint}"


def test_a_schema_that_refers_to_itself_is_read(files):
    value = {"v": 1, "next": {"v": 2, "next": None}}
    assert read(avro(NODE, value), AVRO, files / "node.avsc").tree == value
    found = read(b"\x02" * 4096, AVRO, files / "node.avsc")
    assert found.reason == "avro: it is nested too deeply"


def test_a_schema_whose_records_are_one_in_another_has_a_bound(files):
    """Depth-first, and each named before it is used: neither is there to be seen at one look."""
    parts = [{"type": "record", "name": "R0", "fields": []}]
    parts += [
        {"type": "record", "name": f"R{n}", "fields": [{"name": "r", "type": f"R{n - 1}"}]}
        for n in range(1, 5000)
    ]
    (files / "chain.avsc").write_text(json.dumps(parts))
    with pytest.raises(Failure, match="nested too deeply"):
        load(str(files / "chain.avsc"))


@given(data=st.binary(max_size=80), head=st.sampled_from([b"", b"\0\0\0\0\x07", b"\0\0\0\0\x07\0"]))
def test_hostile_bytes_raise_nothing(tmp_path_factory, data, head):
    folder = tmp_path_factory.getbasetemp()
    (folder / "order.avsc").write_text(json.dumps(ORDER))
    (folder / "node.avsc").write_text(json.dumps(NODE))
    descriptors = descriptor_pb2.FileDescriptorSet(file=[proto()])
    (folder / "order.desc").write_bytes(descriptors.SerializeToString())
    for decoder, name, message in (
        (AVRO, "order.avsc", ""), (AVRO, "node.avsc", ""), (PROTOBUF, "order.desc", "shop.Order"),
    ):  # fmt: skip
        found = read(head + data, decoder, folder / name, message)
        assert found.data == head + data
        assert found.decoder == decoder or (found.decoder == HEX and found.reason)


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (ORDER, b"\x02\x02" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (ORDER, b"\xff" * (1 << 20)),
        (NODE, b"\x02" * (1 << 20)),
        (NODE, b"\x02" * 4096),
        (NODE, b"\xff" * (1 << 16)),
        (KNOT, b"\x02" * 2000),
        ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ({"type": "map", "values": "null"}, b"\x02\x00" * (1 << 19)),
        ({"type": "array", "items": ["null"]}, b"\x80\x80\x80\x01" + b"\0" * (1 << 20)),
        ("bytes", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01abc"),
        (PRICE, b"\x80\x80\x80\x01" + b"\x7f" * (1 << 20)),
    ],
)  # fmt: skip
def test_avro_bombs_are_shown_all_the_same(tmp_path, schema, data):
    (tmp_path / "s.avsc").write_text(json.dumps(schema))
    found = read(data, AVRO, tmp_path / "s.avsc")
    assert found.data == data
    assert found.decoder == AVRO or found.reason


@pytest.mark.parametrize(
    "data", [b"\x1a\xff\xff\xff\xff\x0f", b"\x12\x00" * (1 << 19), b"\x3b" * (1 << 20)]
)
def test_protobuf_bombs_are_shown_all_the_same(files, data):
    found = read(data, PROTOBUF, files / "order.desc", "shop.Order")
    assert found.data == data
    assert found.decoder == PROTOBUF or found.reason


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        status, answer = self.server.answers.get(self.path, (404, {"error_code": 40403}))
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def door():
    """A registry on loopback: `answers` by path, `asked` in order."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.answers, server.asked = {}, []
        server.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def head(number):
    return b"\0" + number.to_bytes(4, "big")


def test_a_registry_says_what_the_number_means(door):
    address = {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}
    person = {"type": "record", "name": "Person", "fields": [{"name": "home", "type": "Address"}]}
    reference = [{"name": "Address", "subject": "addr/ess", "version": 2}]
    main = proto()
    main.dependency.append("google/protobuf/timestamp.proto")
    main.dependency.append("other.proto")
    inner = descriptor_pb2.FileDescriptorProto(name="x", syntax="proto3")
    inner.message_type.add(name="Inner")
    texts = [base64.b64encode(one.SerializeToString()).decode() for one in (main, inner)]
    door.answers = {
        "/schemas/ids/7": (200, {"schema": json.dumps(person), "references": reference}),
        "/subjects/addr%2Fess/versions/2": (200, {"schema": json.dumps(address)}),
        "/schemas/ids/8": (200, {"schema": "syntax", "schemaType": "PROTOBUF"}),
        "/schemas/ids/8?format=serialized": (
            200, {"schema": texts[0], "schemaType": "PROTOBUF",
                  "references": [{"name": "other.proto", "subject": "o", "version": 1}]},
        ),
        "/subjects/o/versions/1?format=serialized": (200, {"schema": texts[1]}),
        "/schemas/ids/9": (200, {"schema": "{}", "schemaType": "JSON"}),
        "/schemas/ids/10": (200, {"schema": "\"long\""}),
    }  # fmt: skip
    both = Decoders(Choices(None, ""), Registry(door.url))
    cases = [
        (head(7) + b"\x04Ny", AVRO, '{"home": {"city": "Ny"}}'),
        (head(8) + b"\x00\x08\x05", PROTOBUF, '{"id": 5}'),
        (head(8) + b"\x02\x02\x08\x96\x01", PROTOBUF, '{"x": 150}'),
        (head(8) + b"\x04\x00\x00\x0a\x01\x01", PROTOBUF, '{"b": "0x01"}'),
        (head(9) + b'{"a": 1.10}', JSON, '{"a": 1.10}'),
        (head(10) + b"\x01", AVRO, "-1"),
    ]
    for data, decoder, text in cases * 2:
        found = both.value("t", None, data)
        assert (found.decoder, found.text, found.data) == (decoder, text, data), found
    assert len(door.asked) == len(set(door.asked)), "each was asked for once"
    assert both.value("t", None, head(8) + b"\x02\x09\x08\x05").decoder == HEX


def test_what_a_registry_cannot_say_is_told_and_asked_again_later(door):
    now = [0.0]
    door.answers = {
        "/schemas/ids/2": (500, b""),
        "/schemas/ids/3": (200, b"no json"),
        "/schemas/ids/4": (200, {"schema": "message", "schemaType": "PROTOBUF"}),
        "/schemas/ids/4?format=serialized": (200, {"schema": "message {"}),
        "/schemas/ids/5": (200, {"schema": "{}", "schemaType": "THRIFT"}),
        "/schemas/ids/6": (200, {"schema": '"int"', "references": [{"name": 1}]}),
    }  # fmt: skip
    registry = Registry(door.url, now_s=lambda: now[0])
    for number, why in (
        (1, "does not know it"), (2, "answered 500"), (3, "did not answer as one does"),
        (4, "source only"), (5, "THRIFT"), (6, "references"),
    ):  # fmt: skip
        found = read(head(number) + b"\x02", AVRO, registry=registry)
        assert found.decoder == HEX
        assert why in found.reason
    asked = len(door.asked)
    read(head(1) + b"\x02", AVRO, registry=registry)
    assert len(door.asked) == asked
    now[0] = 31.0
    door.answers["/schemas/ids/1"] = (200, {"schema": '"int"'})
    assert read(head(1) + b"\x02", AVRO, registry=registry).text == "1"


def test_a_registry_that_is_not_there_costs_its_patience_once():
    asked = []

    def get(url):
        asked.append(url)
        raise ConnectionRefusedError("refused")

    registry = Registry("http://user:pass@nowhere:1/base/", get)
    assert registry.url == "http://nowhere:1/base"
    for _ in range(3):
        with pytest.raises(Unfit, match="refused"):
            registry.schema(5)
    assert asked == ["http://nowhere:1/base/schemas/ids/5"]
    with pytest.raises(Failure, match="no registry's address"):
        Registry("localhost:8081")


def test_without_a_registry_it_is_told_how_to_name_one():
    told = Decoders(Choices(None, "")).why("t", VALUE, None, head(42) + b"\x02")
    assert "schema 42: --registry" in told[0].why
    assert "it needs a schema" in read(b"\x01\x02", AVRO).reason
