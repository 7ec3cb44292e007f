"""Files of segments under a running appliance: taken away, replaced, kept open."""

import time
from pathlib import Path

import pytest

from appliance.base import errors
from appliance.wire.batch import NewRecord, build_batch
from tests.netproc.netproc_world import World

BATCH = build_batch([NewRecord(1, None, b"v" * 400_000)])
LIMIT_S = 30
SEGMENT = 1 << 20


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path, {"log.segment.bytes": str(SEGMENT)})
    one.io_process()
    yield one
    one.close()


def turn(world):
    world.turn()
    world.io_turn()


def ask(world, client, key, version, **values):
    client.send(key, version, **values)
    give_up = time.monotonic() + LIMIT_S
    while time.monotonic() < give_up:  # a sync runs on a thread
        turn(world)
        if (found := client.answer()) is not None:
            return found[1]
    raise AssertionError("it is not answered")


def produce(world, client, count):
    for _ in range(count):
        rows = [{"index": 0, "records": BATCH}]
        data = [{"name": "flights", "partition_data": rows}]
        answer = ask(
            world, client, 0, 9, transactional_id=None, acks=-1, timeout=1 << 30, topic_data=data
        )
        assert int(answer.responses[0].partition_responses[0].error_code) == errors.NONE


def fetch(world, client, offset, **more):
    row = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": offset,
        "log_start_offset": -1,
        "partition_max_bytes": 500_000,
        "last_fetched_epoch": -1,
    }
    values = {
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "rack_id": "",
        "topics": [{"topic": "flights", "partitions": [row]}],
        "forgotten_topics_data": [],
    }
    return ask(world, client, 1, 12, **values | more).responses[0].partitions[0]


def test_a_segment_that_somebody_removed_is_a_storage_error_said_once(world):
    client = world.client()
    produce(world, client, 7)
    assert fetch(world, client, 0).records
    world.server.host.forget_files()
    first = Path(world.path) / "flights-0" / f"{0:020d}.log"
    taken = first.rename(first.with_suffix(".taken"))
    for _ in range(3):
        row = fetch(world, client, 0)
        assert int(row.error_code) == errors.KAFKA_STORAGE_ERROR
        assert not row.records
    said = (Path(world.path) / "log").read_text()
    assert said.count(str(first)) == 1
    assert fetch(world, client, 4).records, "the other segments are served"
    taken.rename(first)
    assert fetch(world, client, 0).records
