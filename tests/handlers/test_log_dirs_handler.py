"""AlterReplicaLogDirs as plain calls: whom it asks, and what comes of it."""

import pytest
from fake_host import FakeHost

from appliance.base import errors
from appliance.handlers.k34_alter_replica_log_dirs import HANDLER
from appliance.ring.messages import MOVE


@pytest.fixture
def host():
    host = FakeHost()
    host.log_dirs = ("/a", "/b")
    return host


def wanted(*dirs):
    return {
        "dirs": [
            {"path": path, "topics": [{"name": name, "partitions": partitions}]}
            for path, name, partitions in dirs
        ]
    }


def codes(host):
    return {
        (topic.topic_name, one.partition_index): int(one.error_code)
        for topic in host.answer.results
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", [1, 2])
def test_homes_are_asked_and_the_rest_is_refused_at_once(host, version):
    request = wanted(("/b", "flights", [0, 9]), ("/c", "flights", [1]), ("b", "flights", [2]))
    x = host.start(HANDLER, version, request)
    assert host.asked == [(0, MOVE, 0, 1, -1, 0, 0)]
    assert host.answer is None
    host.complete(x, 0)
    assert codes(host) == {
        ("flights", 0): errors.NONE,
        ("flights", 9): errors.UNKNOWN_TOPIC_OR_PARTITION,
        ("flights", 1): errors.LOG_DIR_NOT_FOUND,
        ("flights", 2): errors.LOG_DIR_NOT_FOUND,
    }


def test_the_last_folder_counts_and_nothing_is_answered_with_nothing(host):
    x = host.start(HANDLER, 2, wanted(("/b", "flights", [3]), ("/a", "flights", [3])))
    assert [asked[3] for asked in host.asked] == [0]
    host.complete(x, 0, error=errors.KAFKA_STORAGE_ERROR)
    assert codes(host) == {("flights", 3): errors.KAFKA_STORAGE_ERROR}
    host.start(HANDLER, 2, {"dirs": []})
    assert host.answer.results == ()


def test_a_home_that_dies_is_a_retriable_error(host):
    x = host.start(HANDLER, 2, wanted(("/b", "flights", [0])))
    host.lose(x, 0)
    assert codes(host) == {("flights", 0): errors.NOT_LEADER_OR_FOLLOWER}
