"""A network process is restarted as planned: every client stays connected and is answered, whatever
it was in the middle of."""

import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from struct import pack
from types import SimpleNamespace

import confluent_kafka
import pytest

from appliance.base.caller import ANONYMOUS
from appliance.netproc.handover import LONGEST_NS, HandoverSource
from appliance.shell import handed_connection
from appliance.shell.handed_connection import HandedConnection
from console.model.local.renewal import renew
from tests.broker_process import KAFKA, Broker
from tests.compat.waiting import until
from tests.console_process import typing
from tests.differential.link import Link
from tests.differential.plain import encode

pytestmark = pytest.mark.skipif(KAFKA, reason="processes of an appliance")
API_VERSIONS, METADATA, FETCH, FIND, JOIN, HEARTBEAT, SYNC = 18, 3, 1, 10, 11, 12, 14
IDLE = 30
WHICH = (METADATA, 12, {"topics": None, "allow_auto_topic_creation": False})


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stay") / "data"
    settings = {"penstock.net.processes": "2", "group.initial.rebalance.delay.ms": "0"}
    with Broker(folder, settings) as one:
        typing(one.bootstrap)("topic", "create", "t", "-p", "1")
        yield one


@pytest.fixture
def link(broker):
    """A function that connects."""
    with ExitStack() as stack:
        yield lambda name="c": stack.enter_context(closing(Link((broker.host, broker.port), name)))


def told(link, name="me"):
    software = {"client_software_name": name, "client_software_version": "1"}
    return link.ask(API_VERSIONS, 3, software)["error_code"]


def restarted(broker):
    found = list(renew(str(broker.data), ()))
    assert len(found) == 2 and all(one.pid != one.before for one in found)
    return found


def clients(broker):
    done = typing(broker.bootstrap)("client", "list", "--data", str(broker.data), "-o", "json")
    return json.loads(done.stdout)


def test_who_is_idle_stays_and_is_known_by_what_it_said(broker, link):
    idle = [link(f"idle-{n}") for n in range(IDLE)]
    for one in idle:
        assert told(one, "idler") in ("NONE", "none")
    assert sum(one.connections for one in restarted(broker)) >= IDLE
    assert sum("idler" in json.dumps(one) for one in clients(broker)) == IDLE
    for one in idle:
        assert one.ask(*WHICH)["topics"][0]["name"] == "t"
    restarted(broker)
    for one in idle:
        assert told(one, "idler") in ("NONE", "none")


