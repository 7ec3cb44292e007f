"""Each bound of what clients may use, driven to its ceiling: what its client meets, one event, the
count, and everybody else served."""

import struct
from contextlib import contextmanager

import pytest

from appliance.base import errors
from appliance.config import bounds
from appliance.config.bounds import BOUNDS, PLACES
from appliance.netproc.transport.transport import READ, Plain
from appliance.ring.arena import UNIT
from appliance.ring.bound_table import BoundTable
from appliance.wire import messages
from tests.netproc.floor_plan import WHY, FloorPlan
from tests.netproc.netproc_world import World

VERSIONS, METADATA, FETCH, CREATE_TOPICS, DESCRIBE_ACLS = 18, 3, 1, 19, 29
ANY_ACL = {
    "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
    "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
}  # fmt: skip


@contextmanager
def serving(path, **settings):
    world = World(path, {name.replace("_", "."): str(value) for name, value in settings.items()})
    try:
        yield world
    finally:
        world.close()


def lines(world, event):
    with open(f"/proc/self/fd/{world.fd}") as said:
        said.seek(0)
        return [line for line in said if f" {event} " in line]


def count(world, name):
    reached = {one.name: one.times for one in world.memory.tables.bounds.reached()}
    return reached.get(name, 0)


def is_closed(client):
    try:
        return client.sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def check(world, name, *, times, bystander):
    """One event, the count, and that another client is served."""
    event = BOUNDS[PLACES[name]].event
    (line,) = lines(world, event)
    assert f"bound={name}" in line, line
    assert count(world, name) == times
    assert bystander.ask(VERSIONS, 0).error_code == errors.NONE


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (bounds.CONNECTIONS, {"max_connections": 2}),
        (bounds.CONNECTIONS_OF_ADDRESS, {"max_connections_per_ip": 2}),
        (bounds.OPEN_FILES, {}),
    ],
)
def test_connections_beyond_a_bound_are_closed(tmp_path, name, settings):
    with serving(tmp_path, **settings) as world:
        if not settings:
            world.server.shared.limits.room = 2
        first, second = world.client(), world.client()
        assert [is_closed(world.client()) for _ in range(3)] == [True] * 3
        check(world, name, times=3, bystander=first)
        assert second.ask(VERSIONS, 0).error_code == errors.NONE
        second.close()
        world.turn()
        assert world.client().ask(VERSIONS, 0).error_code == errors.NONE, "there is room again"


def test_connections_that_come_too_fast_wait(tmp_path):
    with serving(tmp_path, max_connection_creation_rate=1) as world:
        first = world.client()
        for _ in range(30):
            world.client()
        assert count(world, bounds.CONNECTION_RATE) > 0
        times = count(world, bounds.CONNECTION_RATE)
        check(world, bounds.CONNECTION_RATE, times=times, bystander=first)


class Greeting(Plain):
    """A transport that has not agreed yet."""

    def __init__(self, sock):
        super().__init__(sock)
        self.stays = True

    def agree(self):
        self.wants = READ
        return False


@pytest.mark.interpreted(WHY)
def test_handshakes_beyond_the_bound_of_an_address_are_closed():
    plan = FloorPlan()
    region = BoundTable(memoryview(bytearray(1 << 16)), ioprocs=1, netprocs=1).regions["netproc-0"]
    told = plan.shared.log.event_from

    def event_from(*args, why, **fields):
        region.count(fields["bound"], 1)
        told(*args, why=why)

    plan.shared.log.event_from = event_from
    plan.shared.limits.handshakes = 20
    try:
        made = [plan.pair(Greeting)[0] for _ in range(23)]
        assert [one.closed for one in made] == [False] * 20 + [True] * 3
        assert {event for event, _ in plan.complaints} == {"connection-refused"}
        (found,) = region.reached()
        assert (found.name, found.times) == (bounds.HANDSHAKES, 3)
        connection, _ = plan.pair()
        assert not connection.closed, "who needs no handshake is let in"
    finally:
        plan.close()


def sasl(**more):
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
        "sasl.enabled.mechanisms": "PLAIN",
        **more,
    }


def test_logins_beyond_those_that_may_wait_fail(tmp_path):
    world = World(tmp_path, sasl(**{"penstock.logins.max.waiting": "1"}))
    world.server.connections._receiver._logins._hashing._waiting = 1
    try:
        client, other = world.client(), world.client()
        assert client.ask(17, 1, mechanism="PLAIN").error_code == errors.NONE
        found = client.ask(36, 1, 300, auth_bytes=b"\0alice\0secret")
        assert found.error_code == errors.SASL_AUTHENTICATION_FAILED
        check(world, bounds.LOGINS_WAITING, times=1, bystander=other)
    finally:
        world.close()


@pytest.mark.parametrize(
    ("name", "sent", "ms"), [(bounds.STILL, [4], 1000), (bounds.SLOW, [60_000, 500], 600)]
)
def test_requests_that_do_not_arrive_are_closed(tmp_path, name, sent, ms):
    settings = {"penstock_connection_no_progress_ms": 1000}
    with serving(tmp_path, **settings) as world:
        other, slow = world.client(), world.client()
        slow.sock.sendall(struct.pack(">i", 50_000))
        for _ in range(40):
            if name == bounds.SLOW:
                slow.sock.sendall(b"x")
            world.turn(ms=ms)
            if is_closed(slow):
                break
        else:
            raise AssertionError("it is not closed")
        check(world, name, times=1, bystander=other)


