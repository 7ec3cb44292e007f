"""The small files beside a log: offset index, time index, leader epochs, partition metadata."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim.disk import SimDisk

from appliance.base.errors import StorageFailed
from appliance.logstore import files
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.indexes import OffsetIndex, TimeIndex
from appliance.logstore.partition_metadata import read_topic_id, write_metadata


def test_the_indexes_are_kafka_s_byte_for_byte():
    index = OffsetIndex()
    index.append(5, 4096)
    index.append(300, 70_000)
    assert index.pending().hex() == "00000005000010000000012c00011170"
    times = TimeIndex()
    times.append(1_700_000_000_000, 5)
    times.append(1_700_000_000_000, 9)  # not newer: no entry
    times.append(1_700_000_000_001, 300)
    assert times.pending().hex() == "0000018bcfe56800000000050000018bcfe568010000012c"


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9000)), max_size=40), st.data())
def test_an_offset_index_finds_the_last_entry_before(steps, data):
    index = OffsetIndex()
    offset = position = 0
    entries = []
    for by, size in steps:
        offset, position = offset + by, position + size
        entries.append((offset, position))
        index.append(offset, position)
    zeros = data.draw(st.integers(0, 30))
    again = OffsetIndex(index.pending() + bytes(zeros))  # Kafka reserves space with zeros
    assert list(zip(again.offsets, again.positions, strict=True)) == entries
    for target in (0, 1, offset // 2, offset, offset + 1):
        at = bisect_right(entries, (target, 1 << 40)) - 1
        assert again.position(target) == (entries[at][1] if at >= 0 else 0)
    again.keep_sound(position)
    assert len(again.offsets) == len([e for e in entries if e[1] < position])
    assert again.written == len(again.offsets)


def test_an_index_that_does_not_ascend_is_dropped():
    for numbers in ([5, 10, 5, 20], [5, 10, 6, 10], [-1, 5]):
        index = OffsetIndex(b"".join(n.to_bytes(4, "big", signed=True) for n in numbers))
        index.keep_sound(1 << 30)
        assert not index.offsets


def test_epochs_end_where_the_next_begins():
    epochs = LeaderEpochs()
    for epoch, start in ((2, 0), (2, 5), (4, 10), (7, 10), (9, 30)):
        epochs.assign(epoch, start)
    assert (epochs.epochs, epochs.starts) == ([2, 7, 9], [0, 10, 30])
    assert epochs.end_of(9, 99) == (9, 99)
    assert epochs.end_of(8, 99) == (7, 30)
    assert epochs.end_of(7, 99) == (7, 30)
    assert epochs.end_of(4, 99) == (2, 10)
    assert epochs.end_of(1, 99) == (1, 0)
    assert epochs.end_of(10, 99) == (-1, -1)
    assert epochs.end_of(-1, 99) == (-1, -1)
    assert LeaderEpochs().end_of(0, 99) == (-1, -1)
    assert epochs.encode() == b"0\n3\n2 0\n7 10\n9 30\n"
    epochs.cut_start(12)
    assert (epochs.epochs, epochs.starts) == ([7, 9], [12, 30])
    epochs.cut_end(30)
    assert (epochs.epochs, epochs.starts) == ([7], [12])


@given(st.binary(max_size=40) | st.integers(0, 19).map(lambda n: b"0\n3\n2 0\n7 10\n9 30\n"[:n]))
def test_a_damaged_epoch_file_counts_as_none(data):
    assert LeaderEpochs.decode(data) is None or data == LeaderEpochs.decode(data).encode()


def test_partition_metadata_is_kafka_s():
    disk = SimDisk()
    disk.mkdir("/t-0")
    topic_id = bytes(range(16))
    write_metadata(disk, "/t-0", topic_id)
    assert disk._node("/t-0/partition.metadata").data == (
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    )
    assert read_topic_id(disk, "/t-0") == topic_id
    disk._node("/t-0/partition.metadata").data[:] = b""
    assert read_topic_id(disk, "/t-0") is None
    with pytest.raises(StorageFailed):
        read_topic_id(disk, "/none/such") or disk.open_file("/none/such")


def test_names():
    assert files.offset_of("00000000000000000042.log", ".log") == 42
    for name in ("42.log", "0000000000000000004x.log", "00000000000000000042.index", "log"):
        assert files.offset_of(name, ".log") == -1
    renamed = files.deleted_folder("/d/" + "t" * 249 + "-12", "f" * 32)
    name = renamed.rpartition("/")[2]
    assert len(name) == 255
    assert name.endswith("-12." + "f" * 32 + "-delete")
