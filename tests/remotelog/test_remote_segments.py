"""Records, states and lookups of remote segments; the bytes are Apache Kafka's."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.base.errors import PeerError
from appliance.remotelog import states
from appliance.remotelog.records import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
    RemoteSegmentId,
    RemoteTopicPartition,
    SegmentLeaderEpoch,
    decode_record,
    encode_record,
)
from appliance.remotelog.segments import RemoteSegments, UnlawfulChange

TOPIC_ID, SEGMENT_ID = bytes(range(1, 17)), bytes(range(17, 33))
OWNER = RemoteTopicPartition(name="orders", id=TOPIC_ID, partition=3)
STARTED = RemoteLogSegmentMetadataRecord(
    remote_log_segment_id=RemoteSegmentId(topic_id_partition=OWNER, id=SEGMENT_ID),
    start_offset=100,
    end_offset=199,
    broker_id=7,
    max_timestamp_ms=1_700_000_000_000,
    event_timestamp_ms=1_700_000_000_500,
    segment_leader_epochs=(
        SegmentLeaderEpoch(leader_epoch=0, offset=100),
        SegmentLeaderEpoch(leader_epoch=4, offset=150),
    ),
    segment_size_in_bytes=4096,
    custom_metadata=None,
    remote_log_segment_state=states.COPY_SEGMENT_STARTED,
)
FINISHED = RemoteLogSegmentMetadataUpdateRecord(
    remote_log_segment_id=STARTED.remote_log_segment_id,
    broker_id=7,
    event_timestamp_ms=1_700_000_000_900,
    custom_metadata=b"\1\2",
    remote_log_segment_state=states.COPY_SEGMENT_FINISHED,
)
MARKED = RemotePartitionDeleteMetadataRecord(
    topic_id_partition=OWNER,
    broker_id=7,
    event_timestamp_ms=1_700_000_001_000,
    remote_partition_delete_state=states.DELETE_PARTITION_MARKED,
)
_OWNER = "076f72646572730102030405060708090a0b0c0d0e0f100000000300"
_ID = _OWNER + "1112131415161718191a1b1c1d1e1f2000"
_STARTED = (
    "010000" + _ID + "000000000000006400000000000000c7000000070000018bcfe568000000018bcfe569f4"
    "03000000000000000000000064000000000400000000000000960000001000" + "0000"
)
KAFKAS = [  # RemoteLogMetadataSerde.serialize of Apache Kafka 4.3.1
    (STARTED, _STARTED + "00"),
    (replace(STARTED, txn_index_empty=True), _STARTED + "01000101"),
    (FINISHED, "010100" + _ID + "000000070000018bcfe56b840301020100"),
    (MARKED, "010200" + _OWNER + "000000070000018bcfe56be80000"),
]


@pytest.mark.parametrize(("value", "written"), KAFKAS)
def test_records_are_written_and_read_as_kafka_does(value, written):
    assert encode_record(value).hex() == written
    assert decode_record(bytes.fromhex(written)) == value


@given(st.data())
@settings(max_examples=300)
def test_a_damaged_record_is_refused_or_read_whole(data):
    written = bytearray(encode_record(data.draw(st.sampled_from([one for one, _ in KAFKAS]))))
    at = data.draw(st.integers(0, len(written) - 1))
    written[at] ^= data.draw(st.integers(1, 255))
    cut = bytes(written[: data.draw(st.integers(at, len(written)))])
    try:
        found = decode_record(cut)
    except PeerError:
        return
    assert decode_record(encode_record(found)) == found


def partition(*changes):
    made = RemoteSegments(TOPIC_ID, 3)
    for one in changes:
        made.replay(one)
    return made


def to_state(state):
    return replace(FINISHED, remote_log_segment_state=state, custom_metadata=None)


LAWFUL = {  # RemoteLogSegmentState.isValidTransition of Apache Kafka 4.3.1
    (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3),
}  # fmt: skip


@given(st.lists(st.integers(-1, 4), max_size=8))
def test_only_lawful_changes_change_something(wished):
    made, state = partition(STARTED), 0
    for one in wished:
        before = made.finished(), made.unfinished()
        # What is forgotten may only be told its end again.
        lawful = one == 3 if state == 3 else (state, one) in LAWFUL
        if lawful:
            made.replay(to_state(one))
            state = one
        else:
            with pytest.raises(UnlawfulChange):
                made.replay(to_state(one))
            assert (made.finished(), made.unfinished()) == before
        assert len(made.finished()) == (state == 1)
        assert len(made.unfinished()) == (state in (0, 2))


@given(st.lists(st.integers(-1, 3), max_size=6))
def test_the_deletion_of_a_partition_only_goes_forwards(wished):
    made, before = partition(), None
    for one in wished:
        change = replace(MARKED, remote_partition_delete_state=one)
        lawful = one == 0 if before is None else one in (before, before + 1) and one <= 2
        if lawful:
            made.replay(change)
            before = one
        else:
            with pytest.raises(UnlawfulChange):
                made.replay(change)
        assert made.deletion == before


@pytest.mark.parametrize("state", range(4))
def test_an_update_of_an_unknown_segment_begins_nothing(state):
    made = partition()
    if state == states.DELETE_SEGMENT_FINISHED:  # its end may be told twice
        made.replay(to_state(state))
    else:
        with pytest.raises(UnlawfulChange):
            made.replay(to_state(state))
    assert made.finished() == made.unfinished() == []


def test_an_update_keeps_what_it_does_not_tell():
    [one] = partition(STARTED, FINISHED, replace(FINISHED, custom_metadata=None)).finished()
    assert one.custom_metadata == b"\1\2"
    assert one.event_timestamp_ms == FINISHED.event_timestamp_ms
    assert (one.start_offset, one.end_offset) == (100, 199)


@pytest.mark.parametrize(
    "wrong",
    [
        {"end_offset": 99},
        {"start_offset": -1},
        {"segment_size_in_bytes": -1},
        {"segment_leader_epochs": ()},
        {"segment_leader_epochs": tuple(reversed(STARTED.segment_leader_epochs))},
        {"segment_leader_epochs": (SegmentLeaderEpoch(leader_epoch=0, offset=101),)},
        {"end_offset": 140},
        {"remote_log_segment_state": states.COPY_SEGMENT_FINISHED},
    ],
)
def test_a_segment_that_makes_no_sense_is_not_taken(wrong):
    made = partition()
    with pytest.raises(UnlawfulChange):
        made.replay(replace(STARTED, **wrong))
    assert made.unfinished() == made.finished() == []


def test_another_partition_and_another_telling_are_refused():
    made = partition(STARTED)
    stranger = replace(
        STARTED,
        remote_log_segment_id=RemoteSegmentId(
            topic_id_partition=replace(OWNER, partition=4), id=SEGMENT_ID
        ),
    )
    for change in (stranger, replace(STARTED, end_offset=250)):
        with pytest.raises(UnlawfulChange):
            made.replay(change)
    made.replay(replace(STARTED, event_timestamp_ms=5))
    assert len(made.unfinished()) == 1


def test_an_offset_is_found_by_the_epoch_that_wrote_it():
    made = partition(STARTED)
    assert made.find_segment(0, 100) is None, "its copy is not finished"
    made.replay(FINISHED)
    assert made.find_segment(0, 149).start_offset == 100
    assert made.find_segment(4, 199).end_offset == 199
    for epoch, offset in ((0, 150), (4, 149), (4, 200), (2, 120), (0, 99)):
        assert made.find_segment(epoch, offset) is None
    assert [made.highest_offset(epoch) for epoch in (0, 2, 4)] == [149, -1, 199]
    made.replay(to_state(states.DELETE_SEGMENT_STARTED))
    assert made.find_segment(4, 199) is None
    assert made.highest_offset(4) == -1


def test_of_two_copies_the_one_that_goes_further_serves():
    longer = RemoteSegmentId(topic_id_partition=OWNER, id=bytes(16))
    made = partition(
        STARTED,
        FINISHED,
        replace(STARTED, remote_log_segment_id=longer, end_offset=300),
        replace(FINISHED, remote_log_segment_id=longer),
    )
    assert made.find_segment(4, 180).end_offset == 300
