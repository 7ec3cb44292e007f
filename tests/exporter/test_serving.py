"""HTTP as probes and scrapers speak it, and as nobody should; a knock at the door of clients."""

import json
import os
import socket
import struct
import threading

import pytest
from exporter_world import SECOND, World

from appliance.config import bounds
from appliance.config.load import load
from appliance.exporter.door import MetricsDoor
from appliance.exporter.knock import unanswered
from appliance.exporter.main import Pages, process_state
from appliance.exporter.post import Address
from appliance.exporter.probe import NotProbed
from appliance.exporter.probing import APART_NS, HealthProbe
from appliance.exporter.serving import MOST, HttpAnswer, HttpServer
from appliance.ring.process_table import IOPROC, Peer
from benchmarks.kafka import free_port

NOW = 0
TEXT = "ä" * 3_000_000  # more than a socket takes at once


def config(**settings):
    """The settings of a listener of metrics; `_` stands for a dot."""
    told = {"penstock.metrics.listener": "localhost:0"}
    return load(None, told | {key.replace("_", "."): one for key, one in settings.items()})[0]


class Place:
    """A server in this thread: `turn` until it has nothing to do."""

    def __init__(self, door=None):
        self.reached = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.listener.setblocking(False)
        self.now_ns = 0
        self.asked = []
        self.not_yet = False
        self.server = HttpServer(
            self.listener,
            self.answer,
            self.on_bug,
            door or MetricsDoor(config(), None),
            MOST,
            lambda bound, why: self.reached.append((bound, why)),
        )
        self.mine = []

    def answer(self, target, asked_ns):
        self.asked.append(target)
        self.asked_ns = asked_ns
        if target == "/later" and self.not_yet:
            return None
        return HttpAnswer(200, "text/plain", TEXT if target == "/long" else "short\n")

    def on_bug(self, where, bug):
        raise bug

    def connect(self):
        sock = socket.create_connection(self.listener.getsockname())
        self.mine.append(sock)
        return sock

    def turn(self, times=3):
        for _ in range(times):
            self.server.serve_once(0.0, lambda: self.now_ns)

    def ask(self, request):
        sock = self.connect()
        sock.sendall(request)
        return self.hear(sock)

    def hear(self, sock):
        """Everything until the server hangs up."""
        sock.setblocking(False)
        told = b""
        while True:
            self.turn(1)
            try:
                part = sock.recv(1 << 20)
            except BlockingIOError:
                continue
            if not part:
                return told
            told += part

    def close(self):
        self.server.close()
        for sock in (*self.mine, self.listener):
            sock.close()


@pytest.fixture
def place():
    made = Place()
    yield made
    made.close()


def test_a_request_is_answered_however_it_arrives(place):
    sock = place.connect()
    for byte in b"GET /metrics?x=y HTTP/1.1\r\nHost: localhost:9404\r\n\r\n":
        place.turn()
        sock.sendall(bytes([byte]))
    head, _, body = place.hear(sock).partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"HTTP/1.1 200 OK" and body == b"short\n"
    assert place.asked == ["/metrics?x=y"]


def test_a_long_answer_is_sent_whole_while_others_are_served(place):
    slow = place.connect()
    slow.sendall(b"GET /long HTTP/1.0\r\n\r\n")
    place.turn()
    assert place.ask(b"GET / HTTP/1.0\r\n\r\n").endswith(b"short\n")
    head, _, body = place.hear(slow).partition(b"\r\n\r\n")
    assert f"Content-Length: {len(TEXT.encode())}".encode() in head
    assert body == TEXT.encode()


def test_head_is_told_the_length_alone(place):
    told = place.ask(b"HEAD / HTTP/1.1\r\n\r\n")
    assert b"Content-Length: 6\r\n" in told and told.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST / HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x00\xff\r\n\r\n", b"400"),
        (b"\0\0\0\x12\0\x12 \r\n\r\n x", b"400"),
    ],
)
def test_what_is_no_get_is_told_so(place, request_, status):
    assert place.ask(request_).split(b" ")[1] == status
    assert not place.asked


@pytest.mark.parametrize("rest", [b"", b"x" * 9000])
def test_half_a_request_is_no_request(place, rest):
    sock = place.connect()
    sock.sendall(b"GET / HTTP/1.1\r\n" + rest)
    if not rest:
        sock.shutdown(socket.SHUT_WR)
    assert place.hear(sock) == b""


def test_who_does_not_go_on_is_hung_up_on(place):
    idle = [place.connect() for _ in range(3)]
    place.turn()
    place.now_ns = 11 * SECOND
    assert all(place.hear(sock) == b"" for sock in idle)


