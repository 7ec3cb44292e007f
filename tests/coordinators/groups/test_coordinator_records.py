"""The records of groups in bytes. The golden ones were read by Kafka's own dump tool."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.coordinators.groups.offset_records import key_bytes, value_bytes
from appliance.coordinators.groups.records import (
    RECORDS,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from appliance.coordinators.runtime.records import encode_key, encode_value

T = 1_760_000_000_000
KEY = OffsetCommitKey(group="g", topic="t", partition=3)
MEMBER = MemberMetadata(
    member_id="c-1",
    group_instance_id="inst",
    client_id="c",
    client_host="/127.0.0.1",
    rebalance_timeout=60_000,
    session_timeout=45_000,
    subscription=b"\x00\x01",
    assignment=b"\x02",
)
GOLDEN = [
    (
        OffsetCommitValue(offset=42, leader_epoch=7, metadata="h\xe9", commit_timestamp=T),
        3,
        "0003 000000000000002a 00000007 0003 68c3a9 00000199c82cc000",
    ),
    (
        OffsetCommitValue(offset=42, metadata="", commit_timestamp=T, topic_id=bytes(range(16))),
        4,
        "0004 000000000000002a ffffffff 01 00000199c82cc000 01 00 10"
        "000102030405060708090a0b0c0d0e0f",
    ),
    (
        OffsetCommitValue(offset=42, metadata="", commit_timestamp=T, expire_timestamp=T + 5),
        1,
        "0001 000000000000002a 0000 00000199c82cc000 00000199c82cc005",
    ),
    (
        GroupMetadataValue(
            protocol_type="consumer",
            generation=3,
            protocol="range",
            leader="c-1",
            current_state_timestamp=T,
            members=(MEMBER,),
        ),
        3,
        "0003 0008 636f6e73756d6572 00000003 0005 72616e6765 0003 632d31 00000199c82cc000 00000001"
        "0003 632d31 0004 696e7374 0001 63 000a 2f3132372e302e302e31 0000ea60 0000afc8"
        "00000002 0001 00000001 02",
    ),
    (
        GroupMetadataValue(
            protocol_type="",
            generation=0,
            protocol=None,
            leader=None,
            current_state_timestamp=T,
            members=(),
        ),
        3,
        "0003 0000 00000000 ffff ffff 00000199c82cc000 00000000",
    ),
]


@pytest.mark.parametrize(("value", "version", "golden"), GOLDEN)
def test_values_are_kafkas_bytes(value, version, golden) -> None:
    key = KEY if isinstance(value, OffsetCommitValue) else GroupMetadataKey(group="g")
    assert encode_value(value, version) == bytes.fromhex(golden)
    assert RECORDS.decode(encode_key(key), bytes.fromhex(golden)) == (key, value)


def test_keys_are_kafkas_bytes() -> None:
    assert encode_key(KEY) == bytes.fromhex("0001 0001 67 0001 74 00000003")
    assert encode_key(GroupMetadataKey(group="g")) == bytes.fromhex("0002 0001 67")


def test_an_offset_of_an_old_broker_is_an_offset() -> None:
    assert RECORDS.decode(bytes.fromhex("0000 0001 67 0001 74 00000003"), None) == (KEY, None)


def test_a_type_of_the_future_is_passed_over() -> None:
    assert RECORDS.decode(b"\x7f\x00whatever", b"") is None


def test_a_version_of_the_future_is_read_as_the_newest() -> None:
    value = OffsetCommitValue(offset=1, metadata="", commit_timestamp=T)
    newer = b"\x00\x09" + encode_value(value, 4)[2:-1] + b"\x01\x63\x01x"
    assert RECORDS.decode(encode_key(KEY), newer) == (KEY, value)


@given(st.binary(max_size=40), st.none() | st.binary(max_size=60))
def test_hostile_bytes_are_refused_with_their_error(key, value) -> None:
    for prefix in (b"", b"\x00\x01", b"\x00\x02\x00\x01g"):
        with suppress(PeerError):
            RECORDS.decode(prefix + key, value)


def test_a_record_without_a_key_is_corrupt() -> None:
    with pytest.raises(PeerError) as refused:
        RECORDS.decode(None, b"")
    assert refused.value.code == CORRUPT_MESSAGE


@given(
    st.integers(0, 4), st.text(max_size=9), st.integers(-1, 9), st.binary(min_size=16, max_size=16)
)
def test_offsets_come_back_as_far_as_their_version_goes(version, text, epoch, topic_id) -> None:
    value = OffsetCommitValue(
        offset=7,
        leader_epoch=epoch if version >= 3 else -1,
        metadata=text,
        commit_timestamp=T,
        expire_timestamp=T if version == 1 else -1,
        topic_id=topic_id if version == 4 else bytes(16),
    )
    assert RECORDS.decode(encode_key(KEY), encode_value(value, version)) == (KEY, value)


@given(
    names=st.tuples(st.text(max_size=300), st.text(max_size=200)),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    epoch=st.integers(-1, 2**31 - 1),
    metadata=st.text(max_size=300),
    topic_id=st.just(bytes(16)) | st.binary(min_size=16, max_size=16),
)
def test_what_is_written_by_hand_is_what_the_schema_writes(
    names, partition, offset, epoch, metadata, topic_id
):
    group, topic = names
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=metadata,
        commit_timestamp=T,
        topic_id=topic_id,
    )
    assert key_bytes(key) == encode_key(key)
    assert value_bytes(value) == encode_value(value, 4)
