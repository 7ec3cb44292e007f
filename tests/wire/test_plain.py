"""Responses from plain values: the same bytes as by way of kio's classes."""

import pytest

from appliance.wire.build import response
from appliance.wire.messages import encode_response, request_versions
from appliance.wire.plain import encode

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
