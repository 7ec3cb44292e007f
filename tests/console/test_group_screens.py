"""Groups at the console: what is seen of them, and what keys change; the broker is asked what
became of it."""

import re
import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer

from console.model import groups
from console.model.failure import Failure
from console.model.link import Link
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
        await seat.sees("lag 100, 1 h behind", "nobody reads with it now", "Lag 100")
        assert re.search(rf"{TOPIC} +0 +10 +100 +90 +1 h", seat.text())
        await seat.sees(f"{TOPIC} 93")
        await seat.press("tab", "G")
        await seat.sees(f"{OTHER} 7")

    sit(filled.bootstrap, act, size=size)


def test_a_plan_is_refused_when_somebody_began_to_read_meanwhile(filled, link):
    from console.model import seek

    name = "lagging.begun"
    groups.commit(link, name, {(TOPIC, 0): 10})
    moves = seek.plan(link, name, (), to=seek.read_to("start"))
    with (
        reading(filled.bootstrap, name, client_id="late"),
        pytest.raises(Failure, match="while it has members: late"),
    ):
        seek.move(link, name, moves)
    assert committed(link, name) == {(TOPIC, 0): 10}


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
