"""The records of consumer groups in bytes. Kafka's own dump tool reads what is written so."""

from contextlib import suppress

import pytest
from consumer_world import ConsumerWorld, recorded
from hypothesis import given
from hypothesis import strategies as st

from appliance.base.errors import PeerError
from appliance.coordinators.groups.consumer_records import (
    ClassicMember,
    ClassicProtocol,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    CurrentKey,
    CurrentValue,
    HeldPartitions,
    MemberMetadataKey,
    MemberMetadataValue,
    PartitionMetadataKey,
    RegexKey,
    RegexValue,
    TargetKey,
    TargetMetadataKey,
    TargetMetadataValue,
    TargetPartitions,
    TargetValue,
)
from appliance.coordinators.groups.reconcile import current_of
from appliance.coordinators.groups.records import RECORDS
from appliance.coordinators.runtime.records import encode_key, encode_value

T = b"t" * 16
TT = T.hex()
MEMBER = MemberMetadataValue(
    instance_id="i",
    rack_id=None,
    client_id="c",
    client_host="/h",
    topic_names=("t", "u"),
    topic_regex="^t",
    rebalance_timeout=60_000,
    server_assignor="range",
    classic=ClassicMember(
        session_timeout=10_000, protocols=(ClassicProtocol(name="p", metadata=b"\1\2"),)
    ),
)
CURRENT = CurrentValue(
    epoch=3,
    previous_epoch=-2,
    state=1,
    assigned=(HeldPartitions(topic_id=T, partitions=(0,), assignment_epochs=(2,)),),
    revoking=(HeldPartitions(topic_id=T, partitions=(7,)),),
)
GOLDEN = [
    (
        ConsumerGroupMetadataKey(group="g"),
        ConsumerGroupMetadataValue(epoch=3, metadata_hash=-2),
        "0003 0001 67",
        "0000 00000003 01 00 08 fffffffffffffffe",
    ),
    (
        MemberMetadataKey(group="g", member="m"),
        MEMBER,
        "0005 0001 67 0001 6d",
        "0000 0269 00 0263 032f68 03 0274 0275 035e74 0000ea60 0672616e6765"
        "01 00 0d 01 00002710 02 0270 030102 00 00",
    ),
    (
        TargetMetadataKey(group="g"),
        TargetMetadataValue(assignment_epoch=3, assignment_timestamp=1),
        "0006 0001 67",
        "0000 00000003 01 00 08 0000000000000001",
    ),
    (
        TargetKey(group="g", member="m"),
        TargetValue(topics=(TargetPartitions(topic_id=T, partitions=(0, 7)),)),
        "0007 0001 67 0001 6d",
        f"0000 02 {TT} 03 00000000 00000007 00 00",
    ),
    (
        CurrentKey(group="g", member="m"),
        CURRENT,
        "0008 0001 67 0001 6d",
        f"0000 00000003 fffffffe 01 02 {TT} 02 00000000 01 00 05 02 00000002"
        f"02 {TT} 02 00000007 00 00",
    ),
    (
        RegexKey(group="g", regex="^t"),
        RegexValue(topics=("t",), version=9, timestamp=1),
        "0010 0001 67 0002 5e74",
        "0000 02 0274 0000000000000009 0000000000000001 00",
    ),
]


@pytest.mark.parametrize(("key", "value", "key_bytes", "value_bytes"), GOLDEN)
def test_records_are_kafkas_bytes(key, value, key_bytes, value_bytes) -> None:
    assert encode_key(key) == bytes.fromhex(key_bytes)
    assert encode_value(value, 0) == bytes.fromhex(value_bytes)
    assert RECORDS.decode(bytes.fromhex(key_bytes), bytes.fromhex(value_bytes)) == (key, value)


def test_a_place_of_an_older_broker_has_its_epoch() -> None:
    assert current_of(CURRENT).revoking == {T: {7: 3}}
    assert current_of(CURRENT).assigned == {T: {0: 2}}


def test_what_kafka_4_0_wrote_of_topics_is_removed_with_the_next_epoch() -> None:
    world = ConsumerWorld()
    world.log.append(
        (bytes.fromhex("0004 0001 67"), bytes.fromhex(f"0000 02 {TT} 0274 00000004 01 00 00"))
    )
    world.restart()
    assert world.shard.state.groups["g"].has_old_metadata
    fields = {"rebalance_timeout": 1, "topic_partitions": (), "subscribed_topic_names": ("t",)}
    world.heartbeat("a", 0, **fields)
    assert not world.shard.state.groups["g"].has_old_metadata
    assert (encode_key(PartitionMetadataKey(group="g")), None) in world.log


def test_the_order_that_compaction_leaves_does_not_matter() -> None:
    world = ConsumerWorld()
    fields = {"rebalance_timeout": 1, "topic_partitions": (), "subscribed_topic_names": ("t",)}
    world.heartbeat("a", 0, instance_id="i", **fields)
    wanted = recorded(world.shard.state.groups["g"])
    world.log.reverse()
    world.restart()
    assert recorded(world.shard.state.groups["g"]) == wanted


@given(st.sampled_from(GOLDEN), st.binary(max_size=60))
def test_hostile_bytes_are_refused_with_their_error(golden, data) -> None:
    key = bytes.fromhex(golden[2])
    for value in (data, b"\x00\x00" + data, bytes.fromhex(golden[3])[: len(data)]):
        with suppress(PeerError):
            RECORDS.decode(key, value)
