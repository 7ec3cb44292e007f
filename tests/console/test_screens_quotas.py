"""Quotas as somebody sees and changes them: keys are pressed, then the broker is asked."""

import pytest

from appliance.quotas.limits import CLIENT_ID, FETCH, PRODUCE, USER
from console.model.asking.link import Link
from console.model.quotas.quotas import all_quotas, change
from console.screens.places import Place
from console.screens.rows import Rows
from tests.console.seat import LARGE, SMALL, sit, tab

LOADER = ((CLIENT_ID, "loader"),)
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


async def fill(seat, *values):
    """Type into the fields of a form, one after the other; None leaves one as it is."""
    for value in values:
        if value is not None:
            await seat.type(value)
        await seat.press("tab")


def test_a_quota_is_set_changed_and_taken_away(alone, quotas):
    async def act(seat):
        await seat.press(tab("quotas"))
        await seat.sees("no quota is set: n sets the first one")
        await seat.press("n")
        await seat.sees("New quotas")
        await fill(seat, None, "loader", None, "10MB/s")
        await seat.sees("Counted together: client id loader of all users")
        await seat.press("enter")
        await seat.sees("BEFORE", "AFTER", "none", "10 MB/s", "quota set --client-id loader")
        await seat.plan()
        await seat.press("enter")  # Cancel
        await seat.misses("BEFORE")
        assert quotas() == {}
        await seat.sees("loader", "10MB/s")  # nothing typed is lost
        await seat.press("enter")
        await seat.sees("BEFORE")
        await seat.plan()
        await seat.press("right", "enter")
        await seat.back()
        await seat.until(lambda: quotas() == {LOADER: {PRODUCE: 10e6}}, "the quota in the broker")
        await seat.until(lambda: seat.app.view.rule is not None, "a quota under the cursor")
        await seat.press("e")
        await seat.form()
        await seat.press("ctrl+u")
        await fill(seat, "2500000", "1MiB/s")
        await seat.press("enter")
        await seat.sees("2.5 MB/s", "1.049 MB/s")
        await seat.plan()
        await seat.press("right", "enter")
        await seat.back()
        changed = {LOADER: {PRODUCE: 2.5e6, FETCH: 1048576.0}}
        await seat.until(lambda: quotas() == changed, "both in the broker")
        await seat.sees("2 quotas of 1 entity")
        await seat.press("g")
        await seat.sees("consumer_byte_rate 1.049 MB/s of client-id=loader")
        await seat.press("D")
        await seat.sees("quota unset --client-id loader consumer_byte_rate")
        await seat.plan()
        await seat.press("right", "enter")
        await seat.back()
        assert quotas() == {LOADER: {PRODUCE: 2.5e6}}, "one in the broker"
        await seat.press("u")  # and back
        await seat.sees("BEFORE", "1.049 MB/s")
        await seat.plan()
        await seat.press("right", "enter")
        await seat.back()
        await seat.until(lambda: quotas() == changed, "both again")

    sit(alone.bootstrap, act)


def test_what_is_mistyped_is_said_beside_it_and_nothing_is_sent(alone, quotas):
    async def act(seat):
        await seat.press(tab("quotas"), "n")
        await fill(seat, "<default>", None, None, "fast")
        await seat.press("enter")
        await seat.sees("produce=fast is not a rate")
        await seat.press("shift+tab")
        await seat.type("10.0.0.7")
        await seat.sees("an address cannot be combined")
        assert quotas() == {}

    sit(alone.bootstrap, act)


def test_nothing_is_changed_where_it_is_only_read(alone, quotas):
    async def act(seat):
        await seat.press(tab("quotas"), "n")
        await seat.sees("nothing can be changed")
        assert quotas() == {}
        await seat.press(tab("clients"), "/", *"penstock")  # this console itself
        await seat.until(lambda: seat.app.view.query_one(Rows).key is not None, "a client")
        await seat.press("enter", "enter")
        await seat.sees("no quota holds for it")
        assert seat.app.here == Place("quota", "client-id=penstock")

    sit(alone.bootstrap, act, read_only=True)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_who_is_throttled_by_which_rule_and_for_how_long_is_seen(alone, quotas, held, size):

    async def act(seat):
        await seat.press(tab("quotas"))
        await seat.sees("1 client throttled now", "1 now", "greedy [/red]")
        line = seat.line("greedy [/red]")
        assert "client-id='greedy [/red]'" in line and " s " in line
        assert seat.text().index("greedy") < seat.text().rindex("modest"), "who waits is first"
        await seat.sees("$ penstock quota usage -w")
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


def test_quotas_of_a_client_are_set_where_its_rules_are_seen(alone, quotas):
    async def act(seat):
        await seat.sees("user=alice", "RULE, THE STRONGEST FIRST")
        await seat.press("tab", "e")
        await seat.sees("Quotas of client-id=loader user=alice")
        await seat.type("5MB/s")
        await seat.press("enter")
        await seat.sees("BEFORE")
        await seat.plan()
        await seat.press("right", "enter")
        both = ((CLIENT_ID, "loader"), (USER, "alice"))
        await seat.until(lambda: quotas() == {both: {PRODUCE: 5e6}}, "the quota in the broker")
        await seat.until(
            lambda: "5 MB/s" in seat.line("1  client-id=loader user=alice"), "it holds"
        )
        await seat.press("D")
        await seat.sees("quota unset --client-id loader --user alice")
        await seat.plan()
        await seat.press("right", "enter")
        await seat.back()
        await seat.until(lambda: quotas() == {}, "none in the broker")

    first = Place("quota", "user=alice client-id=loader")
    sit(alone.bootstrap, act, first=first, size=LARGE)
