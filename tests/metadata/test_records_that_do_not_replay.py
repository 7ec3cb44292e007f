"""A record of the metadata log that does not replay is told and skipped, the controller alone ends
of it. What is damaged on the disk is read again, or passed by a snapshot."""

import pytest
from test_follower import ID, Folder, partition, table, topic

from appliance.base.os_disk import OsDisk
from appliance.metadata.follower import Follower, MetadataUnreadable
from appliance.metadata.record_versions import encode as encode_record
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import NewRecord, build_batch


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


class Told(list):
    def __call__(self, offset, kind, cause):
        self.append((offset, kind, str(cause)))


def follower(folder, told=None):
    return Follower(OsDisk(), str(folder.path), table(), told)


def append_bytes(folder, *values):
    """A batch of records whose bytes are given."""
    with folder.segment.open("ab") as file:
        records = [NewRecord(1, None, value) for value in values]
        file.write(build_batch(records, base_offset=folder.end, leader_epoch=1))
    folder.end += len(values)


BAD = {
    "TopicRecord": topic(1),
    "PartitionRecord": partition(7, 0),
    "RemoveTopicRecord": kraft.RemoveTopicRecord(topic_id=ID[7]),
    "PartitionChangeRecord": kraft.PartitionChangeRecord(partition_id=3, topic_id=ID[1]),
    "FenceBrokerRecord": kraft.FenceBrokerRecord(id=9, epoch=1),
    "EndTransactionRecord": kraft.EndTransactionRecord(),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_record_that_contradicts_others_is_skipped(folder, kind):
    told = Told()
    one = follower(folder, told)
    folder.append(topic(1), BAD[kind], topic(2))
    one.catch_up(folder.end)
    assert set(one.image.topics_by_name) == {"t1", "t2"} and one.applied == folder.end == 3
    assert [(offset, name) for offset, name, _ in told] == [(1, kind)] and one.faults == 1
    folder.append(topic(3))
    one.replay_slice(folder.end)
    assert "t3" in one.image.topics_by_name and len(told) == 1, "it is told once"


def test_it_ends_the_controller_with_its_offset(folder):
    folder.append(topic(1), topic(1))
    with pytest.raises(MetadataUnreadable, match=r"offset 1: topic t1 is created twice"):
        follower(folder).catch_up(folder.end)


@pytest.mark.parametrize("malformed", [b"", b"\x01", b"\x01\x02\x00\xff\xff\xff", b"\xff" * 30])
def test_a_record_that_is_malformed_is_skipped(folder, malformed):
    told = Told()
    one = follower(folder, told)
    append_bytes(folder, encode_record(topic(1), 30), malformed, encode_record(topic(2), 30))
    one.catch_up(folder.end)
    assert set(one.image.topics_by_name) == {"t1", "t2"}
    assert [offset for offset, _, _ in told] == [1] and one.faults == 1
    with pytest.raises(MetadataUnreadable, match="offset 1"):
        follower(folder).catch_up(folder.end)


def test_of_a_metadata_transaction_the_others_count(folder):
    told = Told()
    one = follower(folder, told)
    begin, end = kraft.BeginTransactionRecord(name="x"), kraft.EndTransactionRecord()
    folder.append(begin, topic(1), topic(1), topic(2), partition(2, 0), end)
    one.catch_up(folder.end)
    assert set(one.image.topics_by_name) == {"t1", "t2"}
    assert one.image.partition("t2", 0) is not None and one.image.pending is None
    assert [name for _, name, _ in told] == ["TopicRecord"]


def test_in_slices_it_is_skipped_as_well(folder, monkeypatch):
    monkeypatch.setattr("appliance.metadata.follower.A_SLICE", 3)
    told = Told()
    one = follower(folder, told)
    folder.append(topic(0))
    one.replay_slice(folder.end)
    for number in range(1, 9):
        folder.append(topic(number), partition(number, number))
    while one.replay_slice(folder.end) is None:
        pass
    assert len(one.image.topics_by_name) == 9 and len(told) == one.faults == 8


def test_in_a_snapshot_it_is_skipped_as_well(folder, monkeypatch):
    sound = follower(folder)
    folder.append(topic(1), topic(2), topic(3))
    sound.catch_up(folder.end)
    folder.snapshot(sound)
    told = Told()
    one = follower(folder, told)
    whole = kraft.decode

    def fails_of_t2(value):
        record = whole(value)
        if getattr(record, "name", "") == "t2":
            raise KeyError("planted")
        return record

    monkeypatch.setattr(kraft, "decode", fails_of_t2)
    one.catch_up(folder.end)
    assert set(one.image.topics_by_name) == {"t1", "t3"} and one.faults == len(told) == 1
    with pytest.raises(MetadataUnreadable, match="planted"):
        follower(folder).catch_up(folder.end)


def damage(folder, at=-2):
    data = bytearray(folder.segment.read_bytes())
    data[at] ^= 1
    folder.segment.write_bytes(data)


@pytest.mark.parametrize("sliced", [False, True])
def test_damaged_bytes_are_read_again_until_they_are_sound(folder, sliced, monkeypatch):
    if sliced:
        monkeypatch.setattr("appliance.metadata.follower.A_SLICE", 1)
    one = follower(folder, Told())
    folder.append(topic(1))
    one.catch_up(folder.end)
    folder.append(topic(2))
    folder.append(topic(3))
    damage(folder)

    def read():
        while (changes := one.replay_slice(folder.end)) is None:
            pass
        return changes

    for _ in range(3):
        with pytest.raises(MetadataUnreadable, match="checksum"):
            read()
    damage(folder)
    read()
    assert set(one.image.topics_by_name) == {"t1", "t2", "t3"} and one.faults == 0


@pytest.mark.parametrize("sliced", [False, True])
def test_damaged_bytes_are_passed_by_a_snapshot(folder, sliced, monkeypatch):
    if sliced:
        monkeypatch.setattr("appliance.metadata.follower.A_SLICE", 1)
    one, sound = follower(folder, Told()), follower(folder)
    folder.append(topic(1))
    one.catch_up(folder.end)
    folder.append(topic(2))
    folder.append(topic(3))
    sound.catch_up(folder.end)
    damage(folder)
    folder.snapshot(sound)
    found = []
    while (changes := one.replay_slice(folder.end)) is None:
        pass
    found += changes
    assert one.image.topics_by_name == sound.image.topics_by_name and one.applied == folder.end
    assert sorted(change.name for change in found) == ["t2", "t3"], "each change is told once"