def test_who_waits_for_records_is_answered_and_asks_again(broker, link):
    one = link()
    fetch = {
        "replica_id": -1, "max_wait": 25_000, "min_bytes": 1, "max_bytes": 1 << 20,
        "isolation_level": 0, "topics": [{"topic": "t", "partitions": [
            {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]}],
    }  # fmt: skip
    one.send(FETCH, 4, fetch)
    restarted(broker)
    (topic,) = one.receive()["responses"]
    assert not topic["partitions"][0]["records"]
    one.send(FETCH, 4, fetch)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("t", b"here it is")
    assert producer.flush(30) == 0
    (topic,) = one.receive()["responses"]
    assert topic["partitions"][0]["records"]


def test_half_a_request_and_many_whole_ones_are_served_by_the_successor(broker, link):
    half, many = link("half"), link("many")
    told(half), told(many)
    body = encode(METADATA, 1, {"topics": [{"name": "x" * 200}] * 2000})
    head = pack(">hhih", METADATA, 1, 77, 1) + b"h"
    frame = pack(">i", len(head) + len(body)) + head + body
    half._socket.sendall(frame[:-5])
    for _ in range(300):
        many.send(*WHICH)
    restarted(broker)
    half._socket.sendall(frame[-5:])
    assert half._frame()[:4] == pack(">i", 77)
    for _ in range(300):
        assert many.receive()["topics"][0]["name"] == "t"


def test_a_member_that_waits_for_others_is_waited_for(broker, link):
    joined = {
        "group_id": "g", "session_timeout": 60_000, "rebalance_timeout": 60_000,
        "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}],
    }  # fmt: skip
    first, second = link("a"), link("b")

    ids = []

    def known():
        first.ask(FIND, 1, {"key": "g", "key_type": 0})  # makes the topic of groups
        ids.append(first.ask(JOIN, 4, joined | {"member_id": ""})["member_id"])
        assert ids[-1]

    until(known)
    first_id = ids[-1]
    answer = first.ask(JOIN, 4, joined | {"member_id": first_id})
    assert answer["leader"] == first_id != ""
    me = {"group_id": "g", "generation_id": 1, "member_id": first_id}
    assert first.ask(SYNC, 1, me | {"assignments": []})["error_code"] in ("NONE", "none")
    second_id = second.ask(JOIN, 4, joined | {"member_id": ""})["member_id"]
    second.send(JOIN, 4, joined | {"member_id": second_id})  # until the first one joins again
    until(lambda: first.ask(HEARTBEAT, 1, me)["error_code"] == "REBALANCE_IN_PROGRESS")
    with ThreadPoolExecutor(1) as aside:
        renewing = aside.submit(restarted, broker)
        first.send(JOIN, 4, joined | {"member_id": first_id})
        renewing.result(60)
    answers = [first.receive(), second.receive()]
    assert [one["generation_id"] for one in answers] == [2, 2], answers


def test_it_does_not_begin_while_a_request_takes_long_unless_for_ever():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        parting = HandoverSource(ours, -1, lambda _: "PLAINTEXT", None, 0)
        second = 1_000_000_000

        def may(key, started_ns, now_ns, answer=None):
            handler = SimpleNamespace(key=key)
            x = SimpleNamespace(handler=handler, started_ns=started_ns, answer=answer)
            return parting.may_begin([x], now_ns)

        assert parting.may_begin([], 0)
        assert may(METADATA, second, second), "it may be answered at once"
        assert not may(METADATA, 0, second)
        assert not may(JOIN, second, second), "whom it waits for may have to be read here"
        assert may(JOIN, 0, second, answer=[b"here"]) and may(FETCH, 0, second)
        assert may(JOIN, 0, LONGEST_NS)


def test_who_does_not_get_through_is_prepared_again_in_the_next_turn_only(monkeypatch):
    habits = SimpleNamespace(roles=0, remembered=lambda: ([], []))
    framing = SimpleNamespace(received=lambda: b"")
    transport = SimpleNamespace(sock=None, stays=False)
    one = SimpleNamespace(
        habits=habits, framing=framing, transport=transport, address="", listener=0,
        software=None, client_id=None, pause_until_ns=0, principal=ANONYMOUS, session=None,
    )  # fmt: skip
    tried = []
    monkeypatch.setattr(handed_connection, "send_connection", lambda *given: tried.append(given))
    parting = HandoverSource(None, -1, lambda _: "PLAINTEXT", None, 0)
    for _ in range(3):
        assert not parting.takes(one)
    assert len(tried) == 1
    parting.try_again()
    assert not parting.takes(one)
    assert len(tried) == 2


def test_a_stock_client_notices_nothing(broker):
    problems, acknowledged = [], []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "error_cb": problems.append,
            "linger.ms": 0,
        }
    )
    for n in range(4):
        for m in range(50):
            producer.produce(
                "t", f"{n}-{m}".encode(), on_delivery=lambda e, _: acknowledged.append(e)
            )
        restarted(broker)
    assert producer.flush(30) == 0
    assert acknowledged == [None] * 200 and problems == []


def test_what_is_no_network_process_is_refused(broker):
    run = typing(broker.bootstrap)
    done = run("debug", "restart", "ioproc-0", "--data", str(broker.data), code=2)
    assert "it has netproc-0, netproc-1" in done.stderr


def test_a_guest_arrives_as_it_was():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near, far = socket.socketpair()
    with ours, theirs, near, far:
        for one in (ours, theirs):
            one.setblocking(False)
        sent = HandedConnection(
            near,
            "10.0.0.1",
            1,
            ("kcat", "1.7"),
            b"\xff\x00",
            7,
            3,
            ("a", "ü"),
            ("b",),
            os.urandom(99_999),
        )
        assert handed_connection.receive(theirs) is None
        assert handed_connection.send_connection(ours, sent)
        got = handed_connection.receive(theirs)
        with got.sock:
            got.sock.sendall(b"over there")
            assert far.recv(99) == b"over there"
            for name in HandedConnection.__slots__:
                if name not in ("sock", "asked", "gone"):
                    assert getattr(got, name) == getattr(sent, name), name
            assert (got.asked, got.gone) == (["a", "ü"], ["b"])
        count = 0
        while handed_connection.send_connection(
            ours, sent
        ):  # until the other side would have to read
            count += 1
        assert count > 1
        for one in handed_connection.receive_all(theirs):
            one.close()
            count -= 1
        assert count == 0
        ours.close()
        assert handed_connection.receive_all(theirs) == []
