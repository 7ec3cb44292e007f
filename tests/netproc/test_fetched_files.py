"""Files of segments under a running appliance: taken away, replaced, kept open."""

import os
import resource
import socket
import time
from pathlib import Path

import pytest

from appliance.base import errors
from appliance.config import bounds
from appliance.netproc.limits.open_files import RESERVE, divide
from appliance.wire.batch import NewRecord, build_batch
from tests.netproc.netproc_world import World

BATCH = build_batch([NewRecord(1, None, b"v" * 400_000)])
LIMIT_S = 60
LOOK_S = 0.0005
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
        time.sleep(LOOK_S)
    raise AssertionError("it is not answered")


def produce(world, client, count):
    for _ in range(count):
        rows = [{"index": 0, "records": BATCH}]
        data = [{"name": "flights", "partition_data": rows}]
        answer = ask(
            world, client, 0, 9, transactional_id=None, acks=-1, timeout=1 << 30, topic_data=data
        )
        assert int(answer.responses[0].partition_responses[0].error_code) == errors.NONE


def fetch_values(offset, partition_max_bytes=500_000, **more):
    row = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": offset,
        "log_start_offset": -1,
        "partition_max_bytes": partition_max_bytes,
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
    return values | more


def fetch(world, client, offset, **more):
    return ask(world, client, 1, 12, **fetch_values(offset, **more)).responses[0].partitions[0]


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


def rows_of(world, client, partitions):
    """One fetch of several partitions of `flights`, each from its begin on."""
    asked = [
        {
            "partition": number,
            "current_leader_epoch": -1,
            "fetch_offset": 0,
            "log_start_offset": -1,
            "partition_max_bytes": 500_000,
            "last_fetched_epoch": -1,
        }
        for number in partitions
    ]
    topics = [{"topic": "flights", "partitions": asked}]
    values = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 26}
    values |= {"isolation_level": 0, "session_id": 0, "session_epoch": -1, "rack_id": ""}
    answer = ask(world, client, 1, 12, **values, topics=topics, forgotten_topics_data=[])
    return answer.responses[0].partitions


def test_a_segment_that_cannot_be_opened_is_a_storage_error_of_its_partition(world):
    """Not of the process: others are served by it, and the same client, when the file is back."""
    client, other = world.client(), world.client()
    produce(world, client, 7)
    first = Path(world.path) / "flights-0" / f"{0:020d}.log"
    world.server.host.forget_files()
    taken = first.rename(first.with_suffix(".taken"))
    first.symlink_to(first)  # ELOOP: neither there nor absent
    for _ in range(3):
        row = fetch(world, client, 0)
        assert int(row.error_code) == errors.KAFKA_STORAGE_ERROR
        assert not row.records
        assert fetch(world, other, 4).records
    said = (Path(world.path) / "log").read_text()
    assert said.count("segment-unreadable") == 1 and "flights-0" in said
    assert " bug " not in said
    taken.rename(first)
    assert fetch(world, client, 0).records
    world.end()


@pytest.fixture
def few_files():
    """Sets the limit of open files so that none is left; undone at the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def exhaust():
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))

    yield exhaust
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_descriptors_a_segment_is_a_storage_error_and_others_are_served(world, few_files):
    client, other = world.client(), world.client()
    produce(world, client, 7)
    assert fetch(world, other, 4).records
    assert ask(world, other, 18, 0).error_code == 0
    world.server.host.forget_files()
    few_files()
    assert int(fetch(world, client, 0).error_code) == errors.KAFKA_STORAGE_ERROR
    assert ask(world, other, 18, 0).error_code == 0
    reached = {one.name: one.times for one in world.memory.tables.bounds.reached()}
    assert reached == {bounds.SEGMENT_FILES: 1}


def test_a_listener_without_descriptors_rests_and_accepts_when_there_are_some(world, few_files):
    other = world.client()
    assert ask(world, other, 18, 0).error_code == 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    late = socket.create_connection(world.door.getsockname())
    few_files()
    world.server.listeners[0].ready(1)
    assert world.server.shared.limits.count == 1
    assert ask(world, other, 18, 0).error_code == 0
    assert len(world.server._shut_doors) == 1, "it does not try again in this turn"
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    give_up = time.monotonic() + LIMIT_S
    while world.server._shut_doors:
        assert time.monotonic() < give_up
        world.now_ns = time.monotonic_ns()
        turn(world)
        time.sleep(LOOK_S)
    world.server.listeners[0].ready(1)
    assert world.server.shared.limits.count == 2
    late.close()


def test_a_fetch_of_more_segments_than_there_are_descriptors_for_goes_in_pieces(tmp_path):
    """The rest comes with the next one, without an error."""
    world = World(tmp_path, topics=())
    world.io_process()
    client = world.client()
    topic = {"name": "flights", "num_partitions": 12, "replication_factor": 1}
    topic |= {"assignments": [], "configs": []}
    ask(world, client, 19, 5, topics=[topic], timeout=30_000, validate_only=False)
    for partition in range(12):
        rows = [{"index": partition, "records": BATCH}]
        data = [{"name": "flights", "partition_data": rows}]
        values = {"transactional_id": None, "acks": -1, "timeout": 1 << 30}
        assert ask(world, client, 0, 9, **values, topic_data=data)
    world.server.host._segments._descriptors.most = 5
    rows = rows_of(world, client, range(12))
    assert [row.error_code for row in rows] == [0] * 12
    assert [bool(row.records) for row in rows] == [True] * 5 + [False] * 7
    rows = rows_of(world, client, range(5, 12))
    assert [bool(row.records) for row in rows] == [True] * 5 + [False] * 2
    world.close()


def test_more_clients_than_there_are_descriptors_for_are_refused(world):
    client = world.client()
    world.server.shared.limits.room = 1
    refused = world.client()
    assert refused.sock.recv(1) == b""
    assert "limit of" in (Path(world.path) / "log").read_text()
    assert ask(world, client, 18, 0).error_code == 0
    client.close()
    turn(world)
    assert ask(world, world.client(), 18, 0).error_code == 0


@pytest.mark.parametrize("limit", [0, 64, 256, 1024, 1 << 20])
def test_neither_connections_nor_segments_can_take_all_descriptors(limit):
    shares = divide(limit, 40)
    assert shares.connections > 0 and shares.segments > 0
    if limit > 40 + RESERVE + 8:
        assert shares.connections + shares.segments + RESERVE + 40 <= limit
