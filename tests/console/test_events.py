"""What an appliance says of itself, and what of it somebody wants to see: decided without one, then
of a running one."""

import json
import os
import signal
import subprocess

import pytest

from appliance.observer.door import Observer
from appliance.ring.event_ring import EventTable
from appliance.ring.process_table import IOPROC, Peer
from console.model.asking.failure import Failure
from console.model.local import events
from console.model.local.events import Feed, Wanted, made, wanted
from tests.console_process import rows, started, typing


def event(name="e", level="info", **fields):
    return made("1", 0, level, "netproc-0", name, fields)


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("", "abcdef"),
        ("level:w", "bc"),
        ("topic:ord", "adf"),
        ("topic:orders-v2", "f"),
        ("group:bill", "d"),
        ("client:10.0.0.7", "b"),
        ("client:load level:warning", "c"),
        ("quota", "c"),
        ("!quota !deleted netproc", "bdef"),
        ('group:"bill i"', "d"),
        ('"bill', "d"),
        ("group:[x]", "e"),
        ("level: ! topic:", "abcdef"),
    ],
)
def test_a_filter_keeps_what_it_names(typed, kept):
    given = {
        "a": event("topic-deleted", topic="orders"),
        "b": event("connection-refused", "warning", peer="10.0.0.7"),
        "c": event("quota-exceeded", "error", client="loader"),
        "d": event("group-rebalanced", group="bill ing", topics="orders,payments"),
        "e": event("member-lost", group="a[x]b"),
        "f": event("log-cut", partition="orders-v2-11"),
    }
    keeps = wanted(typed).keeps
    assert "".join(name for name, one in given.items() if keeps(one)) == kept


def test_a_flag_names_the_whole_name():
    one = event(topic="orders-v2")
    for pattern, kept in (("orders", False), ("orders*", True), ("ORDERS-V2", True), ("*", True)):
        assert Wanted(topic=pattern).keeps(one) is kept
    assert not Wanted(topic="*").keeps(event(group="g"))
    with pytest.raises(Failure, match="error, warning, notice, info"):
        wanted("level:loud")


class Memory:
    """An appliance whose memory is here."""

    def __init__(self):
        memory = memoryview(bytearray(EventTable.bytes_needed(1, 1)))
        self.tables = self
        self.head = self
        self.started_ms = 7
        self.alive = True
        self.events = EventTable(memory, ioprocs=1, netprocs=1)
        self.writers = {name: self.events.writer(name) for name in self.events.names}

    def say(self, process, at_ms, event, **fields):
        self.writers[process].write_event(at_ms, 6, event, fields)


def names(found):
    return [one.event for one in found]


def test_events_of_all_processes_come_by_their_time_and_the_oldest_go(monkeypatch):
    memory = Memory()
    monkeypatch.setattr(events, "observed", lambda data_dir: memory)
    memory.say("ioproc-0", 20, "second")
    memory.say("control", 10, "first")
    feed = Feed("/x", most=4)
    assert names(feed.read_new()) == ["first", "second"]
    before = feed.events_seen
    assert feed.read_new() == [] and feed.events_seen is before, "nothing new makes nothing new"
    memory.say("netproc-0", 40, "fourth")
    assert names(feed.read_new()) == ["fourth"]
    memory.say("ioproc-0", 30, "third")
    feed.read_new()
    assert names(feed.events_seen.events) == ["first", "second", "third", "fourth"]
    memory.say("supervisor", 50, "fifth")
    feed.read_new()
    assert names(feed.events_seen.events) == ["second", "third", "fourth", "fifth"]
    assert len({one.key for one in feed.events_seen.events}) == 4
    for n in range(5000):
        memory.say("netproc-0", 60, "flood", fill="x" * 50, n=str(n))
    found = feed.read_new()
    assert feed.events_seen.missed == 5000 - len(found) > 0
    memory.say("control", 70, "last breath")
    memory.alive = False
    monkeypatch.setattr(events, "observed", lambda data_dir: (_ for _ in ()).throw(OSError()))
    assert names(feed.read_new()) == ["last breath"]
    assert feed.events_seen.is_over
    memory = Memory()
    memory.started_ms = 8
    memory.say("supervisor", 80, "again")
    monkeypatch.setattr(events, "observed", lambda data_dir: memory)
    assert names(feed.read_new()) == ["again"]
    assert not feed.events_seen.is_over and feed.events_seen.events[-2].event == "last breath"


