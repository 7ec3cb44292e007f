"""The process of the runner's Kafka clients: its death costs what was on its way, nothing else."""

import json
import os
import signal
import socket
from contextlib import closing, suppress

import pytest

import penstock
from penstock.local import Appliance
from spark_local import delivery, states
from spark_local.client_settings import ClientSettings
from spark_local.engine.clients import ClientError, Clients, ClientsGone
from tests.differential.link import Link


@pytest.fixture
def clients():
    found = Clients()
    yield found
    found.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Appliance(tmp_path_factory.mktemp("clients") / "data") as appliance:
        yield appliance


def test_a_mark_is_read_as_it_was_committed(clients, broker):
    """Also where the memory behind it holds something else."""
    query = "5abe5e3a-0571-4dbf-8ed2-93600d1a829d"
    assert clients.call("create", ClientSettings(broker.bootstrap), "marked", 1, {}) is True
    assert clients.call("committed", ClientSettings(broker.bootstrap), "marks", ["marked"]) == []
    host, port = broker.bootstrap.split(":")
    with closing(Link((host, int(port)))) as link:
        for newest in range(12):
            partition = {
                "partition_index": 0, "committed_offset": newest, "committed_leader_epoch": -1,
                "committed_metadata": delivery.mark(query, newest),
            }  # fmt: skip
            told = link.ask(8, 7, {
                "group_id": "marks", "generation_id_or_member_epoch": -1, "member_id": "",
                "group_instance_id": None,
                "topics": [{"name": "marked", "partitions": [partition]}],
            })  # fmt: skip
            assert told["topics"][0]["partitions"][0]["error_code"] == "NONE"
            for _ in range(5):
                found = clients.call(
                    "committed", ClientSettings(broker.bootstrap), "marks", ["marked"]
                )
                assert delivery.marks(map(tuple, found)) == {query: newest}, found


def test_a_topic_that_is_created_again_has_another_id(clients, broker):
    kafka, admin = ClientSettings(broker.bootstrap), penstock.connect(broker.bootstrap).admin()
    large = {"max.message.bytes": "3000000"}
    ids = []
    for _ in range(2):
        assert clients.call("create", kafka, "again", 2, large) is True
        told = clients.call("describe", kafka, ["again", "nowhere"], "first", "end")
        assert list(told) == ["again"]
        assert told["again"].first == told["again"].end == {"0": 0, "1": 0}
        ids.append(told["again"].id)
        assert clients.call("describe", kafka, ["again"])["again"].first == {}
        assert clients.call("setting", kafka, "again", "max.message.bytes") == "3000000"
        admin.delete_topics(["again"])["again"].result(30)
    assert len(set(ids)) == 2 and all(ids)


def test_an_abort_fails_what_is_on_its_way_and_the_next_request_is_served(clients, broker):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes a connection, says nothing
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        waiting = clients._send("spans", (address, "t"))
        first = clients.pid
        os.kill(first, signal.SIGABRT)
        with pytest.raises(ClientsGone, match=f"signal {signal.SIGABRT.value}"):
            waiting.result(60)
    assert clients.call("create", ClientSettings(broker.bootstrap), "t", 2, {}) is True
    assert clients.call("spans", ClientSettings(broker.bootstrap), "t") == {
        "0": (0, 0),
        "1": (0, 0),
    }
    assert clients.pid != first


def test_an_answer_that_is_none_fails_what_is_on_its_way(clients, broker):
    clients.call("spans", ClientSettings(broker.bootstrap), "none")
    process = clients._process
    process._fulfil = lambda *answer: {}["planted"]
    assert clients.call("spans", ClientSettings(broker.bootstrap), "none") is None, (
        "it was listened for already"
    )
    with pytest.raises(ClientsGone, match=f"signal {signal.SIGKILL.value}"):
        clients.call("spans", ClientSettings(broker.bootstrap), "none")
    assert clients.call("spans", ClientSettings(broker.bootstrap), "none") is None
    assert clients._process is not process


