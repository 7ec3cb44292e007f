"""Quotas as somebody sees and changes them: keys are pressed, then the broker is asked."""

import pytest

from appliance.quotas.limits import PRODUCE
from console.model.link import Link
from console.model.quotas import all_quotas, change
from console.screens.places import Place
from tests.console.seat import LARGE, SMALL, sit, tab

ANYONE = (("client-id", None),)
MODEST = (("client-id", "modest"),)


@pytest.fixture
def quotas(alone):
    """What DescribeClientQuotas says; at the end there are none."""
    link = Link(alone.bootstrap, {}, 10.0)
    yield lambda: all_quotas(link)
    for entity, own in all_quotas(link).items():
        change(link, entity, dict.fromkeys(own), dry_run=False)


@pytest.fixture
def held(alone, quotas):
    """A client with so small a quota that it waits for minutes, and one that stays below."""
    from confluent_kafka import Producer

    def produce(name, size):
        producer = Producer({"bootstrap.servers": alone.bootstrap, "client.id": name})
        producer.produce("quotas.topic", b"x" * size)
        assert producer.flush(30) == 0

    link = Link(alone.bootstrap, {}, 10.0)
    change(link, ANYONE, {PRODUCE: 1000.0}, dry_run=False)
    change(link, MODEST, {PRODUCE: 1e6}, dry_run=False)
    produce("greedy [/red]", 200_000)
    produce("modest", 1_000)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_who_is_throttled_by_which_rule_and_for_how_long_is_seen(alone, quotas, held, size):

    async def act(seat):
        await seat.press(tab("quotas"))
        await seat.sees("1 client throttled now", "1 now", "greedy [/red]")
        line = seat.line("greedy [/red]")
        assert line.startswith("client-id='greedy [/red]'") and " s " in line
        assert seat.text().index("greedy") < seat.text().rindex("modest"), "who waits is first"
        assert "penstock quota usage -w" in seat.line("$ ")
        await seat.press("tab")
        await seat.sees("producer_byte_rate 1 kB/s of client-id=<default>", "last pause")
        await seat.press("enter")
        await seat.sees("what holds for it", "client-id=<default>", "1 kB/s", "user=ANONYMOUS")
        assert seat.app.here == Place("quota", "client-id='greedy [/red]'")
        assert "penstock quota explain --client-id 'greedy [/red]'" in seat.line("$ ")
        await seat.press("escape", "d")
        await seat.type("client-id=mod")
        await seat.press("right", "enter")
        await seat.sees("1 MB/s", "counts together", "client-id=modest")
        assert seat.app.here == Place("quota", "client-id=modest")

    sit(alone.bootstrap, act, size=size)
