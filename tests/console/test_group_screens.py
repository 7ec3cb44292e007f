"""Groups at the console: what is seen of them, and what keys change; the broker is asked what
became of it."""

import re
import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from textual.widgets import Button

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.groups import groups, lag
from console.model.topics.retention import Retention
from console.screens.places import Place
from tests.console.seat import LARGE, SMALL, sit
from tests.console_process import rows, typing

TOPIC, OTHER = "lagging.orders", "lagging.payments"
HOUR_S = 3600


@pytest.fixture(scope="module")
def filled(alone):
    """An appliance with two topics: 100 records in each of two partitions, the second half of them
    new, and ten in the other one."""
    run = typing(alone.bootstrap)
    run("topic", "create", TOPIC, "-p", "2")
    run("topic", "create", OTHER, "-p", "1")
    now_ms = time.time_ns() // 1_000_000
    producer = Producer({"bootstrap.servers": alone.bootstrap})
    for n in range(200):
        stamp = now_ms - (HOUR_S * 1000 if n < 100 else 0)
        producer.produce(TOPIC, b"%d" % n, partition=n % 2, timestamp=stamp)
    for n in range(10):
        producer.produce(OTHER, b"%d" % n, partition=0)
    assert producer.flush(30) == 0
    return alone


@pytest.fixture
def link(filled):
    return Link(filled.bootstrap, {}, 20.0)


def committed(link, name):
    return groups.committed(link, [name])[name]


def there(link, name):
    return any(one.name == name for one in groups.listed(link))


@contextmanager
def reading(bootstrap, name, **settings):
    """A member that reads TOPIC."""
    config = {"bootstrap.servers": bootstrap, "group.id": name, "enable.auto.commit": False}
    consumer = Consumer(config | {key.replace("_", "."): value for key, value in settings.items()})
    assigned = []
    consumer.subscribe([TOPIC], on_assign=lambda _, found: assigned.extend(found))
    while not assigned:
        consumer.poll(0.05)
    try:
        yield consumer
    finally:
        consumer.close()


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_lag_is_seen_in_records_and_seconds(filled, link, size):
    name = f"lagging.seen.{size[0]}"
    groups.commit(link, name, {(TOPIC, 0): 10, (TOPIC, 1): 97, (OTHER, 0): 3})

    async def act(seat):
        await seat.press("3")
        await seat.sees(name, "simple")
        await seat.until(lambda: " 100 " in seat.line(name) and " 1 h" in seat.line(name), "lag")
        await seat.press(":")
        await seat.type(f"g {name}")
        await seat.press("enter")
        await seat.sees("lag 100, 1 h behind", "no member now", "Lag 100")
        assert re.search(rf"{TOPIC} +0 +10 +100 +90 +1 h", seat.text())
        if size == LARGE:  # there is room for the topic under the cursor, too
            await seat.sees(f"{TOPIC} 93")
            await seat.press("tab", "G")
            await seat.sees(f"{OTHER} 7")

    sit(filled.bootstrap, act, size=size)


def test_offsets_are_moved_by_a_plan(filled, link):
    name = "lagging.moved"
    groups.commit(link, name, {(TOPIC, 0): 10, (TOPIC, 1): 20, (OTHER, 0): 3})

    async def act(seat):
        await seat.sees("Lag")
        await seat.press("o")
        await seat.sees(f"Reset offsets of {name}", "Where to")
        await seat.type("later")
        await seat.press("enter")
        await seat.sees("for example start, end, 47")
        await seat.press(*["backspace"] * 5)
        await seat.type("-5")
        await seat.press("tab", "tab", "tab")
        await seat.type(TOPIC)
        await seat.press("enter")
        await seat.plan()
        await seat.sees("BEFORE", "AFTER", "DELTA", "read again", "10 records")
        await seat.sees(f"group seek {name} --to=-5 -t {TOPIC}")
        assert committed(link, name)[TOPIC, 0] == 10, "nothing is moved before somebody says so"
        cancel = seat.app.screen.query_one("#cancel", Button)
        cancel.press()
        cancel.press()
        await seat.settled()
        assert len(seat.app.screen_stack) == 2, "the form is still there"
        await seat.press("escape")
        assert committed(link, name)[TOPIC, 0] == 10
        await seat.press("o")
        await seat.sees("-5")  # what was typed is still there
        await seat.press("enter")
        await seat.plan()
        await seat.press("right", "enter")
        await seat.hears("2 offsets moved")

    sit(filled.bootstrap, act, size=LARGE, first=Place("group", name))
    assert committed(link, name) == {(TOPIC, 0): 5, (TOPIC, 1): 15, (OTHER, 0): 3}


