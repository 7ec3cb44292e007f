"""A refused batch says which of its records are wrong, and never costs much to explain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.base import errors
from appliance.config.log_config import LogConfig
from appliance.handlers.record_errors import RECORDS_MAX, explain
from appliance.wire.messages import decode_response
from appliance.wire.produce import Batch, PartitionAnswer, ProduceRequest, encode
from appliance.wire.records import NewRecord, build_batch
from benchmarks.batches import batch as bare_batch

COMPACTED = LogConfig(compact=True)


def refused(data, code=errors.INVALID_RECORD, rules=COMPACTED):
    return explain(memoryview(data), code, rules, "t", 3)


def records(*keys):
    return build_batch([NewRecord(1000, key, b"v") for key in keys])


def test_every_record_without_a_key_is_named_and_the_first_three_are_told():
    text, found = refused(records(None, b"k", None, None, None))
    assert [one.batch_index for one in found] == [0, 2, 3, 4]
    why = "Compacted topic cannot accept message without key in topic partition t-3"
    assert {one.message for one in found} == {why}
    assert text.startswith("One or more records have been rejected due to 4 record errors in total")
    assert text.count("RecordError(") == 3


def test_what_is_wrong_otherwise_names_no_record():
    assert refused(records(None), rules=LogConfig()) == (None, ())
    assert refused(records(b"k")) == (None, ())
    assert refused(records(None), errors.OUT_OF_ORDER_SEQUENCE_NUMBER) == (None, ())
    assert refused(b"short") == (None, ())
    assert refused(records(None)[:-3]) == (None, ())


def test_a_long_batch_is_not_read_through():
    assert refused(bare_batch([None] * (RECORDS_MAX + 1), 1000)) == (None, ())


@given(st.binary(max_size=200), st.booleans())
def test_hostile_bytes_are_only_not_explained(tail, headed):
    """A batch may be refused before anybody has read its records."""
    data = records(None)[:61] + tail if headed else tail
    for code in (errors.INVALID_RECORD, errors.CORRUPT_MESSAGE, errors.INVALID_TIMESTAMP):
        refused(data, code)


def test_times_and_formats_are_told_in_kafkas_words():
    text, found = refused(records(b"k"), errors.INVALID_TIMESTAMP)
    assert text.startswith("One or more records have been rejected due to invalid timestamp")
    assert "message.timestamp.after.max.ms=3600000" in text and found == ()
    old = bytearray(records(b"k"))
    old[16] = 1
    assert refused(old, errors.CORRUPT_MESSAGE)[0] == "Invalid magic found in record: 1"


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_carries_what_it_can(version):
    topic = b"t" if version < 13 else bytes(15) + b"\7"
    request = ProduceRequest(None, -1, 1000, [Batch(topic, 3, 0, 9)], [(topic, 1)])
    text, found = refused(records(None, None))
    answer = PartitionAnswer(errors.INVALID_RECORD, -1, -1, -1, text, found)
    read = decode_response(0, version, encode(request, [answer], version, 0))
    (partition,) = read.responses[0].partition_responses
    assert partition.error_code == errors.INVALID_RECORD
    if version >= 8:
        assert [one.batch_index for one in partition.record_errors] == [0, 1]
        assert partition.record_errors[1].batch_index_error_message == found[1].message
        assert partition.error_message == text