def test_idle_connections_keep_no_probe_waiting(place):
    for _ in range(1000 // MOST):
        idle = [place.connect() for _ in range(MOST)]
        place.turn(2)
    assert place.ask(b"GET /livez HTTP/1.1\r\n\r\n").endswith(b"short\n")
    assert place.now_ns == 0, "nobody had to wait until their time was over"
    assert len(place.server._callers) <= MOST
    bound, why = place.reached[-1]
    assert bound == bounds.METRICS_CONNECTIONS and bounds.setting_of(bound) in why
    place.turn()
    assert idle[-1].fileno() in [sock.fileno() for sock in place.mine]
    idle[-1].sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert place.hear(idle[-1]).endswith(b"short\n"), "the youngest stays"


def test_who_waits_for_an_answer_does_not_make_way(place):
    place.not_yet = True
    waiting = [place.connect() for _ in range(MOST)]
    for sock in waiting:
        sock.sendall(b"GET /later HTTP/1.1\r\n\r\n")
    place.turn(5)
    late = place.connect()
    late.sendall(b"GET / HTTP/1.1\r\n\r\n")
    place.turn()
    assert "/" not in place.asked, "all places are taken by whom is answered"
    place.not_yet = False
    assert all(place.hear(sock).endswith(b"short\n") for sock in waiting)
    assert place.hear(late).endswith(b"short\n")


@pytest.mark.parametrize("target", ["/long", "/later"])
def test_who_reads_no_answer_keeps_no_probe_waiting_for_long(place, target):
    """Nor who asks for what takes long, as often as there are places: each has half a second."""
    place.not_yet = True
    for sock in [place.connect() for _ in range(MOST)]:
        sock.sendall(f"GET {target} HTTP/1.1\r\n\r\n".encode())
    place.turn(5)
    late = place.connect()
    late.sendall(b"GET /livez HTTP/1.1\r\n\r\n")
    place.turn()
    assert "/livez" not in place.asked
    place.now_ns = SECOND // 2
    assert place.hear(late).endswith(b"short\n")
    assert len(place.server._callers) == MOST - 1, "one has made way, the oldest"
    assert place.mine[0].fileno() not in place.server._callers


@pytest.mark.parametrize("head", ["Host:", "Authorization: Basic "])
@pytest.mark.parametrize(
    "filling", [" ", "\t", "a", " a", "\r\nHost: ", "\r\nAuthorization: Basic a"]
)
def test_a_head_of_any_filling_is_read_in_time(head, filling):
    """An expression that goes back over what it took needs minutes for a line of blanks that does
    not end as it should, before any password is asked for."""
    asks = {"penstock.metrics.basic.auth.user.info": "a:b"}
    asks["connection.failed.authentication.delay.ms"] = "0"
    place = Place(MetricsDoor(config(**asks), None))
    try:
        lines = (filling * 8000)[:8000]
        told = place.ask(f"GET / HTTP/1.1\r\n{head}{lines}\rx\r\n\r\n".encode())
        assert told.split(b" ")[1] in (b"401", b"421")
    finally:
        place.close()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", b"200"),
        ("127.0.0.1:9404", b"200"),
        ("[::1]:9404", b"200"),
        ("10.1.2.3", b"200"),
        (socket.gethostname(), b"200"),
        ("rebound.example.com:9404", b"421"),
        ("localhost.example.com", b"421"),
        ("", b"421"),
    ],
)
def test_on_a_loopback_address_only_names_of_this_host_are_answered(place, host, status):
    told = place.ask(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert told.split(b" ")[1] == status
    assert bool(place.asked) is (status == b"200")


def test_a_question_is_as_old_as_the_end_of_its_request(place):
    sock = place.connect()
    place.turn()
    for at, part in ((1, b"GET / HTTP/1.1\r\n"), (2, b"\r\n")):
        place.now_ns = at
        sock.sendall(part)
        place.turn()
    assert place.asked_ns == 2


def test_who_waits_for_an_answer_keeps_nobody_else_waiting(place):
    place.not_yet = True
    first, gone = place.connect(), place.connect()
    for sock in (first, gone):
        sock.sendall(b"GET /later HTTP/1.1\r\n\r\n")
    place.turn(5)
    assert place.ask(b"GET / HTTP/1.1\r\n\r\n").endswith(b"short\n")
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone.close()
    place.turn()
    place.asked.clear()
    place.turn(1)
    assert place.asked == ["/later"], "nobody asks for who has gone"
    place.not_yet = False
    assert place.hear(first).endswith(b"short\n")


# What is told where -----------------------------------------------------------------------------


def pages(tmp_path, knock=""):
    world = World(tmp_path)
    world.serve()
    world.look()
    world.turn()
    asked = []

    def knocked(addresses):
        asked.append(addresses)
        return knock

    return world, asked, Pages(world.exporter, world.exporter._post, lambda: world.now_ns, knocked)


def test_ready_says_what_is_missing_and_knocks_when_nothing_is(tmp_path):
    world, asked, told = pages(tmp_path)
    answer = told.answer("/readyz", NOW)
    assert answer.status == 200 and len(asked) == 1
    assert json.loads(answer.text) == {"ready": True, "missing": [], "warnings": []}
    world.tables.processes.set_drain(1)
    answer = told.answer("/readyz?verbose", NOW)
    assert answer.status == 503 and len(asked) == 1
    assert json.loads(answer.text)["missing"] == ["it is ending"]


def test_who_looks_for_the_first_time_answers_when_it_is_sure(tmp_path):
    world = World(tmp_path)
    world.serve()
    told = Pages(world.exporter, world.exporter._post, lambda: world.now_ns, lambda _: "")
    silent = Peer(IOPROC, 0)
    assert told.answer("/readyz", NOW) is None
    world.turn(silent, seconds=1)
    assert told.answer("/readyz?probe=1", NOW) is None
    assert told.answer("/livez", NOW).status == 200, "nobody waits for that"
    world.turn(silent, seconds=2)
    answer = told.answer("/readyz", NOW)
    assert answer.status == 503
    assert json.loads(answer.text)["missing"] == ["ioproc-0 has stood still for 3 s"]
    world.turn()
    assert told.answer("/readyz", NOW).status == 200


def test_a_door_that_does_not_answer_is_not_ready(tmp_path):
    _, _, told = pages(tmp_path, knock="127.0.0.1:1 does not answer")
    answer = told.answer("/readyz", NOW)
    assert answer.status == 503 and json.loads(answer.text)["missing"] == [
        "127.0.0.1:1 does not answer"
    ]
    assert told.answer("/livez", NOW).status == 200, "it lives all the same"


def waited(told, target):
    """The answer, when it is there."""
    while (answer := told.answer(target, NOW)) is None:
        pass
    return answer.status, json.loads(answer.text)


def test_a_probe_is_made_when_it_is_asked_for_and_nothing_is_missing(tmp_path):
    world, _, _ = pages(tmp_path)
    outcomes = [NotProbed("there is no topic"), "a record is refused"]

    def probe():
        found = outcomes.pop()
        if isinstance(found, str):
            return found
        raise found

    def told():
        post = world.exporter._post
        return Pages(world.exporter, post, lambda: world.now_ns, lambda _: "", probe)

    assert told().answer("/readyz?probe=0", NOW).status == 200 and len(outcomes) == 2
    page = told()
    status, found = waited(page, "/readyz?x&probe=1")
    assert (status, found["missing"], found["probed"]) == (503, ["a record is refused"], True)
    assert waited(page, "/readyz?probe=1")[0] == 503 and len(outcomes) == 1, "the same one"
    status, found = waited(told(), "/readyz?probe=1")
    assert (status, found["missing"], found["probed"]) == (200, [], False)
    assert found["warnings"] == ["not probed: there is no topic"]
    world.tables.processes.set_drain(1)
    status, found = waited(page, "/readyz?probe=1")
    assert (status, found["missing"], found["probed"]) == (503, ["it is ending"], False)


def test_who_asks_hears_of_a_probe_that_began_after_that_and_there_is_one_a_second():
    began, now = [], [10 * SECOND]

    def probe():
        began.append(now[0])
        return str(len(began))

    probing = HealthProbe(probe, lambda: now[0])

    def found(asked_ns):
        while (told := probing.result(asked_ns)) is None:
            pass
        return told.problem

    asked = now[0]
    assert found(asked) == found(asked) == "1"
    asked = now[0] = asked + APART_NS - 1
    assert probing.result(asked) is None and not probing.under_way, "not so soon"
    now[0] += 1
    assert found(asked) == "2" and began[1] - began[0] == APART_NS


def test_the_paths_there_are(tmp_path):
    _, _, told = pages(tmp_path)
    assert "penstock_ready 1" in told.answer("/metrics", NOW).text
    assert told.answer("/metrics/", NOW).content_type.startswith("text/plain; version=0.0.4")
    assert told.answer("/", NOW).status == 200 and told.answer("/nothing", NOW).status == 404


def test_the_state_of_a_process_is_the_kernels():
    assert process_state(os.getpid()) in "RS"
    assert process_state(2**22 + 1) == "X"


# The knock -------------------------------------------------------------------------------------


def door(answer):
    """A listener that gives one answer to whatever comes; its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with listener:
            sock, _ = listener.accept()
            with sock:
                (size,) = struct.unpack(">i", sock.recv(4, socket.MSG_WAITALL))
                asked = sock.recv(size, socket.MSG_WAITALL)
                assert struct.unpack_from(">hh", asked) == (18, 0)
                sock.sendall(answer(asked[4:8]))

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda number: b"\0\0\0\x0a" + number + b"\0\0\0\0\0\0", ""),
        (lambda number: b"\0\0\0\x06" + number + b"\0\x23", "error 35"),
        (lambda number: b"", "hung up"),
        (lambda number: b"\0\0\0\x0a\1\1\1\1\0\0\0\0\0\0", "error 0"),
    ],
)
def test_an_answer_is_what_a_client_would_take(answer, why):
    host, port = door(answer)
    told = unanswered([Address(host, port)], 30)
    assert (why in told) if why else told == ""


def test_one_door_that_opens_is_enough():
    nobody = Address("127.0.0.1", free_port())
    host, port = door(lambda number: b"\0\0\0\x06" + number + b"\0\0")
    assert "does not answer" in unanswered([nobody])
    assert unanswered([nobody, Address(host, port)], 30) == ""
