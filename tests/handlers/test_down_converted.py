"""Fetch versions 0 to 3: records as message sets, bounded, over several turns."""

import struct

import pytest
from fake_host import FakeFile, FakeHost

from appliance.base import errors
from appliance.handlers import down_converted, k01_fetch
from appliance.handlers.exchange import FileRange
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.ring.messages import READ_WAIT
from appliance.wire.compression import GZIP, ZSTD
from appliance.wire.records import NewRecord, build_batch
from tests.compat.old_requests import Reader, array, messages, string

TIME = 1_700_000_000_000


class SegmentHost(FakeHost):
    """stored: the segment of every partition. cold: so many reads find nothing in memory."""

    def __init__(self, stored=b"", partitions=4):
        super().__init__(partitions)
        self.stored = stored
        self.cold = 0

    def read_file(self, file, position, length, *, at_once):
        assert isinstance(file, FakeFile)
        if at_once and self.cold:
            self.cold -= 1
            return None
        return self.stored[position : position + length]

    def finish(self, x, pieces):
        x.answer = pieces
        assert not any(isinstance(piece, FileRange) or piece == b"" for piece in pieces)
        self.answer = b"".join(pieces)


@pytest.fixture
def handler():
    return k01_fetch.handler(FetchSessions(4, lambda: 1))


def request(version, *partitions, most=1 << 20, everything=1 << 20, wait=500, least=1):
    body = struct.pack(">iii", -1, wait, least)
    body += struct.pack(">i", everything) if version >= 3 else b""
    rows = [struct.pack(">iqi", partition, offset, most) for partition, offset in partitions]
    return body + array(string("flights") + array(*rows))


def told(host, version):
    """(error, high watermark, bytes of the set) by partition."""
    reader = Reader(host.answer)
    if version:
        assert reader.take("i") == (0,)
    assert reader.take("i") == (1,)
    assert reader.string() == "flights"
    rows = {}
    for _ in range(*reader.take("i")):
        partition, code, mark = reader.take("ihq")
        rows[partition] = code, mark, reader.sized()
    reader.end()
    return rows


def values(host, version, partition=0):
    return [one.value for one in messages(told(host, version)[partition][2])]


def found(host, length=None, first=None, position=0, mark=100):
    length = len(host.stored) if length is None else length
    return {"a": mark, "b": mark, "e": length, "f": first or length, "g": position}


def batch(base, count, size=10, **rest):
    records = [NewRecord(TIME, b"k", b"%d" % (base + n) * size) for n in range(count)]
    return build_batch(records, base_offset=base, **rest)


@pytest.mark.parametrize("version", range(4))
def test_each_version_has_its_format(handler, version):
    host = SegmentHost(batch(0, 3) + batch(3, 2, codec=GZIP))
    host.rows[0] = (5, 5, 0)
    x = host.start_encoded(handler, version, request(version, (0, 1)))
    host.complete(x, 0, **found(host, mark=5))
    code, mark, data = told(host, version)[0]
    assert (code, mark) == (0, 5)
    some = messages(data)
    assert [(one.offset, one.magic, one.attributes) for one in some] == [
        (1, version // 2, 0), (2, version // 2, 0), (4, version // 2, GZIP),
    ]  # fmt: skip


@pytest.mark.parametrize(("version", "bytes_told"), [(0, 50), (2, 50), (3, None)])
def test_what_is_beyond_a_partitions_limit_is_cut_off_before_version_3(
    handler, version, bytes_told
):
    host = SegmentHost(batch(0, 3, size=100))
    x = host.start_encoded(handler, version, request(version, (0, 0), most=50))
    host.complete(x, 0, **found(host))
    data = told(host, version)[0][2]
    if bytes_told is None:  # the first message goes whole, however long
        assert [one.offset for one in messages(data)] == [0]
    else:
        assert len(data) == bytes_told
        assert not messages(data)


def test_an_answer_is_bounded_and_partitions_take_turns(handler, monkeypatch):
    monkeypatch.setattr(down_converted, "MOST_BYTES", 2000)
    first = set()
    for number in range(4):
        host = SegmentHost(batch(0, 10, size=100))
        host.rows = dict.fromkeys((0, 1), (100, 100, 0))
        x = host.start_encoded(handler, 3, request(3, (0, 0), (1, 0)))
        x.correlation_id = number
        for partition in (0, 1):
            host.complete(x, partition, **found(host))
        sizes = {at: len(row[2]) for at, row in told(host, 3).items()}
        assert 1000 < sum(sizes.values()) <= 2000
        first.add(max(sizes, key=sizes.get))
    assert first == {0, 1}


def test_what_is_not_in_memory_is_waited_for(handler):
    host = SegmentHost(batch(0, 3))
    host.cold = 2
    x = host.start_encoded(handler, 1, request(1, (0, 0)))
    host.complete(x, 0, **found(host))
    assert host.answer is None
    assert host.waits == [(down_converted.WAITING, 1_000_000)]
    host.wake(x, down_converted.WAITING)
    host.wake(x, down_converted.WAITING)
    assert len(values(host, 1)) == 3


def test_records_behind_control_batches_are_looked_for(handler):
    """Else a consumer would ask for the same offset for ever."""
    control = batch(0, 1, control=True, producer_id=1, producer_epoch=0, base_sequence=0)
    host = SegmentHost(control + batch(1, 2))
    host.rows[0] = (3, 3, 0)
    x = host.start_encoded(handler, 1, request(1, (0, 0)))
    host.complete(x, 0, **found(host, length=len(control), mark=3))
    assert host.answer is None
    assert host.asked[-1][3] == 1, "it goes on behind the control batch"
    host.complete(x, 0, **found(host, length=len(batch(1, 2)), position=len(control), mark=3))
    assert len(values(host, 1)) == 2


def test_behind_the_last_control_batch_it_waits(handler):
    control = batch(0, 1, control=True, producer_id=1, producer_epoch=0, base_sequence=0)
    host = SegmentHost(control)
    host.rows[0] = (1, 1, 0)
    x = host.start_encoded(handler, 1, request(1, (0, 0)))
    host.complete(x, 0, **found(host, mark=1))
    assert host.answer is None
    assert host.scheduled == [500_000_000]
    assert host.asked[-1][2] & READ_WAIT
    x.handler.expire(host, x)
    assert told(host, 1) == {0: (0, 1, b"")}


def test_zstd_and_damage_are_told_as_errors(handler):
    for stored, code in (
        (batch(0, 3, codec=ZSTD), errors.UNSUPPORTED_COMPRESSION_TYPE),
        (b"\1" * 200, errors.CORRUPT_MESSAGE),
    ):
        host = SegmentHost(stored)
        x = host.start_encoded(handler, 2, request(2, (0, 0)))
        host.complete(x, 0, **found(host))
        assert told(host, 2) == {0: (code, -1, b"")}


def test_sound_batches_before_a_damaged_one_are_told(handler):
    host = SegmentHost(batch(0, 3) + b"\1" * 200)
    x = host.start_encoded(handler, 2, request(2, (0, 0)))
    host.complete(x, 0, **found(host))
    assert len(values(host, 2)) == 3


@pytest.mark.parametrize("version", range(4))
def test_unknown_partitions_and_ends(handler, version):
    host = SegmentHost()
    host.start_encoded(handler, version, request(version, (9, 0), (0, 0), wait=0))
    assert told(host, version) == {
        9: (errors.UNKNOWN_TOPIC_OR_PARTITION, -1, b""), 0: (0, 0, b""),
    }  # fmt: skip
