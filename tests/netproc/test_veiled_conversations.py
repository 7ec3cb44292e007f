"""Whole conversations over a transport that behaves as TLS may: the answers are those of a plain
connection, and the loop is asked to watch for what the transport waits for."""

import socket

import pytest

from appliance.netproc.connections.connection_states import CLOSED, DRAINING, HANDSHAKE, MUTED, OPEN
from appliance.netproc.transport.transport import READ
from appliance.wire.batch import NewRecord, build_batch
from tests.netproc.netproc_world import Client, World
from tests.netproc.veil import Veiled, VeiledSocket

MOST_TURNS = 60_000


class Woken(World):
    """Connections hear of what the kernel says, and of nothing else."""

    def sockets(self):
        for fd, mask in self.loop._epoll.poll(0):
            handler = self.loop._handlers.get(fd)
            if handler is not None:
                handler.ready(mask)


class VeiledClient(Client):
    def __init__(self, world, name, at_once, rekey_after):
        super().__init__(world, name)
        taken, _ = world.door.accept()
        taken.setblocking(False)
        for one in (taken, self.sock):  # or each small piece waits for the other side's late ACK
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = VeiledSocket(self.sock)
        self.transport = Veiled(taken, at_once, rekey_after)
        door = world.server.listeners[0]
        before = set(world.server.shared.open)
        assert world.server.connections.admit(self.transport, "127.0.0.1", door)
        (fd,) = set(world.server.shared.open) - before
        self.connection = world.server.shared.open[fd]
        world.clients.append(self)


@pytest.fixture
def world(tmp_path):
    one = Woken(tmp_path, topics=("flights", "trains"))
    one.io_process()
    yield one
    one.close()


def until(world, found):
    """Turn everybody until there is something."""
    for _ in range(MOST_TURNS):
        world.turn(ms=0)
        world.io_turn()
        if (one := found()) is not None:
            return one
    raise AssertionError("nothing comes of it")


def produce(values, topic="flights", acks=-1):
    records = [NewRecord(1, None, value) for value in values]
    rows = [{"index": 0, "records": build_batch(records)}]
    data = [{"name": topic, "partition_data": rows}]
    return {"transactional_id": None, "acks": acks, "timeout": 30_000, "topic_data": data}


def fetch(offset, topics=("flights",), size=1):
    """The batch at this offset of each: how many more come depends on what is known of them."""
    part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": size}
    part |= {"current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1}
    named = [{"topic": name, "partitions": [part]} for name in topics]
    return {
        "replica_id": -1, "max_wait": 100, "min_bytes": 1, "max_bytes": 1 << 20, "rack_id": "",
        "isolation_level": 0, "session_id": 0, "session_epoch": -1, "topics": named,
        "forgotten_topics_data": [],
    }  # fmt: skip


def conversation(sizes):
    """Requests of every kind of answer: bytes alone, ranges of files, several of each. First those
    that write, so that no answer depends on who is faster."""
    writing, reading = [], []
    for size in sizes:
        writing.append((0, 9, produce([b"v" * size, b"w"])))
        writing.append((0, 9, produce([b"t" * size], topic="trains")))
    writing.append((0, 9, produce([b"x"], topic="no such topic")))
    reading.append((18, 3, {"client_software_name": "veil", "client_software_version": "1"}))
    offsets = range(0, 2 * len(sizes), 2)  # the first asks the home, the others go on from there
    reading += [(1, 12, fetch(offset)) for offset in offsets]
    reading.append((1, 12, fetch(0, ("flights", "trains"))))
    reading.append((1, 12, fetch(10_000)))
    return writing, reading


def speak(world, client, sizes, at_a_time):
    """So many requests under way at once; the answers in their order."""
    answers = []
    for asked in conversation(sizes):
        for at in range(0, len(asked), at_a_time):
            few = asked[at : at + at_a_time]
            for key, version, values in few:
                client.send(key, version, **values)
            answers += [until(world, client.answer) for _ in few]
    return answers


@pytest.mark.parametrize("at_a_time", [1, 4])
@pytest.mark.parametrize(
    ("at_once", "rekey_after", "sizes"),
    [(1, 50, (1, 30)), (97, 500, (1, 1000, 3000)), (4096, 40_000, (1, 20_000, 70_000))],
)
def test_the_answers_are_those_of_a_plain_connection(
    tmp_path, at_once, rekey_after, sizes, at_a_time
):
    answers = []
    for veiled in (False, True):
        path = tmp_path / str(veiled)
        path.mkdir()
        world = Woken(path, topics=("flights", "trains"))
        world.io_process()
        veil = at_once, rekey_after
        client = VeiledClient(world, "one", *veil) if veiled else world.client("one")
        answers.append(speak(world, client, sizes, at_a_time))
        if veiled:
            assert min(client.transport.rekeyings) > 1, "nothing was in the way"
            assert client.connection.state == OPEN
            until(world, lambda one=client.connection: one.mask == READ or None)
        world.end()
        world.close()
    assert answers[0] == answers[1]
    found = [answer for _, answer in answers[0] if hasattr(answer, "session_id")]
    assert sum(len(one.responses[0].partitions[0].records or b"") for one in found) > sum(sizes)


def test_before_it_agreed_nothing_is_read_and_the_end_does_not_wait(world):
    client = VeiledClient(world, "one", 1, 100)
    assert client.connection.state == HANDSHAKE
    client.connection.drain()
    assert client.connection.state == CLOSED


def half_sent(client):
    """Whether an answer is on its way; the client does its part of it."""
    client.sock.work()
    return client.connection.sending.out or None


def test_a_pause_does_not_stop_its_own_conversation(world):
    """While nothing is read from a client it may still have to agree on new keys."""
    client = VeiledClient(world, "one", 7, 20)
    client.send(18, 3, client_software_name="veil", client_software_version="1")
    until(world, lambda: half_sent(client))
    client.connection.mute(world.now_ns + 10**12)
    before = client.transport.rekeyings[0]
    until(world, client.answer)
    assert client.transport.rekeyings[0] > before
    assert client.connection.state == MUTED


def test_at_the_end_the_last_answer_leaves_whole(world):
    client = VeiledClient(world, "one", 1, 30)
    client.send(18, 3, client_software_name="veil", client_software_version="1")
    until(world, lambda: half_sent(client))
    client.connection.drain()
    assert client.connection.state == DRAINING
    assert until(world, client.answer)[0] == 0
    until(world, lambda: client.connection.closed or client.answer())
