"""Following the metadata log's files: level with what is committed, whatever was deleted."""

from pathlib import Path

import pytest

from appliance.base.errors import ConfigError
from appliance.base.os_disk import OsDisk
from appliance.metadata import checkpoint
from appliance.metadata.changes import PartitionAdded, TopicAdded, TopicRemoved
from appliance.metadata.checkpoint import SnapshotId, VoterSet
from appliance.metadata.follower import LOG_FOLDER, Follower, MetadataUnreadable
from appliance.metadata.identity import Identity, decode, encode, new_uuid
from appliance.metadata.record_versions import encode as encode_record
from appliance.ring.partition_table import PartitionTable
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import NewRecord, build_batch
from appliance.wire.uuids import format_uuid

KAFKA = Path(__file__).parent.parent / "control" / "written_by_kafka"
ID = [bytes(15) + bytes((number,)) for number in range(100)]


def table() -> PartitionTable:
    return PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(64))), 64)


def topic(number: int) -> kraft.TopicRecord:
    return kraft.TopicRecord(name=f"t{number}", topic_id=ID[number])


def partition(number: int, index: int) -> kraft.PartitionRecord:
    return kraft.PartitionRecord(
        partition_id=index, topic_id=ID[number], replicas=(1,), isr=(1,), leader=1
    )


