"""The rest of a long answer is sent by a thread; short requests of others do not wait for it."""

import os
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from appliance.base.clock import OsClock
from appliance.handlers.exchange import FileRange
from appliance.netproc.connections.long_answers import SIDE_BY_SIDE_NS, LongAnswers
from appliance.netproc.connections.send_queue import FULL, LENT, LONG_BYTES, SENT, SendQueue
from appliance.netproc.files.page_cache import PageCache
from appliance.netproc.transport.transport import Plain
from tests.netproc.netproc_world import World
from tests.netproc.test_fetched_files import BATCH, fetch, fetch_values, produce, turn
from tests.netproc.test_sending import Wire, asked, counts

LIMIT_S = 60
TEXT = os.urandom(1 << 20) * 6
TAIL = b" the end"
SOON = SIDE_BY_SIDE_NS - 1


class Doorbells:
    """In the loop's place: what it was told to watch."""

    def __init__(self):
        self.files = {}

    def register(self, fd, mask, handler):
        self.files[fd] = handler

    def unregister(self, fd):
        del self.files[fd]


class Client:
    """One connection's half that sends, and the socket of the client that reads."""

    def __init__(self, cache=None):
        ours, self.sock = socket.socketpair()
        ours.setblocking(False)
        self.sock.settimeout(LIMIT_S)
        self.transport = Plain(ours)
        self.sending = SendQueue(cache or PageCache(), counts())
        self.back = []

    def take_back(self, problem):
        self.back.append(problem)

    def flush(self, answers, alone_ns=SOON):
        return answers.consider(self, self.sending.send_answers(self.transport, 1), alone_ns)

    def read(self, size):
        got = bytearray()
        while len(got) < size and (more := self.sock.recv(size - len(got))):
            got += more
        return bytes(got)

    def close(self):
        self.sock.close()
        self.transport.close()


@pytest.fixture
def segment(tmp_path):
    (tmp_path / "segment").write_bytes(TEXT)
    with (tmp_path / "segment").open("rb") as file:
        yield SimpleNamespace(fd=file.fileno())


@pytest.fixture
def clients():
    made = [Client(), Client(), Client()]
    yield made
    for one in made:
        one.close()


@pytest.fixture
def answers():
    made = LongAnswers(Doorbells(), OsClock())
    yield made
    made.end_thread()


def wait_back(answers, *lenders):
    give_up = time.monotonic() + LIMIT_S
    while not all(one.back for one in lenders):
        assert time.monotonic() < give_up, "it does not come back"
        answers.ready(1)
        time.sleep(0.0005)


def test_long_answers_go_out_whole_and_side_by_side(answers, segment, clients):
    sizes = [len(TEXT), len(TEXT) - 1, LONG_BYTES * 3]
    for client, size in zip(clients, sizes, strict=True):
        asked(client.sending, [b"head ", FileRange(segment, 0, size), TAIL])
        assert client.flush(answers) == LENT
        assert not client.sending.idle() and client.sending.out_bytes
    for client, size in zip(reversed(clients), reversed(sizes), strict=True):
        assert client.read(5 + size + len(TAIL)) == b"head " + TEXT[:size] + TAIL
    wait_back(answers, *clients)
    for client in clients:
        assert client.back == [None]
        assert client.sending.idle() and not client.sending.out_bytes
        assert client.sending.moved_ns > 1, "the sweep sees it move"


def test_what_is_answered_meanwhile_comes_behind_it(answers, segment, clients):
    client = clients[0]
    asked(client.sending, [FileRange(segment, 0, len(TEXT))])
    assert client.flush(answers) == LENT
    asked(client.sending, [b"next"])
    assert client.read(len(TEXT)) == TEXT
    wait_back(answers, client)
    assert not client.sending.idle()
    assert client.flush(answers) == SENT
    assert client.read(4) == b"next"


@pytest.mark.parametrize(
    ("alone_ns", "size"),
    [(SIDE_BY_SIDE_NS + 1, len(TEXT)), (SOON, LONG_BYTES - 1 + (64 << 10))],
    ids=["nobody else is there", "little is left"],
)
def test_the_loop_sends_what_keeps_nobody_waiting(answers, segment, clients, alone_ns, size):
    client = clients[0]
    client.transport.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 256 << 10)
    asked(client.sending, [FileRange(segment, 0, size)])
    got = b""
    while (outcome := client.flush(answers, alone_ns)) != SENT:
        assert outcome == FULL
        got += client.sock.recv(1 << 20)
    assert got + client.read(size - len(got)) == TEXT[:size]
    assert not answers._loop.files, "a thread began"


