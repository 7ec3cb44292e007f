"""Responses from plain values: the same bytes as by way of kio's classes."""

import pytest

from appliance.wire.build import response
from appliance.wire.messages import encode_response, request_versions
from appliance.wire.plain import encode
from appliance.wire.plain_sliced import SLICE, encode_in_slices

TOPIC = {
    "name": "t", "topic_id": b"i" * 16, "topic": "t",
    "partitions": [
        {"partition_index": 3, "error_code": 0, "committed_offset": 7, "metadata": None},
        {"partition_index": 4, "error_code": 3, "committed_offset": -1, "metadata": "é"},
    ],
}  # fmt: skip
VALUES = {
    8: {"throttle_time": 0, "topics": [TOPIC]},
    9: {"throttle_time": 5, "error_code": 0, "topics": [TOPIC],
        "groups": [{"group_id": "g", "topics": [TOPIC], "error_code": 16}]},
    12: {"throttle_time": 1, "error_code": 27},
    68: {"throttle_time": 0, "error_code": 0, "error_message": None, "member_id": "m",
         "member_epoch": 3, "heartbeat_interval": 5000,
         "assignment": {"topic_partitions": [{"topic_id": b"i" * 16, "partitions": (1, 2)}]}},
}  # fmt: skip


@pytest.mark.parametrize("key", VALUES)
def test_the_bytes_are_those_of_the_message(key):
    for version in request_versions(key):
        message = encode_response(response(key, version, VALUES[key]))
        assert encode(key, version, VALUES[key]) == message, version


def test_a_value_that_is_missing_is_named():
    with pytest.raises(KeyError, match="error_code"):
        encode(12, 4, {"throttle_time": 0})
    with pytest.raises(KeyError, match="topics"):
        encode(8, 7, {"throttle_time": 0})


def row(number):
    return {**TOPIC, "name": f"t{number}", "partitions": TOPIC["partitions"] * (number % 3)}


@pytest.mark.parametrize("key", [8, 9])
def test_a_long_answer_is_the_same_bytes_in_slices(key):
    values = VALUES[key] | {"topics": [row(number) for number in range(500)]}
    values["groups"] = [{"group_id": "g", "topics": values["topics"], "error_code": 0}] * 2
    for version in request_versions(key):
        stops, slices = 0, encode_in_slices(key, version, values)
        try:
            while True:
                next(slices)
                stops += 1
        except StopIteration as end:
            made = end.value
        assert made == encode(key, version, values), version
        assert stops >= 500 // SLICE


def test_a_value_that_is_missing_is_named_in_slices():
    with pytest.raises(KeyError, match="topics"):
        list(encode_in_slices(8, 7, {"throttle_time": 0}))
