"""Windows, the shared table and meters, against a twin that keeps every event."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.config import bounds
from appliance.quotas.bucket import Bucket
from appliance.quotas.limits import FETCH, MUTATION, PRODUCE, REQUEST
from appliance.quotas.meters import Meters
from appliance.quotas.window import Windows
from appliance.ring.quota_table import Meter, QuotaTable, digest_of

ANYONE = (("client-id", None),)
events = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3000), st.integers(1, 5000)), max_size=60
)


def table_of(regions, windows, rows=8):
    memory = memoryview(bytearray(QuotaTable.bytes_needed(regions, windows, rows)))
    return QuotaTable(memory, regions, windows, rows)


def meters_of(table, windows, rate, kind=PRODUCE):
    every = [Meters(table, region, windows) for region in range(table.regions)]
    for one in every:
        one.configure({ANYONE: {kind: rate}})
    return every


class Twin:
    """Every event is kept; the sum and the span are counted out."""

    def __init__(self, count, size_ms, bound):
        self.count, self.size, self.bound, self.events = count, size_ms, bound, []

    def total(self, now):
        first = (now // self.size - self.count + 1) * self.size
        return sum(amount for at, amount in self.events if at >= first)

    def charge(self, now, amount):
        self.events.append((now, amount))
        total, pause = self.total(now), 0
        start = now // self.size * self.size - (self.count - 1) * self.size
        span = max(now - start, self.size)
        if total * 1000 / span > self.bound:
            pause = round(total * 1000 / self.bound - span)
        return pause


@settings(max_examples=150)
@given(events, st.integers(1, 11), st.sampled_from([1000, 250]), st.integers(1, 4000))
def test_meters_of_three_processes_sum_up_as_one_that_keeps_everything(
    events, count, size_ms, bound
):
    windows = Windows(count, size_ms)
    every = meters_of(table_of(3, count), windows, float(bound))
    twin = Twin(count, size_ms, bound)
    now = 123_456
    for region, step, amount in events:
        now += step
        assert every[region].charge(PRODUCE, "u", "c", amount, now) == twin.charge(now, amount)


def test_after_the_pause_the_rate_is_within_the_limit():
    windows = Windows()
    rng = random.Random(7)
    for _ in range(300):
        now, bound = rng.randrange(10**6, 10**7), rng.uniform(1, 1e7)
        span = windows.span_ms(now)
        total = bound * span / 1000 * rng.uniform(0.5, 1.8)
        pause = windows.throttle_ms(total, bound, now, 10**9)
        assert (pause == 0) == (total * 1000 / bound - span < 0.5) or pause <= 1
        assert total * 1000 / (span + pause + 1) <= bound * 1.0001


def test_a_quota_is_spent_at_once_then_held_and_given_back_as_windows_pass():
    windows = Windows(11, 1000)
    [meters] = meters_of(table_of(1, 11), windows, 1000.0)
    now = 50_000
    assert meters.charge(PRODUCE, "u", "c", 10_000, now) == 0
    assert meters.charge(PRODUCE, "u", "c", 500, now) == 500
    [usage] = meters.usage(now + 100)
    assert (usage.kind, usage.client_id, usage.wait_ms) == (PRODUCE, "c", 400)
    assert usage.used > 1.0 and usage.limit == 1000.0
    assert meters.charge(PRODUCE, "u", "c", 1, now + 11_000) == 0
    [usage] = meters.usage(now + 11_000)
    assert usage.wait_ms == 0 and usage.used < 0.001


def test_pauses_that_follow_one_another_are_one_trouble_until_there_was_none_for_long():
    windows = Windows(11, 1000)
    one, two = meters_of(table_of(2, 11), windows, 1000.0)
    now = 50_000
    assert one.charge(PRODUCE, "u", "c", 10_600, now) == 600
    assert (held(one, now + 100), held(two, now + 700)) == ((600, 100), (600, 700))
    assert two.charge(PRODUCE, "u", "c", 900, now + 800) == 700
    assert held(one, now + 1000) == (700, 1000)
    late = now + 1500 + windows.all_ms
    assert held(two, late) == (700, late - now - 800), "the first process told none for long"
    assert held(one, late + 1) == (700, 0), "it is over"
    assert one.charge(PRODUCE, "u", "c", 11_000, late + 500) == 1000
    assert held(two, late + 700) == (1000, 200)


def held(meters, now):
    [usage] = meters.usage(now)
    return usage.last_ms, usage.held_ms


def test_what_was_sent_is_paid_for_and_what_is_withheld_waits_for_empty_windows():
    """Kafka, too, lets a client that sent far too much wait until its average is right."""
    windows = Windows(3, 1000)
    [meters] = meters_of(table_of(1, 3), windows, 1.0)
    assert meters.charge(PRODUCE, "u", "c", 10**6, 9_000) == 10**9 - 2000
    [meters] = meters_of(table_of(1, 3), windows, 1.0, FETCH)
    assert meters.charge_unless_over(FETCH, "u", "c", 10**6, 9_000) == 0
    assert meters.charge_unless_over(FETCH, "u", "c", 10**6, 9_000) == 3000
    [meters] = meters_of(table_of(1, 3), windows, 50.0, REQUEST)
    assert meters.charge(REQUEST, "u", "c", 60 * 10**9, 9_000) == 1000, "one window at most"


def test_requests_are_counted_in_percent_of_a_second():
    [meters] = meters_of(table_of(1, 11), Windows(), 20.0, REQUEST)
    assert meters.charge(REQUEST, "u", "c", 2 * 10**9, 50_000) == 0
    assert meters.charge(REQUEST, "u", "c", 10**8, 50_000) == 500
    [usage] = meters.usage(50_000)
    assert (usage.rate, usage.limit, usage.used) == pytest.approx((21.0, 20.0, 1.05))


def test_no_answer_should_be_larger_than_the_windows_hold():
    [meters] = meters_of(table_of(1, 11), Windows(), 1000.0, FETCH)
    assert meters.room(FETCH, "u", "c") == 10_000
    assert meters.room(PRODUCE, "u", "c") is None


def test_changes_take_tokens_and_nothing_is_allowed_in_debt():
    table = table_of(2, 11)
    meters = Meters(table, 1, Windows(), Bucket(11.0))
    meters.configure({ANYONE: {MUTATION: 2.0}})
    assert meters.take_tokens("u", "c", 20, 50_000, strict=True) == (True, 0)
    assert meters.take_tokens("u", "c", 10, 50_000, strict=True) == (True, 0), (
        "2 left: not in debt yet"
    )
    assert meters.take_tokens("u", "c", 1, 50_000, strict=True) == (False, 4000)
    [usage] = meters.usage(51_000)
    assert (usage.wait_ms, usage.pauses, usage.entity) == (3000, 1, ANYONE)
    assert usage.used == pytest.approx(1 + 6 / 22)
    assert meters.take_tokens("u", "c", 1, 53_999, strict=True)[0] is False
    assert meters.take_tokens("u", "c", 1, 54_000, strict=True) == (True, 0)
    assert meters.take_tokens("u", "c", 5, 54_000, strict=False) == (True, 3000), (
        "told, not refused"
    )
    assert meters.take_tokens("u", "other", 5, 54_000, strict=True) == (True, 0)
    assert meters.take_tokens("u", "c", 22, 10**7, strict=True) == (True, 0), (
        "never more than it holds"
    )
    assert meters.take_tokens("u", "c", 1, 10**7, strict=False) == (True, 500)


def test_what_is_counted_under_a_limit_that_is_gone_is_not_told():
    [meters] = meters_of(table_of(1, 11), Windows(), 10.0)
    meters.charge(PRODUCE, "u", "c", 100, 5_000)
    assert meters.usage(5_000)[0].entity == ANYONE
    meters.configure({(("client-id", "c"),): {PRODUCE: 5.0}})
    assert not meters.usage(5_000)
    meters.charge(PRODUCE, "u", "c", 1, 5_000)
    [usage] = meters.usage(5_000)
    assert (usage.limit, usage.entity) == (5.0, (("client-id", "c"),))
    meters.configure({})
    assert not meters.usage(5_000)


def test_what_is_withheld_is_not_counted_and_one_large_answer_is_sent():
    [meters] = meters_of(table_of(1, 11), Windows(), 100.0, FETCH)
    assert meters.charge_unless_over(FETCH, "u", "c", 1_000_000, 20_000) == 0
    for now in (20_000, 25_000, 30_999):
        assert meters.charge_unless_over(FETCH, "u", "c", 1_000_000, now) > 0
    assert meters.charge_unless_over(FETCH, "u", "c", 1_000_000, 31_000) == 0


def test_clients_under_a_default_are_counted_each_on_its_own_and_without_quota_not_at_all():
    [meters] = meters_of(table_of(1, 11), Windows(), 10.0)
    assert meters.charge(PRODUCE, "u", "greedy", 10_000, 5_000) > 0
    assert meters.charge(PRODUCE, "u", "modest", 10, 5_000) == 0
    assert meters.charge(FETCH, "u", "greedy", 10_000, 5_000) == 0
    assert not meters.limits(FETCH)
    meters.configure({})
    assert meters.charge(PRODUCE, "u", "greedy", 10_000, 5_000) == 0


def test_a_full_region_gives_up_the_meter_that_rested_longest():
    table = table_of(2, 11, rows=4)
    one, other = meters_of(table, Windows(), 1000.0)
    for n in range(6):
        one.charge(PRODUCE, "u", f"c{n}", 100, 10_000 + n)
    assert set(table.names(0)) == {digest_of(Meter(0, "", f"c{n}")) for n in (2, 3, 4, 5)}
    assert one.charge(PRODUCE, "u", "c5", 10_900, 10_100) > 0
    assert one.charge(PRODUCE, "u", "c0", 100, 10_200) == 0
    assert other.charge(PRODUCE, "u", "c5", 1, 10_300) > 0


def test_a_successor_goes_on_with_what_its_predecessor_counted():
    table = table_of(1, 11)
    [meters] = meters_of(table, Windows(), 1000.0)
    meters.charge(PRODUCE, "u", "c", 11_000, 10_000)
    [meters] = meters_of(table, Windows(), 1000.0)
    assert meters.charge(PRODUCE, "u", "c", 1, 10_500) > 0
    assert len(table.names(0)) == 1


@pytest.mark.parametrize("name", ["", "ü" * 300, "a\0b", "x" * 40_000])
def test_any_client_id_has_a_meter(name):
    [meters] = meters_of(table_of(1, 11), Windows(), 1.0)
    assert meters.charge(PRODUCE, "u", name, 1000, 1_000) > 0
    assert meters.usage(1_000)[0].wait_ms > 0


@pytest.mark.parametrize("begin", [50_000, 50_300, 50_900])
def test_a_consumer_settles_at_its_limit_second_by_second(begin):
    """Cold it takes half of what the windows hold at once, then no second gives much more than
    another: Apache Kafka gives everything in one second of eleven."""
    [meters] = meters_of(table_of(1, 11), Windows(), 5e6, FETCH)
    now, seconds = begin, [0.0] * 44
    while now < begin + 44_000:
        pause = meters.charge_unless_over(FETCH, "u", "c", 1_000_000, now)
        if not pause:
            seconds[(now - begin) // 1000] += 1.0
        now += pause or 20
    assert max(seconds[11:]) <= 5 * 1.25
    assert sum(seconds[11:]) / 33 == pytest.approx(5, rel=0.05)
    assert sum(seconds[:11]) / 11 <= 5.5


def test_one_answer_of_more_than_a_window_is_given_all_the_same():
    [meters] = meters_of(table_of(1, 11), Windows(), 100_000.0, FETCH)
    now, given = 50_000, []
    while now < 161_000:
        pause = meters.charge_unless_over(FETCH, "u", "c", 900_000, now)
        if not pause:
            given.append(now)
        now += pause or 20
    assert 7 <= len(given) <= 11


def test_clients_beyond_the_bound_take_the_place_of_the_most_silent():
    reached = []
    meters = Meters(
        table_of(1, 11, rows=4), 0, Windows(), reach=lambda bound, why: reached.append((bound, why))
    )
    meters.configure({ANYONE: {PRODUCE: 1000.0}})
    now = 1_000_000
    for number in range(4):
        assert not meters.charge(PRODUCE, "", f"c{number}", 500, now + number)
    assert meters.charge(PRODUCE, "", "c1", 50_000, now + 10) and not reached
    assert not meters.charge(PRODUCE, "", "late", 500, now + 20)
    ((bound, why),) = reached
    assert bound == bounds.QUOTA_CLIENTS and bounds.setting_of(bound) in why
    assert meters.charge(PRODUCE, "", "c1", 1, now + 20), "who was heard of lately still pauses"
    for number in range(3):
        meters.charge(PRODUCE, "", f"c{number}", 500, now + 60_000)
    meters.charge(PRODUCE, "", "later", 500, now + 60_000)
    reached.clear()
    meters.charge(PRODUCE, "", "c0", 500, now + 120_000)
    meters.charge(PRODUCE, "", "again", 500, now + 120_000)
    assert not reached, "what counts no more is no loss"