def test_a_client_that_hangs_up_comes_back_with_the_reason(answers, segment, clients):
    for client in clients[:2]:
        asked(client.sending, [FileRange(segment, 0, len(TEXT))])
        assert client.flush(answers) == LENT
    clients[0].sock.close()
    clients[1].transport.hang_up(lent=True)  # what `Connection.close` does
    wait_back(answers, *clients[:2])
    for client in clients[:2]:
        assert [type(one) for one in client.back] == [BrokenPipeError]
        assert client.transport.fd >= 0, "its number went to somebody else meanwhile"


def test_an_exception_of_the_thread_costs_one_connection(answers, segment, clients):
    first, second, _ = clients
    for client in (first, second):
        asked(client.sending, [FileRange(segment, 0, len(TEXT))])
    bug = KeyError("planted")

    class Broken(Wire):
        def send_file(self, fd, position, count):
            raise bug

    plain, broken = first.transport, Broken(sends_files=True)
    assert first.sending.send_answers(plain, 1) == FULL
    broken.sock, broken.fd = plain.sock, plain.fd
    first.transport = broken
    assert answers.lend(first)
    assert second.flush(answers) == LENT
    assert second.read(len(TEXT)) == TEXT
    wait_back(answers, first, second)
    assert first.back == [bug] and second.back == [None]


def test_what_the_disk_has_holds_up_nobody(answers, segment):
    class Disk(PageCache):
        """Has nothing until it is asked to fetch, and then a moment later."""

        def __init__(self):
            super().__init__()
            self.there = 0
            self.asked = threading.Event()

        def holds(self, fd, position):
            return position < self.there

        def fetch(self, fd, position, length):
            self.asked.set()

    disk = Disk()
    cold, warm = Client(disk), Client()
    disk.there = 1 << 19
    for client in (cold, warm):
        asked(client.sending, [FileRange(segment, 0, 1 << 19), FileRange(segment, 0, len(TEXT))])
        client.sending.send_answers(client.transport, 1)
        assert answers.lend(client)
    assert cold.read(1 << 19) == TEXT[: 1 << 19]
    assert disk.asked.wait(LIMIT_S)
    assert warm.read(len(TEXT) + (1 << 19)) == TEXT[: 1 << 19] + TEXT
    wait_back(answers, warm)
    assert not cold.back
    disk.there = 1 << 30
    assert cold.read(len(TEXT)) == TEXT
    wait_back(answers, cold)
    cold.close()
    warm.close()


def test_without_a_thread_the_loop_goes_on_sending(answers, segment, clients, monkeypatch):
    def fail(_thread):
        raise RuntimeError("can't start new thread")

    before = set(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(threading.Thread, "start", fail)
    asked(clients[0].sending, [FileRange(segment, 0, len(TEXT))])
    assert clients[0].flush(answers) == FULL
    assert set(os.listdir("/proc/self/fd")) == before and not answers._loop.files
    monkeypatch.undo()
    assert clients[0].flush(answers) == LENT
    assert clients[0].read(len(TEXT)) == TEXT


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    one.io_process()
    producer = one.client("producer")
    produce(one, producer, 12)
    yield one
    one.close()


def lend(world, client):
    """Have an answer of 4.8 MB on its way to a client that does not read."""
    client.send(1, 12, **fetch_values(0, max_bytes=8 << 20, partition_max_bytes=8 << 20))
    give_up = time.monotonic() + LIMIT_S
    while time.monotonic() < give_up:
        turn(world)
        for connection in world.server.shared.open.values():
            if connection.sending.lent:
                return connection
    raise AssertionError("it is not lent")


def test_others_are_served_while_it_is_sent_and_it_arrives_whole(world):
    reader = world.client("reader")
    connection = lend(world, reader)
    produce(world, world.client("beside"), 1)
    assert connection.sending.lent and connection.sending.out_bytes
    give_up, found = time.monotonic() + LIMIT_S, None
    while found is None or connection.sending.lent:
        assert time.monotonic() < give_up, "it does not arrive"
        found = found or reader.answer()
        turn(world)
        world.server.shared.long_answers.ready(1)
    (partition,) = found[1].responses[0].partitions
    assert len(partition.records) == 12 * len(BATCH)
    assert fetch(world, reader, 0).high_watermark == 13, "the next request of the connection"


@pytest.mark.parametrize("who", ["client", "sweep"])
def test_a_connection_that_ends_meanwhile_keeps_its_descriptor_until_then(world, who):
    reader = world.client("reader")
    connection = lend(world, reader)
    fd = connection.transport.fd
    connection.close() if who == "sweep" else reader.close()
    give_up = time.monotonic() + LIMIT_S
    while connection.transport.sock.fileno() >= 0:
        assert time.monotonic() < give_up, "its descriptor stays open"
        assert not connection.sending.lent or connection.transport.sock.fileno() == fd
        turn(world)
        world.server.shared.long_answers.ready(1)
    assert connection.closed and fd not in world.server.shared.open
    assert connection.sending.idle()
    world.end()
