"""Pushes are opened by whoever looks: bombs and nonsense say why they cannot be."""

import zlib

from appliance.observer import client_metrics
from appliance.observer.client_metrics import OPENED_MAX, ClientMetrics
from appliance.ring.push_table import PushingClient, PushTable
from appliance.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress

WHO = PushingClient("alice", "loader", "127.0.0.1", "a-client", "1.2")


def looked(*payloads):
    table = PushTable(memoryview(bytearray(PushTable.bytes_needed(1))), 1)
    for n, (codec, payload) in enumerate(payloads):
        table.rows[0].write_push(bytes([n] * 16), WHO, 1000, 100, codec, False, payload)
    return table, ClientMetrics(table)


def test_every_codec_is_opened_and_only_once(monkeypatch):
    codecs = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
    _, machine = looked(*((codec, compress(codec, b"")) for codec in codecs))
    (first, *_) = found = machine.read_pushes(1000)
    assert [one.wrong for one in found] == [""] * 5
    monkeypatch.setattr(client_metrics, "samples", None)
    assert machine.read_pushes(1050)[0] is first


def test_what_cannot_be_opened_says_why():
    bomb = zlib.compressobj(9, wbits=31)
    packed = bomb.compress(bytes(OPENED_MAX + 1)) + bomb.flush()
    assert len(packed) < 1 << 16
    _, machine = looked((GZIP, packed), (ZSTD, b"nonsense"), (NONE, b"\x0a\xff"))
    for one in machine.read_pushes(1000):
        assert one.samples == () and one.wrong