@pytest.mark.parametrize(
    "name", [bounds.REQUEST_BYTES, bounds.PLAIN_REQUEST_BYTES, bounds.ELEMENTS]
)
def test_requests_that_are_too_large_close_their_connection(tmp_path, name):
    settings = {"socket_request_max_bytes": 200_000, "penstock_request_max_bytes": 70_000}
    with serving(tmp_path, **settings) as world:
        client, other = world.client(), world.client()
        if name == bounds.REQUEST_BYTES:
            client.sock.sendall(struct.pack(">i", 200_001) + bytes(8))
        elif name == bounds.PLAIN_REQUEST_BYTES:
            client.send(METADATA, 1, topics=[{"name": "a" * 200} for _ in range(400)])
        else:
            body = struct.pack(">i", messages.ELEMENTS_MAX + 1)
            client.send_body(METADATA, 1, body + bytes(2 * messages.ELEMENTS_MAX + 2))
        for _ in range(30):
            world.turn()
        assert is_closed(client)
        check(world, name, times=1, bystander=other)


def test_requests_before_a_login_are_bounded(tmp_path):
    world = World(tmp_path, sasl(**{"sasl.server.max.receive.size": "1000"}))
    try:
        client, other = world.client(), world.client()
        client.sock.sendall(struct.pack(">i", 1001) + bytes(8))
        for _ in range(3):
            world.turn()
        assert is_closed(client)
        check(world, bounds.LOGIN_BYTES, times=1, bystander=other)
    finally:
        world.close()


def test_requests_wait_for_memory(tmp_path):
    settings = {"socket_request_max_bytes": 4_000_000}
    with serving(tmp_path, **settings) as world:
        other = world.client()
        large = [world.client() for _ in range(4)]
        for one in large:
            one.sock.sendall(struct.pack(">i", 3_000_000) + bytes(UNIT))
        for _ in range(20):
            world.turn(ms=10)
        assert count(world, bounds.RECEIVE_MEMORY) > 0
        times = count(world, bounds.RECEIVE_MEMORY)
        check(world, bounds.RECEIVE_MEMORY, times=times, bystander=other)
        assert not any(is_closed(one) for one in large), "they wait"


def test_a_fetch_without_a_session_is_served(tmp_path):
    with serving(tmp_path, max_incremental_fetch_session_cache_slots=1) as world:
        world.io_process()
        row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
        row |= {"current_leader_epoch": -1, "log_start_offset": -1, "last_fetched_epoch": -1}
        asked = {
            "max_wait": 0, "min_bytes": 0, "max_bytes": 1000, "isolation_level": 0,
            "session_id": 0, "session_epoch": 0, "forgotten_topics_data": [], "rack_id": "",
            "topics": [{"topic": "flights", "partitions": [row]}],
        }  # fmt: skip
        ids = []
        clients = [world.client() for _ in range(3)]
        for one in clients:
            one.send(FETCH, 12, **asked)
            while (found := one.answer()) is None:
                world.turn()
                world.io_turn()
            assert found[1].responses[0].partitions[0].error_code == errors.NONE
            ids.append(found[1].session_id)
        assert ids[0] and ids[1:] == [0, 0]
        check(world, bounds.FETCH_SESSIONS, times=2, bystander=clients[0])


def test_topics_beyond_the_partitions_are_refused(tmp_path):
    with serving(tmp_path) as world:
        client, other = world.client(), world.client()
        topic = {"name": "large", "num_partitions": 257, "replication_factor": 1}
        topic |= {"assignments": [], "configs": []}
        for _ in range(2):
            found = client.ask(CREATE_TOPICS, 5, topics=[topic], timeout=1000, validate_only=False)
            assert found.topics[0].error_code == errors.INVALID_PARTITIONS
        check(world, bounds.PARTITIONS, times=2, bystander=other)


def test_topics_that_a_client_names_are_bounded(tmp_path):
    with serving(tmp_path, penstock_topic_auto_create_max_per_minute=2) as world:
        client, other = world.client(), world.client()
        codes = []
        for number in range(5):
            topics = [{"name": f"t{number}"}]
            found = client.ask(METADATA, 4, topics=topics, allow_auto_topic_creation=True)
            codes.append(int(found.topics[0].error_code))
        assert errors.UNKNOWN_TOPIC_OR_PARTITION not in codes[:2]
        assert codes[2:] == [errors.UNKNOWN_TOPIC_OR_PARTITION] * 3
        check(world, bounds.AUTO_CREATED, times=3, bystander=other)


def test_requests_for_control_wait_for_one_another(tmp_path):
    with serving(tmp_path, penstock_control_max_requests=1) as world:
        first, second, other = world.client(), world.client(), world.client()
        for client in (first, second):
            client.send(DESCRIBE_ACLS, 1, **ANY_ACL)
        world.sockets()
        assert count(world, bounds.CONTROL_REQUESTS) == 1
        for client in (first, second):
            while client.answer() is None:
                world.turn()
        check(world, bounds.CONTROL_REQUESTS, times=1, bystander=other)