class Folder:
    """A metadata log written batch by batch, without the log store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / LOG_FOLDER
        self.log.mkdir()
        (path / "meta.properties").write_bytes(encode(Identity("c" * 22, 1, ID[9])))
        self.end = 0
        self.roll()

    def roll(self) -> None:
        self.segment = self.log / f"{self.end:020d}.log"
        self.segment.touch()

    def append(self, *records) -> int:
        values = [NewRecord(1, None, encode_record(record, 30)) for record in records]
        with self.segment.open("ab") as file:
            file.write(build_batch(values, base_offset=self.end, leader_epoch=1))
        self.end += len(records)
        return self.end

    def snapshot(self, follower: Follower) -> None:
        name = SnapshotId(follower.applied, 1)
        pieces = checkpoint.write_checkpoint(
            follower.image, name, VoterSet(), now_ms=1, last_log_timestamp=1
        )
        (self.log / name.file_name).write_bytes(b"".join(pieces))


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "topic_made", "end"), [("static", 34, 38), ("standalone", 34, 39)]
)
def test_a_folder_of_apache_kafka_is_followed(name, topic_made, end):
    follower = Follower(OsDisk(), str(KAFKA / name), table())
    changes = follower.catch_up(topic_made)
    assert {type(change) for change in changes} >= {TopicAdded, PartitionAdded}
    assert follower.image.topics_by_name["hello"].partitions[1].leader == 1
    follower.catch_up(end)
    assert follower.image.topics_by_name["hello"].partitions[1].leader == -1
    assert follower.cluster_id == "MkU3OEVBNTcwNTJENDM2Qg"
    assert follower.quorum.kraft_version == (name == "standalone")


def test_nothing_beyond_what_is_committed_is_replayed(folder):
    follower = Follower(OsDisk(), str(folder.path), table())
    assert follower.catch_up(0) == []
    first = folder.append(topic(1))
    folder.append(topic(2))
    assert follower.catch_up(first) == [TopicAdded("t1", ID[1])]
    assert follower.catch_up(first) == []
    assert follower.catch_up(folder.end) == [TopicAdded("t2", ID[2])]
    assert (follower.applied, follower.image.epoch) == (2, 1)


def test_who_replays_much_is_heard_of_meanwhile_and_only_then(folder, monkeypatch):
    monkeypatch.setattr("appliance.metadata.follower.BREATH", 5)
    before = Follower(OsDisk(), str(folder.path), table())
    for number in range(8):
        folder.append(topic(number), partition(number, 0))
    before.catch_up(folder.end)
    folder.snapshot(before)
    folder.append(topic(8))
    breaths = []
    follower = Follower(OsDisk(), str(folder.path), table())
    follower.catch_up(folder.end, lambda: breaths.append(len(follower.image.topics_by_name)))
    assert breaths == [0, 3, 5, 8], "every five records of the snapshot"
    folder.append(topic(9))
    follower.catch_up(folder.end)
    assert len(breaths) == 4 and len(follower.image.topics_by_name) == 10


def test_much_is_replayed_in_slices_and_seen_when_all_of_it_is(folder, monkeypatch):
    monkeypatch.setattr("appliance.metadata.follower.A_SLICE", 10)
    slow = Follower(OsDisk(), str(folder.path), table())
    first = folder.append(topic(1), partition(1, 0))
    slow.replay_slice(first)
    before = slow.image
    folder.append(topic(2), *(partition(2, index) for index in range(35)))
    for number in range(3, 9):
        folder.append(topic(number), partition(number, 0))
    folder.append(partition(1, 1))
    far = folder.end
    steps = 0
    assert slow.is_far(far)
    while (
        changes := slow.replay_slice(far if not steps else folder.append(topic(9 + steps)))
    ) is None:
        assert (slow.image, slow.applied) == (before, first) and slow.is_far(far)
        assert (
            list(before.topics_by_name) == ["t1"]
            and len(before.topics_by_id[ID[1]].partitions) == 1
        )
        steps += 1
    assert steps >= 5
    assert slow.applied == far, "what came meanwhile is not in it"
    fast = Follower(OsDisk(), str(folder.path), table())
    fast.catch_up(first)
    assert fast.catch_up(far) == changes and fast.image == slow.image
    slow.replay_slice(folder.end)
    fast.catch_up(folder.end)
    assert fast.image == slow.image


def test_a_log_that_goes_in_the_middle_of_the_slices_is_left_for_a_snapshot(folder, monkeypatch):
    monkeypatch.setattr("appliance.metadata.follower.A_SLICE", 10)
    monkeypatch.setattr("appliance.metadata.follower.READ_BYTES", 256)
    slow = Follower(OsDisk(), str(folder.path), table())
    first = folder.append(topic(1))
    slow.replay_slice(first)
    for number in range(2, 40):
        folder.append(topic(number))
    assert slow.replay_slice(folder.end) is None
    fast = Follower(OsDisk(), str(folder.path), table())
    fast.catch_up(folder.end)
    folder.snapshot(fast)
    folder.segment.unlink()
    while (changes := slow.replay_slice(folder.end)) is None:
        pass
    assert changes == [TopicAdded(f"t{number}", ID[number]) for number in range(2, 40)]
    assert slow.applied == folder.end and slow.image == fast.image


def test_segments_are_followed_across_a_roll(folder):
    follower = Follower(OsDisk(), str(folder.path), table())
    for number in range(10):
        folder.append(topic(number), partition(number, 0))
        if number % 3 == 2:
            folder.roll()
        if number % 4 == 3:
            follower.catch_up(folder.end)
    follower.catch_up(folder.end)
    assert list(follower.image.topics_by_name) == [f"t{number}" for number in range(10)]


def test_a_batch_larger_than_one_read_is_replayed(folder, monkeypatch):
    monkeypatch.setattr("appliance.metadata.follower.READ_BYTES", 128)
    follower = Follower(OsDisk(), str(folder.path), table())
    folder.append(topic(1), *(partition(1, index) for index in range(50)))
    folder.append(topic(2))
    follower.catch_up(folder.end)
    assert len(follower.image.topics_by_name["t1"].partitions) == 50
    assert "t2" in follower.image.topics_by_name


def test_a_jump_to_a_snapshot_tells_the_difference(folder):
    slow = Follower(OsDisk(), str(folder.path), table())
    fast = Follower(OsDisk(), str(folder.path), table())
    folder.append(topic(1), partition(1, 0))
    slow.catch_up(folder.end)
    folder.append(topic(2), kraft.RemoveTopicRecord(topic_id=ID[1]))
    folder.append(topic(3), partition(3, 0))
    fast.catch_up(folder.end)
    old = folder.segment
    folder.roll()
    folder.snapshot(fast)
    old.unlink()
    folder.append(partition(3, 1))
    changes = slow.catch_up(folder.end)
    assert changes == [
        TopicRemoved("t1", ID[1], 1),
        TopicAdded("t2", ID[2]),
        TopicAdded("t3", ID[3]),
        PartitionAdded("t3", ID[3], 0),
        PartitionAdded("t3", ID[3], 1),
    ]
    assert slow.applied == folder.end
    late = Follower(OsDisk(), str(folder.path), table())
    late.catch_up(folder.end)
    assert late.image == slow.image


def test_a_torn_snapshot_is_passed_over_while_the_log_is_there(folder):
    follower = Follower(OsDisk(), str(folder.path), table())
    folder.append(topic(1))
    follower.catch_up(folder.end)
    folder.snapshot(follower)
    path = folder.log / SnapshotId(1, 1).file_name
    path.write_bytes(path.read_bytes()[:-3])
    again = Follower(OsDisk(), str(folder.path), table())
    assert again.catch_up(1) == [TopicAdded("t1", ID[1])]


def test_committed_metadata_that_is_not_there_is_an_error(folder):
    folder.append(topic(1))
    with pytest.raises(MetadataUnreadable, match="no segment holds offset 1"):
        Follower(OsDisk(), str(folder.path), table()).catch_up(5)


def test_damaged_metadata_is_an_error(folder):
    folder.append(topic(1))
    data = bytearray(folder.segment.read_bytes())
    data[-2] ^= 1
    folder.segment.write_bytes(data)
    with pytest.raises(MetadataUnreadable, match="checksum"):
        Follower(OsDisk(), str(folder.path), table()).catch_up(1)


def test_handles_follow_the_partition_table(folder):
    rows = table()
    follower = Follower(OsDisk(), str(folder.path), rows)
    rows.add(ID[1], 0)
    folder.append(topic(1), partition(1, 0))
    follower.catch_up(folder.end)
    assert follower.handles == {(ID[1], 0): 0}
    rows.add(ID[2], 0)
    rows.retire(0, 0)
    folder.append(kraft.RemoveTopicRecord(topic_id=ID[1]), topic(2), partition(2, 0))
    handles = follower.handles
    follower.catch_up(folder.end)
    assert handles == {(ID[2], 0): 1}


def test_an_empty_folder_is_not_formatted(tmp_path):
    with pytest.raises(ConfigError, match="not formatted"):
        _ = Follower(OsDisk(), str(tmp_path), table()).identity


def test_identity_is_written_as_kafka_writes_it():
    path = KAFKA / "static" / "meta.properties"
    found = decode(path.read_bytes(), "x")
    assert found.node_id == 1
    assert decode(encode(found), "x") == found
    with pytest.raises(ConfigError, match=r"directory\.id"):
        decode(encode(found).replace(b"directory.id=", b"directory.id=-"), "x")


def test_ids_are_letters_and_digits():
    counter = iter(range(1000))
    for _ in range(20):
        text = format_uuid(
            new_uuid(lambda n: bytes((next(counter) * 37 + i) % 256 for i in range(n)))
        )
        assert text.isalnum() and len(text) == 22
