"""What a network process counts of its requests: against what clients sent and got."""

import pytest

from appliance.base import errors
from appliance.ring.partition_table import BATCHES_IN, BYTES_IN, RECORDS_IN
from benchmarks.calls import TOPIC, Rig, api_versions, fetch, metadata, produce

PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18


@pytest.fixture
def rig(tmp_path):
    one = Rig(tmp_path)
    yield one
    one.close()


def counted(rig, key):
    """(requests, bytes in, bytes out) of the netproc."""
    counts = rig.world.memory.counters.answers[0]
    return sum(counts.latencies(key)), *counts.traffic(key)


def told(rig, key):
    """Errors by code, of all processes."""
    found = [one.of(key) for one in rig.world.memory.counters.errors]
    return {code: sum(one.get(code, 0) for one in found) for one in found for code in one}


def size(client, key, version, values):
    """Bytes of a request, as the client would send it next."""
    before, sent = list(client.sent), []
    client.sock, sock = type("Tap", (), {"sendall": staticmethod(sent.append)}), client.sock
    client.send(key, version, **values)
    client.sock, client.sent = sock, before
    return len(sent[0])


def test_requests_and_their_bytes_are_counted_by_api(rig):
    client = rig.world.client()
    asked = [api_versions(), metadata(), metadata(), produce(-1), fetch(0)]
    received = {}
    for one in asked:
        received[one[0]] = received.get(one[0], 0) + size(client, *one)
        rig.serve(client, *one)
    rig.world.turn()
    for key, number in ((API_VERSIONS, 1), (METADATA, 2), (PRODUCE, 1), (FETCH, 1)):
        requests, bytes_in, bytes_out = counted(rig, key)
        assert (requests, bytes_in) == (number, received[key])
        assert bytes_out > 0
        assert told(rig, key) == {}
    assert counted(rig, 8) == (0, 0, 0)


def test_the_bytes_of_answers_are_those_that_arrive(rig):
    client = rig.world.client()
    for one in (produce(-1), produce(-1), fetch(0)):
        before = sum(counted(rig, key)[2] for key in (PRODUCE, FETCH))
        client.send(one[0], one[1], **one[2])
        arrived = b""
        while not arrived:
            rig.world.turn()
            rig.world.io_turn()
            rig.world.turn()
            try:
                arrived = client.sock.recv(1 << 20)
            except BlockingIOError:
                continue
        assert sum(counted(rig, key)[2] for key in (PRODUCE, FETCH)) - before == len(arrived)


def test_what_was_written_to_and_read_from_a_partition_stands_in_its_row(rig):
    client = rig.world.client()
    for _ in range(3):
        rig.serve(client, *produce(-1))
    rig.serve(client, *fetch(0))
    rig.serve(client, *fetch(1))
    rig.serve(client, *fetch(3))  # nothing there yet
    table = rig.world.memory.partitions
    topic = rig.world.server.host.image.topics_by_name[TOPIC].topic_id
    (row,) = [row for row in table.live_rows() if row.topic_id == topic]
    batches, records = (
        table.read_column(row.handle, BATCHES_IN),
        table.read_column(row.handle, RECORDS_IN),
    )
    assert (batches, records) == (3, 3)
    size = table.read_column(row.handle, BYTES_IN) // 3
    assert table.served_of(row.handle) == (2, 2 * size)


def test_errors_are_counted_by_code_wherever_they_were_found(rig):
    client = rig.world.client()
    _, version, values = produce(-1)
    values["topic_data"][0]["partition_data"][0]["index"] = 9
    client.send(PRODUCE, version, **values)
    rig.world.turn()
    assert client.answer() is not None
    assert told(rig, PRODUCE) == {errors.UNKNOWN_TOPIC_OR_PARTITION: 1}
    client.ask(*(METADATA, 9), **metadata()[2] | {"topics": [{"name": "never"}]})
    assert told(rig, METADATA) == {errors.UNKNOWN_TOPIC_OR_PARTITION: 1}
    client.ask(20, 5, topic_names=["never", "neither"], timeout=1000)
    assert told(rig, 20) == {errors.UNKNOWN_TOPIC_OR_PARTITION: 2}, "control counts"


def test_a_version_that_is_not_served_is_an_error_and_took_no_age(rig):
    client = rig.world.client()
    client.send_body(API_VERSIONS, 99, b"")
    rig.world.turn()
    assert told(rig, API_VERSIONS) == {errors.UNSUPPORTED_VERSION: 1}
    latencies = rig.world.memory.counters.answers[0].latencies(API_VERSIONS)
    assert sum(latencies) == 1 and not latencies[-1]


def test_a_request_begins_when_it_was_seen_and_not_when_the_last_turn_was(rig):
    """After a sleep, its deadline would else be over too early and its latency too long."""
    world = rig.world
    client = world.client()
    rig.serve(client, *produce(-1))
    _, version, values = fetch(1)
    client.send(FETCH, version, **values | {"max_wait": 500})
    woke = world.loop.woke_ns = world.server.shared.now_ns + 90_000_000
    (connection,) = world.server.shared.open.values()
    connection.ready(1)
    (x,) = world.server.exchanges.living.values()
    assert x.started_ns == woke
    assert x.deadline_ns == woke + 500_000_000
    client.close()
    world.turn()


def test_a_connection_is_seen_with_what_it_has_been_asked_once_a_second(rig):
    clients = rig.world.memory.clients
    client, other = rig.world.client(), rig.world.client()
    for one in (api_versions(), produce(-1), produce(-1), fetch(0)):
        rig.serve(client, *one)
    rig.serve(other, *metadata())
    seen, second = clients.connected()
    assert (seen.requests, seen.principal, seen.listener) == (0, "ANONYMOUS", "PLAINTEXT")
    assert seen.address and seen.client_id
    rig.world.server.connections.sweep(rig.world.server.shared.now_ns)
    seen, second = clients.connected()
    assert (seen.requests, seen.last_api, second.requests) == (4, FETCH, 1)
    asked = (API_VERSIONS, PRODUCE, FETCH, METADATA)
    whole = [sum(column) for column in zip(*(counted(rig, key) for key in asked), strict=True)]
    both = ((seen.requests, seen.bytes_in, seen.bytes_out),
            (second.requests, second.bytes_in, second.bytes_out))  # fmt: skip
    assert [sum(column) for column in zip(*both, strict=True)] == whole
    assert seen.produced == counted(rig, PRODUCE)[1]
    assert seen.fetched == counted(rig, FETCH)[2]
    rig.serve(other, *metadata())
    other.sock.close()
    rig.world.turn()
    assert [one.row for one in clients.connected()] == [seen.row]
    assert clients.read(0, second.row).requests == 2, "its last words"
