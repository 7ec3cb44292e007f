"""Markers of transactions, as Kafka writes them."""

from hypothesis import given
from hypothesis import strategies as st

from appliance.wire import markers
from appliance.wire.batch import NewRecord, build_batch, read_header
from appliance.wire.control_records import LeaderChangeMessage, encode


@given(
    producer_id=st.integers(0, (1 << 63) - 1),
    epoch=st.integers(0, (1 << 15) - 1),
    committed=st.booleans(),
    coordinator_epoch=st.integers(0, (1 << 31) - 1),
)
def test_a_marker_says_who_ended_what_and_how(producer_id, epoch, committed, coordinator_epoch):
    marker = markers.Marker(committed, coordinator_epoch)
    batch = markers.build(producer_id, epoch, marker, 1000)
    assert markers.read(batch) == marker
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (
        producer_id,
        epoch,
        -1,
    )
    assert (header.record_count, header.max_timestamp) == (1, 1000)


def test_its_record_is_kafka_s_byte_for_byte():
    batch = markers.build(9, 0, markers.Marker(True, 4), 1000)
    assert batch[61:].hex() == (
        "20"
        "00"
        "00"
        "00"  # length, attributes, timestamp, offset
        "08"
        "00000001"  # key: version 0, COMMIT
        "0c"
        "0000"
        "00000004"  # value: version 0, epoch of the coordinator
        "00"
    )
    assert markers.build(9, 0, markers.Marker(False, 4), 1000)[61:].hex()[10:18] == "00000000"


def test_what_ends_no_transaction_is_none():
    leader = encode(LeaderChangeMessage(leader_id=1, voters=(), granting_voters=()))
    for record in (NewRecord(0, *leader), NewRecord(0, None, None), NewRecord(0, b"\0\0\0\1", b"")):
        assert markers.read(build_batch([record], control=True)) is None
    whole = markers.build(9, 0, markers.Marker(True, 4), 1000)
    empty = whole[:57] + bytes(4)
    assert markers.read(empty) is None
