"""Fetch as a follower speaks it: our leader reads the requests, kio writes the answers."""

import pytest

from appliance.base.errors import MalformedRequest
from appliance.wire import fetch, fetch_follower
from appliance.wire.build import build
from appliance.wire.fetch_follower import FollowerFetchLimits
from appliance.wire.messages import encode_response, response_type

A, B = b"a" * 16, b"b" * 16
LIMITS = FollowerFetchLimits(500, 1, 10 << 20, 1 << 20)


@pytest.mark.parametrize("version", fetch_follower.VERSIONS)
def test_a_leader_reads_what_a_follower_asks(version):
    asked = [((A, 0), 4, 100, 3, 7), ((B, 2), 5, 0, -1, 0), ((A, 200), 6, 1 << 40, 6, 1 << 39)]
    gone = [(B, 9), (A, 8), (B, 10)]
    body = fetch_follower.encode(version, (3, 77), LIMITS, (12, 13), asked, gone)
    found = fetch.parse(memoryview(body), 0, len(body), version)
    assert (found.replica_id, found.max_wait_ms, found.min_bytes, found.max_bytes) == (
        *(3, 500, 1, 10 << 20),
    )
    assert (found.session_id, found.session_epoch, found.read_committed) == (12, 13, False)
    named = {(one.topic, one.partition): one for one in found.partitions}
    assert list(named) == [(A, 0), (A, 200), (B, 2)]
    for key, epoch, offset, _, _ in asked:
        one = named[key]
        assert (one.current_leader_epoch, one.fetch_offset, one.max_bytes) == (
            *(epoch, offset, 1 << 20),
        )
    assert found.forgotten == [(B, 9), (B, 10), (A, 8)]


def one(index, **rest):
    return {
        "partition_index": index,
        "error_code": 0,
        "aborted_transactions": None,
        "records": None,
        "high_watermark": 50,
        "last_stable_offset": 40,
        "log_start_offset": 30,
        **rest,
    }


def answer(version, *partitions, error=0, session=5):
    responses = [{"topic_id": A, "partitions": list(partitions)}] if partitions else []
    values = {
        "throttle_time": 0,
        "error_code": error,
        "session_id": session,
        "responses": responses,
    }
    return encode_response(build(response_type(1, version), values))


@pytest.mark.parametrize("version", fetch_follower.VERSIONS)
def test_a_follower_reads_what_a_leader_answers(version):
    aborted = [{"producer_id": 1, "first_offset": 2}, {"producer_id": 3, "first_offset": 4}]
    body = answer(
        version,
        one(0, records=b"r" * 1000, aborted_transactions=aborted),
        one(1, error_code=6, high_watermark=-1),
        one(2, diverging_epoch={"epoch": 3, "end_offset": 99}, records=b""),
        one(3, current_leader={"leader_id": 2, "leader_epoch": 8}, records=b"x"),
    )
    error, session, partitions = fetch_follower.decode(memoryview(body))
    assert (error, session) == (0, 5)
    got = [each._replace(records=bytes(each.records)) for each in partitions]
    assert got == [
        (A, 0, 0, 50, 30, None, b"r" * 1000),
        (A, 1, 6, -1, 30, None, b""),
        (A, 2, 0, 50, 30, (3, 99), b""),
        (A, 3, 0, 50, 30, None, b"x"),
    ]
    assert list(fetch_follower.decode(memoryview(answer(version, error=70)))[2]) == []


def test_an_answer_that_ends_anywhere_is_refused():
    body = answer(
        17, one(0, records=b"r" * 20), one(1, diverging_epoch={"epoch": 3, "end_offset": 9})
    )
    for end in range(len(body) - 1):
        with pytest.raises(MalformedRequest):
            list(fetch_follower.decode(memoryview(body)[:end])[2])