def test_a_plan_that_does_not_hold_any_more_is_shown_again(filled, link):
    name = "lagging.stale"
    groups.commit(link, name, {(TOPIC, 0): 10})

    async def act(seat):
        await seat.sees("Lag")
        await seat.press("o")
        await seat.sees("Where to")
        await seat.type("+5")
        await seat.press("enter")
        await seat.plan()
        groups.commit(link, name, {(TOPIC, 0): 40})
        await seat.press("right", "enter")
        go = seat.app.screen.query_one("#go", Button)
        assert go.active_effect_duration == 0, "it hears the next press, however soon"
        await seat.sees("has moved since the plan was made", "is at 40", "45")
        await seat.plan()
        assert committed(link, name) == {(TOPIC, 0): 40}, "nothing was done blindly"
        await seat.press("right", "enter")
        await seat.hears("1 offset moved")

    sit(filled.bootstrap, act, size=LARGE, first=Place("group", name))
    assert committed(link, name) == {(TOPIC, 0): 45}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_who_holds_a_live_group_is_said_and_nothing_moves(filled, link, protocol):
    name = f"lagging.live.{protocol}"
    settings = {"client_id": "billing-7", "group_protocol": protocol}
    with reading(filled.bootstrap, name, **settings) as consumer:
        consumer.commit(offsets=_at(TOPIC, 7), asynchronous=False)

        async def act(seat):
            await seat.sees("billing-7", f"{protocol} protocol", "1 member", "confluent-kafka-")
            await seat.press("o")
            await seat.sees("Where to")
            await seat.type("start")
            await seat.press("enter")
            await seat.sees("cannot be moved while it has members: billing-7", "127.0.0.1  →")
            await seat.press("escape", "D")
            await seat.sees("cannot be deleted while it has")
            await seat.press("escape", "tab", "F")
            await seat.sees("cannot be deleted while it has")

        sit(filled.bootstrap, act, size=LARGE, first=Place("group", name))
        assert committed(link, name) == {(TOPIC, 0): 7}


def _at(topic, offset):
    from confluent_kafka import TopicPartition

    return [TopicPartition(topic, 0, offset)]


def test_a_plan_is_refused_when_somebody_began_to_read_meanwhile(filled, link):
    from console.model.groups import seek

    name = "lagging.begun"
    groups.commit(link, name, {(TOPIC, 0): 10})
    moves = seek.plan(link, name, (), to=seek.read_to("start"))
    with (
        reading(filled.bootstrap, name, client_id="late"),
        pytest.raises(Failure, match="while it has members: late"),
    ):
        seek.commit_moves(link, name, moves)
    assert committed(link, name) == {(TOPIC, 0): 10}


HOSTILE = "[@click=app.quit]x[/]"


@pytest.mark.parametrize("name", [HOSTILE, "two\nlines \x1b[2J"])
def test_a_group_is_deleted_once_its_name_is_typed(filled, link, name):
    groups.commit(link, name, {(TOPIC, 0): 10, (OTHER, 0): 3})

    async def act(seat):
        await seat.sees("Lag")
        await seat.press("D")
        await seat.plan()
        await seat.sees("committed offsets", "not read yet", "97 records", "group delete")
        await seat.type("something")
        await seat.press("enter")
        await seat.sees("the name does not match")
        assert there(link, name)
        await seat.press(*["backspace"] * 9)
        await seat.type(name.replace("\n", "\\n").replace("\x1b", "\\x1b"))
        await seat.press("enter")
        await seat.hears("deleted, with 2 committed offsets")
        await seat.until(lambda: seat.app.here == Place("groups"), "the list above")

    sit(filled.bootstrap, act, size=LARGE, first=Place("group", name))
    assert not there(link, name)


