"""Open transactions: who is told of which, and what a screen makes of them."""

from dataclasses import replace

import pytest

from console.model.asking.link import Link
from console.model.local.attention import BAD, WARN, attention
from console.model.transactions import transaction_changes
from console.model.transactions.open_transactions import (
    HANGING,
    Held,
    Open,
    is_late,
    is_overdue,
    unknown,
)
from console.model.transactions.producers import Producer
from console.model.transactions.transactions import Transaction
from console.screens.places import TXNS, NoPlace, Place, jump
from penstock.local import Appliance
from tests.console import txn_story
from tests.console.seat import LARGE, sit
from tests.console_process import typing


def opened(age_s, *, records=12, timeout_ms=60_000, state="ongoing", name="copier"):
    held = Held("orders", 0, 100, 100, 100 + records, records, 3.0)
    return Open(name, state, 7, 0, 1, timeout_ms, age_s, (held,))


@pytest.mark.parametrize(
    ("age_s", "timeout_ms", "late", "overdue"),
    [
        (29.0, 60_000, False, False),
        (30.0, 60_000, True, False),
        (74.0, 60_000, True, False),
        (75.0, 60_000, True, True),
        (59.0, 900_000, False, False),
        (60.0, 900_000, True, False),
        (0.6, 1_000, True, False),
        (10.0, 0, False, False),
    ],
)
def test_who_is_late_is_told_before_a_timeout_and_worse_after_it(age_s, timeout_ms, late, overdue):
    one = opened(age_s, timeout_ms=timeout_ms)
    assert (is_late(one), is_overdue(one)) == (late, overdue and timeout_ms > 0)


def test_what_is_held_back_for_long_needs_attention_and_what_hangs_at_once():
    hangs = opened(None, state=HANGING, name="", timeout_ms=None)
    found = attention(None, None, [], {}, transactions=[opened(1.0), opened(45.0), hangs])
    assert [(one.level, one.place) for one in found] == [(BAD, TXNS), (WARN, TXNS)]
    assert found[0].what == (
        "a transaction of producer 7, which hangs, keeps 12 records of orders-0 from "
        "read_committed, the oldest 3 s old"
    )
    assert found[1].what.startswith("transaction copier, open for 45 s, keeps 12 records of")
    assert attention(None, None, [], {}, transactions=[opened(45.0, records=0)]) == [], (
        "nobody waits for one that has written nothing"
    )
    many = attention(None, None, [], {}, transactions=[opened(45.0)] * 9)
    assert len(many) == 4 and many[-1].what.startswith("6 more")


def test_what_is_held_back_is_summed_and_the_oldest_told():
    more = Held("orders", 1, 5, 5, 9, 4, 8.0), Held("orders", 2, None, 3, 3, 0)
    one = Open("x", "ongoing", 7, 0, 1, 60_000, 9.0, (*opened(1.0).held, *more))
    assert (one.records, one.seconds) == (16, 8.0)
    nothing = Open("x", "ongoing", 7, 0, 1, 60_000, 9.0, more[1:])
    assert (nothing.records, nothing.seconds) == (0, None)
    assert (
        "1 more partition from"
        in attention(
            None, None, [], {}, transactions=[Open("x", "ongoing", 7, 0, 1, 1, 9.0, one.held)]
        )[0].what
    )


def test_what_is_ending_hangs_nowhere():
    """One whose epochs are used up has its next producer id while markers carry the old one."""
    place, other = ("orders", 0), ("orders", 1)
    writers = {at: [Producer(7, 32767, 0, 0, 100)] for at in (place, other)}
    known = Transaction("copier", "prepare-abort", 8, 0, 60_000, 0, 1, "b:1", (place,))
    assert list(unknown(writers, [known])) == [other]
    assert list(unknown(writers, [replace(known, state="ongoing")])) == [place, other]
    assert list(unknown(writers, [replace(known, producer_id=7, state="ongoing")])) == [other]


@pytest.mark.parametrize("typed", ["txns", "txn", "tx", "tr", "transactions"])
def test_they_are_found_by_their_short_and_their_long_name(typed):
    assert jump(typed) == Place(TXNS)
    with pytest.raises(NoPlace):
        jump(f"{typed} copier")


@pytest.fixture(scope="module")
def unverified(tmp_path_factory):
    """An appliance in which a transaction can be made that hangs."""
    with Appliance(tmp_path_factory.mktemp("txns") / "data", txn_story.SETTINGS) as running:
        yield running.bootstrap


def test_ours_are_seen_and_aborted(unverified):
    txn_story.is_seen_and_aborted(unverified, typing(unverified))


def test_what_hangs_is_found_and_aborted(unverified):
    txn_story.what_hangs_is_found_and_aborted(unverified, typing(unverified))


def test_a_plan_does_not_hit_the_next_transaction(unverified):
    txn_story.a_plan_does_not_hit_the_next_transaction(unverified)


def test_the_overview_tells_of_what_hangs_until_it_is_aborted(unverified):
    link = Link(unverified, {}, 10.0)
    typing(unverified)("topic", "create", "txn.overview", "-p", "2")
    at = txn_story.hang(link, "txn.overview", 1, producer_id=4713)

    async def act(seat):
        await seat.sees("! a transaction of producer 4713, which hangs", "of txn.overview-1")
        transaction_changes.abort_hanging("txn.overview", 1, at).plan(link).apply(link)
        await seat.sees("Nothing needs attention")

    sit(unverified, act, size=LARGE)


def test_they_are_aborted_on_the_screen(unverified):
    txn_story.is_aborted_on_the_screen(unverified, sit)