def test_a_thread_of_the_process_that_cannot_go_on_ends_it(clients, broker):
    """Whoever told states of jobs would tell none of them any more; a request would wait."""
    clients.call("spans", ClientSettings(broker.bootstrap), "none")
    for asked in (
        ("tell", (ClientSettings(broker.bootstrap), "one", {"number": object})),
        ("no function", ()),
    ):
        first = clients.pid
        waiting = clients._send(*asked)
        process = clients._process
        assert process.popen.wait(60) == 70
        with suppress(ClientsGone):
            waiting.result(60)
        assert clients.call("spans", ClientSettings(broker.bootstrap), "none") is None
        assert clients.pid != first


def test_a_position_that_could_not_be_published_in_an_outage_aborts_nobody(clients, broker):
    kafka = ClientSettings(broker.bootstrap)
    clients.call("create", kafka, "p", 1, {})
    clients.call("commit", kafka, "p", {("p", "0"): 0})
    first = clients.pid
    broker.stop()
    with pytest.raises(ClientError, match="_TIMED_OUT"):
        clients.call("commit", kafka, "p", {("p", "0"): 0}, 1.0)
    broker.start()
    # Time enough for a client that has kept the request to hear of the broker and to abort.
    for _ in range(20):
        clients.call("commit", kafka, "p", {("p", "0"): 0})
        clients.call("spans", kafka, "p")
    assert clients.pid == first


def test_requests_do_what_they_say(clients, broker):
    kafka = ClientSettings(broker.bootstrap)
    assert clients.call("create", kafka, "letters", 1, {}) is True
    assert clients.call("create", kafka, "letters", 1, {}) is False
    clients.call("produce", kafka, "letters", [(b"a", b"k", [("h", b"1")]), (b"b", None, [])])
    assert clients.call("last_values", kafka, "letters", 9) == [b"a", b"b"]
    assert clients.call("last_values", kafka, "none", 9) is None
    assert clients.call("spans", kafka, "none") is None
    clients.call("commit", kafka, "g", {("letters", "0"): 1})
    (first, _) = penstock.connect(broker.bootstrap).read("letters")
    assert (first.key(), first.headers()) == (b"k", [("h", b"1")])
    with pytest.raises(ClientError, match="Topic name is invalid"):
        clients.call("create", kafka, "letters/2", 1, {})
    with pytest.raises(ClientError, match=r"_TRANSPORT|_TIMED_OUT|_ALL_BROKERS_DOWN"):
        clients.call("spans", ClientSettings("127.0.0.1:1"), "letters", 1.0)


def test_the_newest_state_of_a_job_is_what_everybody_reads(clients, broker):
    for number in range(20):
        clients.write_state(ClientSettings(broker.bootstrap), "one", {"number": number})
        clients.write_state(ClientSettings(broker.bootstrap), "gone", {"number": number})
    clients.write_state(ClientSettings(broker.bootstrap), "gone", None)
    clients.close()
    assert states.read(ClientSettings(broker.bootstrap)) == {"one": {"number": 19}}
    records = penstock.connect(broker.bootstrap).read(states.TOPIC)
    told = [json.loads(m.value())["number"] for m in records if m.key() == b"one"]
    assert told == sorted(told)


def test_what_a_group_has_committed_is_never_less_for_want_of_a_topics_partitions(clients, broker):
    clients.call("create", ClientSettings(broker.bootstrap), "noted", 2, {})
    clients.call("commit", ClientSettings(broker.bootstrap), "reader", {("noted", "1"): 7})
    found = clients.call("committed", ClientSettings(broker.bootstrap), "reader", ["noted"])
    assert found == [("noted", "1", 7, "")]
    with pytest.raises(ClientError, match="UNKNOWN_TOPIC"):
        clients.call(
            "committed", ClientSettings(broker.bootstrap), "reader", ["noted", "not-there"]
        )