def test_offsets_of_one_topic_are_forgotten(filled, link):
    name = "lagging.forgets"
    groups.commit(link, name, {(TOPIC, 0): 10, (TOPIC, 1): 3, (OTHER, 0): 3})

    async def act(seat):
        await seat.sees("Lag", OTHER)
        await seat.press("tab", "g", "F")
        await seat.plan()
        await seat.sees(f"no position in {TOPIC}", f"delete-offsets {name} -t {TOPIC}")
        await seat.type(name)
        await seat.press("enter")
        await seat.hears(f"2 committed offsets of {TOPIC} deleted")

    sit(filled.bootstrap, act, size=LARGE, first=Place("group", name))
    assert committed(link, name) == {(OTHER, 0): 3}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_is_put_out(filled, link, protocol):
    name = f"lagging.static.{protocol}"
    settings = {"group_instance_id": "host-7", "group_protocol": protocol}
    with reading(filled.bootstrap, name, **settings):

        async def act(seat):
            await seat.sees("host-7", "1 member")
            await seat.press("M")
            await seat.plan()
            await seat.sees("joins again at its next heartbeat", f"remove-member {name} host-7")
            await seat.press("right", "enter")
            await seat.hears("host-7 is removed")

        sit(filled.bootstrap, act, size=LARGE, first=Place("group", name))
        (group,) = groups.described(link, [name])
        assert group.members == ()


def test_what_expires_unread_is_said_everywhere(filled, link):
    run = typing(filled.bootstrap)
    name, topic = "lagging.late", "lagging.expiring"
    run("topic", "create", topic, "-p", "1", "-c", "retention.ms=1h")
    producer = Producer({"bootstrap.servers": filled.bootstrap})
    old_ms = time.time_ns() // 1_000_000 - 50 * 60_000
    for _ in range(30):
        producer.produce(topic, b"x", partition=0, timestamp=old_ms)
    assert producer.flush(30) == 0
    groups.commit(link, name, {(topic, 0): 10})
    (told,) = rows(run("group", "describe", name, "-o", "json"))
    (risk,) = told["expiring"]
    assert (risk["topic"], risk["records"], risk["by"]) == (topic, 20, "retention.ms")
    assert risk["exact"] and 0 < risk["in_s"] <= 600
    words = f"group {name} loses 20 records of {topic}-0 in about"
    assert words in run("group", "lag", name).stderr

    async def act(seat):
        await seat.sees(f"! {words}", f":group {name}")
        await seat.press(":")
        await seat.type(f"group {name}")
        await seat.press("enter")
        await seat.sees(f"! {words}", "retention.ms")

    sit(filled.bootstrap, act, size=LARGE)
    run("topic", "config", "set", topic, "retention.bytes=1GB")
    there = groups.described(link, [name])
    far = Retention(link, lambda _: []).predict_expiry(there, lag.places(link, there))
    (risk,) = far.risks
    assert (risk.records, risk.exact) == (20, False), "what any Kafka can say"
    assert far.unknown == (topic,), "and what it cannot"
    groups.commit(link, name, {(topic, 0): 30})
    (told,) = rows(run("group", "describe", name, "-o", "json"))
    assert told["expiring"] == []
    groups.delete(link, [name])


def test_the_command_puts_out_who_is_named(filled, link):
    run = typing(filled.bootstrap)
    name = "lagging.command"
    with reading(filled.bootstrap, name, client_id="billing-9"):
        (plan,) = rows(run("group", "remove-member", name, "billing-9", "--dry-run", "-o", "json"))
        assert (plan["client_id"], plan["partitions"]) == ("billing-9", 2)
        assert "no member called" in run("group", "remove-member", name, "x", "-y", code=2).stderr
        run("group", "remove-member", name, "billing-9", "--yes")
        (group,) = groups.described(link, [name])
        assert group.members == ()
