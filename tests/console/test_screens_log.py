"""Log: what happens in a running appliance, as it happens, beside what the console did."""

import os
import signal

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.observer.door import Observer
from appliance.ring.process_table import IOPROC, Peer
from console.model.asking.failure import Failure
from console.screens.log import FOREIGN
from console.screens.places import Place
from console.screens.rows import Rows
from tests.console.seat import LARGE, sit, tab

LOG = tab("log")


@pytest.fixture(scope="module")
def create(alone):
    """Makes a topic, as a client called shop."""
    admin = AdminClient({"bootstrap.servers": alone.bootstrap, "client.id": "shop"})

    def create(name):
        for done in admin.create_topics([NewTopic(name, 1)]).values():
            done.result(30)

    return create


def read(bootstrap, group, topic):
    """A consumer comes into a group, and leaves it."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": "reader"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.close()


def rows(seat):
    return seat.app.view.query_one(Rows)


def test_what_happens_is_seen_as_it_happens_and_what_is_read_stands_still(alone, create):
    async def act(seat):
        await seat.press(LOG)
        await seat.sees("ready", "took_ms=")
        create("log.a")
        await seat.sees("topic-created", "topic=log.a", "request=CreateTopics")
        assert rows(seat).at_end
        assert "event list -f --data" in seat.line("$ ")
        await seat.press("k")
        await seat.sees("paused")
        before = rows(seat).key
        create("log.b")
        await seat.until(lambda: "log.b" in str(seat.app.view._found), "it is there")
        assert rows(seat).key == before
        await seat.press("t")
        await seat.misses("paused")
        await seat.sees("topic log.b")
        await seat.press("P")
        await seat.sees("paused")
        create("log.c")
        await seat.press("P")
        await seat.sees("log.c")

    sit(alone.bootstrap, act)


def test_events_are_kept_by_level_topic_group_and_client_and_lead_there(alone, create):
    create("log.orders")
    read(alone.bootstrap, "log-readers", "log.orders")
    data = str(alone.data_dir)
    os.kill(Observer(data).tables.processes.pid(Peer(IOPROC, 0)), signal.SIGKILL)

    async def act(seat):
        await seat.press(LOG)
        await seat.sees("child-died", "killed by SIGKILL", "group-rebalanced")
        await seat.press("/")
        await seat.type("group:log-r")
        await seat.misses("child-died")
        await seat.sees("group-rebalanced", "members=1 topics=log.orders")
        await seat.press("enter")
        assert f"event list -f group:log-r --data {data}" in seat.line("$ ")
        await seat.press("enter")
        await seat.until(lambda: seat.app.here == Place("group", "log-readers"))
        await seat.press("[", "/")
        await seat.type(" zz")
        await seat.sees("no matching events")
        await seat.press("escape", "/")
        await seat.type("level:loud")
        await seat.sees("there is no level 'loud'")
        await seat.press("escape", "l")
        await seat.sees("notice or worse", "child-died")
        await seat.misses("group-rebalanced")
        await seat.press("l")
        await seat.sees("warning or worse", "child-died")
        await seat.press("/")
        await seat.type("child")
        await seat.press("enter")
        await seat.until(lambda: "--level warning child " in seat.line("$ "))
        await seat.press("l")
        await seat.sees("error alone", "no matching events")
        await seat.press("l", "escape", "/")
        await seat.type("topic:log.o client:shop")
        await seat.press("enter")
        await seat.sees("metadata-changed", "request CreateTopics", "peer 127.0.0.1")
        await seat.press("enter")
        await seat.until(lambda: seat.app.here == Place("topic", "log.orders"))

    sit(alone.bootstrap, act, size=LARGE)


def test_what_the_console_changed_stands_between_what_came_of_it(alone):
    async def act(seat):
        await seat.press("2", "n")
        await seat.type("log.mine")
        await seat.press("enter")
        await seat.plan()
        await seat.press("right", "enter")
        await seat.back()
        await seat.press(LOG, "/")
        await seat.type("log.mine")
        await seat.sees("changed", "topic create log.mine", "topic-created")
        found = [one.event for one in seat.app.view._found.values()]
        assert found.index("topic-created") < found.index("Create topic log.mine")
        await seat.press("enter", "y")
        assert "topic create log.mine" in seat.app.clipboard
        await seat.press("escape", "v")
        await seat.sees("COMMAND OR PROBLEM", "penstock topic create log.mine", "counters")

    sit(alone.bootstrap, act, size=LARGE)


def test_of_a_foreign_kafka_it_says_why_there_are_none(alone):
    def foreign(app):
        def fail():
            raise Failure("no appliance of this host answers there", name="NOT_LOCAL")

        app.world.facts.ask = fail

    async def act(seat):
        await seat.press(LOG)
        await seat.sees(FOREIGN)
        assert "failed" not in seat.text(), "of another Kafka that is as it must be"
        await seat.press("v")
        await seat.sees("cluster", "counters", "no appliance of this host answers there")
        entries = seat.app.journal.entries.values()
        assert not any(one.problem or one.line for one in entries if one.what == "counters")

    sit(alone.bootstrap, act, size=LARGE, prepare=foreign)
