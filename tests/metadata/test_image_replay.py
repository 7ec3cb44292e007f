"""Replaying Kafka's own logs and snapshots, and what must hold for any sequence of records."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.metadata import checkpoint
from appliance.metadata.diff import changes_between
from appliance.metadata.image import (
    ConfigChanged,
    MetadataImage,
    PartitionAdded,
    TopicAdded,
    TopicRemoved,
)
from appliance.metadata.record_versions import encode
from appliance.metadata.replay import ReplayFailed
from appliance.metadata.snapshot import to_records
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import iter_records

KAFKA = Path(__file__).parent.parent / "control" / "written_by_kafka"


def state(image: MetadataImage) -> dict:
    """Everything but where in the log it is."""
    return {
        key: value
        for key, value in vars(image).items()
        if key not in ("applied_offset", "epoch", "_owner")
    }


def replayed(records) -> MetadataImage:
    image = MetadataImage()
    for offset, record in enumerate(records):
        image.apply(offset, record)
    return image


def kafka_log(name: str) -> list:
    data = (KAFKA / name / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes()
    return [
        (record.offset, kraft.decode(record.value))
        for header, batch in checkpoint.batches(memoryview(data))
        if not header.is_control
        for record in iter_records(batch)
    ]


@pytest.mark.parametrize("name", ["static", "standalone"])
def test_a_log_of_apache_kafka_replays(name):
    image = MetadataImage()
    for offset, record in kafka_log(name):
        image.apply(offset, record)
    assert image.metadata_version == 30
    topic = image.topics_by_name["hello"]
    assert image.topics_by_id[topic.topic_id] is topic
    assert [p.replicas for p in topic.partitions] == [(1,), (1,)]
    assert topic.partitions[0].leader == -1, "its node was shut down"
    assert topic.partitions[0].eligible_leader_replicas == (1,)
    assert topic.partitions[0].leader_epoch == 1 and topic.partitions[0].partition_epoch == 1
    assert image.brokers[1].fenced and image.brokers[1].in_controlled_shutdown
    assert image.brokers[1].endpoints[0].port == 39092
    assert image.config(4, "") == {"min.insync.replicas": "1"}
    assert image.skipped == 0


@pytest.mark.parametrize("name", ["static", "standalone"])
def test_a_snapshot_of_a_kafka_log_gives_the_same_image(name):
    image = MetadataImage()
    for offset, record in kafka_log(name):
        image.apply(offset, record)
    assert state(replayed(to_records(image))) == state(image)


def test_the_voters_of_a_standalone_folder_are_read():
    path = KAFKA / "standalone" / "__cluster_metadata-0" / f"{0:020d}-{0:010d}.checkpoint"
    found = checkpoint.read(path.read_bytes())
    assert found.quorum.kraft_version == 1
    assert found.quorum.record is not None
    assert [voter.voter_id for voter in found.quorum.record.voters] == [1]


def test_a_transaction_counts_as_a_whole_or_not_at_all():
    image = MetadataImage()
    topic = kraft.TopicRecord(name="a", topic_id=bytes(15) + b"a")
    assert image.apply(0, kraft.BeginTransactionRecord()) == []
    assert image.apply(1, topic) == []
    assert image.topics_by_name == {}
    assert image.apply(2, kraft.AbortTransactionRecord()) == []
    assert image.topics_by_name == {}
    image.apply(3, kraft.BeginTransactionRecord())
    image.apply(4, topic)
    assert image.apply(5, kraft.EndTransactionRecord()) == [TopicAdded("a", topic.topic_id)]


def test_a_record_that_contradicts_the_image_is_refused():
    image = MetadataImage()
    with pytest.raises(ReplayFailed, match="no topic has the id"):
        image.apply(0, kraft.RemoveTopicRecord(topic_id=bytes(16)))
    image.apply(1, kraft.TopicRecord(name="a", topic_id=bytes(16)))
    with pytest.raises(ReplayFailed, match="created twice"):
        image.apply(2, kraft.TopicRecord(name="a", topic_id=b"x" * 16))


def test_an_unknown_kind_of_record_is_counted():
    image = MetadataImage()
    assert image.apply(7, object()) == []
    assert (image.skipped, image.applied_offset) == (1, 7)


# Any sequence of sensible records ----------------------------------------------------------------

IDS = [bytes(15) + bytes((number,)) for number in range(4)]
PARTITION = st.builds(
    kraft.PartitionChangeRecord,
    partition_id=st.integers(0, 2),
    topic_id=st.sampled_from(IDS),
    leader=st.sampled_from([-2, -1, 1]),
    isr=st.sampled_from([None, (), (1,)]),
    eligible_leader_replicas=st.sampled_from([None, (), (1,)]),
    last_known_elr=st.sampled_from([None, (1,)]),
    leader_recovery_state=st.sampled_from([-1, 0, 1]),
)
RECORD = st.one_of(
    st.builds(kraft.TopicRecord, name=st.sampled_from("abcd"), topic_id=st.sampled_from(IDS)),
    st.builds(kraft.RemoveTopicRecord, topic_id=st.sampled_from(IDS)),
    st.builds(
        kraft.PartitionRecord,
        partition_id=st.integers(0, 2),
        topic_id=st.sampled_from(IDS),
        replicas=st.just((1,)),
        isr=st.just((1,)),
        leader=st.just(1),
        leader_epoch=st.integers(0, 9),
        partition_epoch=st.integers(0, 9),
        directories=st.just((bytes(16),)),
    ),
    PARTITION,
    st.builds(
        kraft.ConfigRecord,
        resource_type=st.sampled_from([2, 4]),
        resource_name=st.sampled_from(["", "a", "b"]),
        name=st.sampled_from(["x", "y"]),
        value=st.sampled_from([None, "1", "2"]),
    ),
    st.builds(
        kraft.FeatureLevelRecord,
        name=st.sampled_from(["share.version", "group.version"]),
        feature_level=st.sampled_from([0, 1, 2]),
    ),
    st.builds(
        kraft.ClientQuotaRecord,
        entity=st.sampled_from(
            [(kraft.EntityData(entity_type="user", entity_name=name),) for name in ("u", None)]
        ),
        key=st.sampled_from(["producer_byte_rate", "consumer_byte_rate"]),
        value=st.sampled_from([1.0, 2.5]),
        remove=st.booleans(),
    ),
    st.builds(
        kraft.ProducerIdsRecord,
        broker_id=st.just(1),
        next_producer_id=st.integers(0, 5000),
    ),
    st.builds(
        kraft.UserScramCredentialRecord,
        name=st.sampled_from("uv"),
        mechanism=st.just(1),
        salt=st.just(b"s"),
        stored_key=st.just(b"k"),
        server_key=st.just(b"v"),
        iterations=st.integers(4096, 4098),
    ),
    st.builds(
        kraft.RemoveUserScramCredentialRecord, name=st.sampled_from("uv"), mechanism=st.just(1)
    ),
)


def consistent(records) -> tuple[list, MetadataImage]:
    """Those records that a controller could have written, and their image."""
    image = MetadataImage()
    kept = []
    newest = kraft.FeatureLevelRecord(name="metadata.version", feature_level=30)
    for record in (newest, *records):
        try:
            image.apply(len(kept), record)
        except ReplayFailed:
            continue
        kept.append(record)
    return kept, image


@settings(max_examples=150)
@given(st.lists(RECORD, max_size=40))
def test_encoded_records_replay_to_the_same_image(records):
    kept, image = consistent(records)
    again = replayed(kraft.decode(encode(record, 30)) for record in kept)
    assert again == image


@settings(max_examples=150)
@given(st.lists(RECORD, max_size=40))
def test_a_checkpoint_gives_the_image_back(records):
    _, image = consistent(records)
    name = checkpoint.SnapshotId(5, 1)
    data = b"".join(
        checkpoint.write_checkpoint(
            image, name, checkpoint.VoterSet(), now_ms=1, last_log_timestamp=0
        )
    )
    found = checkpoint.read(data)
    assert state(replayed(map(kraft.decode, found.values))) == state(image)
    for cut in (1, 60, len(data) // 2):
        with pytest.raises(checkpoint.CheckpointBroken):
            checkpoint.read(data[:-cut])


@settings(max_examples=150)
@given(st.lists(RECORD, max_size=25), st.lists(RECORD, max_size=25))
def test_the_changes_between_two_images_name_every_topic_and_partition(before, after):
    _, old = consistent(before)
    _, new = consistent(before + after)
    known = {t.topic_id: len(t.partitions) for t in old.topics_by_name.values()}
    for change in changes_between(old, new):
        match change:
            case TopicAdded():
                known[change.topic_id] = 0
            case TopicRemoved():
                assert known.pop(change.topic_id) == change.partitions
            case PartitionAdded():
                assert known[change.topic_id] == change.index
                known[change.topic_id] += 1
            case ConfigChanged():
                resource = (change.resource_type, change.resource_name)
                assert old.config(*resource).get(change.key) != new.config(*resource).get(
                    change.key
                )
    assert known == {t.topic_id: len(t.partitions) for t in new.topics_by_name.values()}
