"""The files of segments in a folder and in a bucket, and what a cut leaves."""

from dataclasses import replace

import pytest

from appliance.remotelog.objects import (
    KINDS,
    LEADER_EPOCHS,
    LOG,
    OFFSET_INDEX,
    TRANSACTION_INDEX,
    RemoteFilesMissing,
    RemoteObjects,
)
from appliance.remotelog.records import (
    RemoteLogSegmentMetadataRecord,
    RemoteSegmentId,
    RemoteTopicPartition,
    SegmentLeaderEpoch,
)
from console.model.asking.failure import Failure
from console.model.backup.store import opened
from tests.bucket_server import serving

TOPIC_ID, SEGMENT_ID = bytes(range(16)), bytes(range(100, 116))
BYTES = bytes(range(256)) * 16
ONE = RemoteLogSegmentMetadataRecord(
    remote_log_segment_id=RemoteSegmentId(
        topic_id_partition=RemoteTopicPartition(name="t", id=TOPIC_ID, partition=0), id=SEGMENT_ID
    ),
    start_offset=5,
    end_offset=9,
    broker_id=0,
    max_timestamp_ms=0,
    event_timestamp_ms=0,
    segment_leader_epochs=(SegmentLeaderEpoch(leader_epoch=0, offset=5),),
    segment_size_in_bytes=len(BYTES),
    custom_metadata=None,
    remote_log_segment_state=0,
)
PARTS = {kind: kind.encode() for kind in KINDS} | {LOG: BYTES}


def pieces(parts=PARTS):
    return {kind: [data[:7], data[7:]] for kind, data in parts.items()}


@pytest.fixture(params=["folder", "bucket"])
def store(request, tmp_path, monkeypatch):
    if request.param == "folder":
        yield opened(str(tmp_path / "remote"))
        return
    with serving(monkeypatch) as url:
        yield opened(url)


def test_a_segment_is_kept_read_in_ranges_and_removed(store):
    room = RemoteObjects(store)
    assert room.list_segments(TOPIC_ID, 0).whole == {}
    room.copy_segment(ONE, pieces())
    room.copy_segment(ONE, pieces())
    found = room.list_segments(TOPIC_ID, 0)
    assert (found.whole, found.orphans) == ({(5, SEGMENT_ID): len(BYTES)}, [])
    assert room.list_segments(TOPIC_ID, 1).whole == {}
    assert room.fetch_range(ONE, 0, 10) == BYTES[:10]
    assert room.fetch_range(ONE, 1000, 2000) == BYTES[1000:3000]
    assert room.fetch_range(ONE, len(BYTES) - 3, 100) == BYTES[-3:]
    assert room.fetch_range(ONE, len(BYTES), 100) == b""
    for kind in KINDS - {LOG}:
        assert room.fetch_index(ONE, kind) == PARTS[kind]
    room.delete_segment(ONE)
    room.delete_segment(ONE)
    assert store.names("") == {}
    with pytest.raises(Failure):
        room.fetch_range(ONE, 0, 10)
    with pytest.raises(Failure):
        room.fetch_index(ONE, OFFSET_INDEX)


@pytest.mark.parametrize("store", ["bucket"], indirect=True)
def test_a_range_is_one_request_to_a_bucket(store, monkeypatch):
    obstore = pytest.importorskip("obstore")
    RemoteObjects(store).copy_segment(ONE, pieces())
    asked = []
    for name in ("head", "get", "get_range", "list"):
        real = getattr(obstore, name)

        def counted(*args, name=name, real=real, **options):
            asked.append(name)
            return real(*args, **options)

        monkeypatch.setattr(obstore, name, counted)
    assert RemoteObjects(store).fetch_range(ONE, 100, 50) == BYTES[100:150]
    assert asked == ["get_range"]


@pytest.mark.parametrize("store", ["bucket"], indirect=True)
def test_a_bucket_that_is_not_there_refuses_a_range(store):
    strange = opened("s3://nowhere/events")
    with pytest.raises(Failure):
        strange.read_range("a", 0, 5)


def test_a_log_that_is_shorter_than_told_is_not_its_end(store):
    room = RemoteObjects(store)
    room.copy_segment(ONE, pieces(PARTS | {LOG: BYTES[:50]}))
    assert room.fetch_range(ONE, 0, 50) == BYTES[:50]
    for at in (40, 50, 60):
        with pytest.raises(RemoteFilesMissing):
            room.fetch_range(ONE, at, 20)


def test_a_segment_without_aborted_transactions_has_no_index_of_them(store):
    room, one = RemoteObjects(store), replace(ONE, txn_index_empty=True)
    room.copy_segment(
        one, pieces({kind: PARTS[kind] for kind in KINDS if kind != TRANSACTION_INDEX})
    )
    assert room.fetch_index(one, TRANSACTION_INDEX) == b""
    assert len(room.list_segments(TOPIC_ID, 0).whole) == 1


class Cut(Exception):
    pass


class CutOff:
    """A store that ends after so many changes."""

    def __init__(self, store, left):
        self._store, self._left = store, left

    def write_object(self, name, pieces):
        self._count()
        self._store.write_object(name, pieces)

    def delete(self, name):
        self._count()
        self._store.delete(name)

    def _count(self):
        if not self._left:
            raise Cut
        self._left -= 1


@pytest.mark.parametrize("left", range(len(KINDS)))
@pytest.mark.parametrize("store", ["folder"], indirect=True)
def test_a_copy_that_is_cut_off_leaves_no_segment_but_orphans(store, left):
    with pytest.raises(Cut):
        RemoteObjects(CutOff(store, left)).copy_segment(ONE, pieces())
    room = RemoteObjects(store)
    found = room.list_segments(TOPIC_ID, 0)
    assert found.whole == {}
    assert len(found.orphans) == left
    room.copy_segment(ONE, pieces())
    found = room.list_segments(TOPIC_ID, 0)
    assert len(found.whole) == 1
    assert found.orphans == []


@pytest.mark.parametrize("left", range(1, len(KINDS)))
@pytest.mark.parametrize("store", ["folder"], indirect=True)
def test_a_deletion_that_is_cut_off_leaves_orphans_and_goes_on(store, left):
    RemoteObjects(store).copy_segment(ONE, pieces())
    with pytest.raises(Cut):
        RemoteObjects(CutOff(store, left)).delete_segment(ONE)
    room = RemoteObjects(store)
    found = room.list_segments(TOPIC_ID, 0)
    assert (found.whole, len(found.orphans)) == ({}, len(KINDS) - left)
    room.delete_segment(ONE)
    assert store.names("") == {}


@pytest.mark.parametrize("store", ["folder"], indirect=True)
def test_strangers_files_are_orphans(store):
    room = RemoteObjects(store)
    room.copy_segment(ONE, pieces())
    odd = [
        "readme", "5-x.log", f"{5:020d}-{'z' * 32}.log", f"{'٣' * 20}-{SEGMENT_ID.hex()}.log",
        f"{5:020d}-{SEGMENT_ID.hex()}.exe", f"{6:020d}-{SEGMENT_ID.hex()}.{LEADER_EPOCHS}",
    ]  # fmt: skip
    for name in odd:
        store.write_object(f"{TOPIC_ID.hex()}/0/{name}", [b"x"])
    found = room.list_segments(TOPIC_ID, 0)
    assert list(found.whole) == [(5, SEGMENT_ID)]
    assert sorted(one.rpartition("/")[2] for one in found.orphans) == sorted(odd)