# Of a running one -----------------------------------------------------------------------------


@pytest.fixture
def told(run, appliance):
    def ask(*words, **options):
        return run("event", "list", "--data", str(appliance.data_dir), *words, **options)

    return ask


def test_who_did_what_is_told_of_topic_group_and_client(run, told):
    run("topic", "create", "events.a", "-p", "1")
    run("produce", "events.a", stdin="1\n2\n")
    run("consume", "events.a", "-g", "events-readers", "-n", "1", "-o", "start")
    run("topic", "config", "set", "events.a", "retention.ms=1000000")
    of_topic = rows(told("--topic", "events.a", "-o", "json"))
    assert {"topic-created", "metadata-changed", "group-rebalanced"} <= {
        one["event"] for one in of_topic
    }
    changed = [one["fields"] for one in of_topic if one["event"] == "metadata-changed"]
    assert {"CreateTopics", "IncrementalAlterConfigs"} <= {one["request"] for one in changed}
    assert all(one["peer"] == "127.0.0.1" and one["client"] for one in changed)
    assert [one["settings"] for one in changed if "settings" in one] == ["retention.ms"]
    of_group = rows(told("--group", "events-readers", "-o", "json"))
    (home,) = {one["process"] for one in of_group}
    assert home.startswith("ioproc-")
    assert of_group[0]["fields"] | {"generation": 1} == {
        "group": "events-readers", "generation": 1, "members": "1", "topics": "events.a",
    }  # fmt: skip
    client = changed[0]["client"]
    assert rows(told("--client", client, "topic:events.a", "-o", "json"))
    assert rows(told("--level", "error", "--topic", "events.a", "-o", "json")) == []
    assert "no matching events" in told("--topic", "no-such").stderr
    lines = told("--topic", "events.a", "-n", "2").stdout.splitlines()
    assert len(lines) == 2 and " topics=events.a" in lines[-1]
    assert "level" in told("--level", "loud", code=2).stderr
    assert "-o jsonl" in told("-f", "-o", "csv", code=2).stderr


def test_what_a_dead_process_said_is_there_and_its_successor_is_followed(fresh_appliance):
    running = fresh_appliance()
    typing(running.bootstrap)("topic", "create", "kept", "-p", "4")  # one for each I/O process
    words = ("event", "list", "--data", str(running.data_dir), "-f", "-o", "jsonl")
    processes = Observer(str(running.data_dir)).tables.processes
    with started("", *words, stdout=subprocess.PIPE, text=True) as follower:

        def until(event, **fields):
            while True:
                one = json.loads(follower.stdout.readline())
                if one["event"] == event and fields.items() <= one["fields"].items():
                    return one

        assert until("ready")["process"] == "supervisor"
        for _ in range(2):
            os.kill(processes.pid(Peer(IOPROC, 0)), signal.SIGKILL)
            cause = until("child-died", child="ioproc-0")["fields"]["cause"]
            assert cause == "killed by SIGKILL"
            assert until("logs-open")["process"] == "ioproc-0"
    late = Feed(str(running.data_dir))
    opened = [
        one for one in late.read_new() if (one.process, one.event) == ("ioproc-0", "logs-open")
    ]
    assert len(opened) == 2, "what it said before it was killed, and its successor"
    running.stop()
    late.read_new()
    assert late.events_seen.is_over and late.events_seen.events[-1].event == "ended"
