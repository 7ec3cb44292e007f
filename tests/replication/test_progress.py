"""How far a partition is, against a dumb twin that keeps every event and computes from all of
them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.replication.progress import Progress

REPLICAS = (2, 3, 4)
LONGEST_MS = 100


class Twin:
    """The list of what happened, and what follows from all of it."""

    def __init__(self):
        self.events = []

    def of(self, kind):
        return [event[1:] for event in self.events if event[0] == kind]

    def since_leading(self):
        """Events of this leadership: from the last lead of a new epoch on."""
        begin, epoch = 0, None
        for at, event in enumerate(self.events):
            if event[0] == "lead" and event[1] != epoch:
                begin, epoch = at, event[1]
            elif event[0] == "follow":
                begin, epoch = at, None
        return self.events[begin:]

    def followers(self):
        ends = {}
        for event in self.since_leading():
            if event[0] == "at":
                ends[event[1]] = event[2]
        return ends

    def caught_up(self, replica):
        """KIP-16, by going through all of its fetches: those since it was in sync last, and since
        it had more than it has."""
        began = next(event for event in self.since_leading() if event[0] == "lead")
        latest, asked_end, asked_ms = began[3] if replica in began[2] else 0, None, 0
        at, in_sync = -1, ()
        for event in self.since_leading():
            if event[0] == "lead":
                if replica in in_sync and replica not in event[2]:
                    latest, asked_end = 0, None
                in_sync = event[2]
            if event[0] == "append" and event[1] == at and asked_end is not None:
                latest = max(latest, event[2])
            if event[0] == "at" and event[1] == replica:
                _, _, end, log_end, now = event
                if end < at and replica not in in_sync:
                    latest, asked_end = 0, None
                if end >= log_end:
                    latest = max(latest, now)
                elif asked_end is not None and end >= asked_end:
                    latest = max(latest, asked_ms)
                at, asked_end, asked_ms = end, log_end, now
        return latest


class Run:
    def __init__(self):
        self.twin = Twin()
        self.epoch = 0
        self.now = 0
        self.end = self.held = self.start = self.high = 0
        self.began = 0  # where the log ended when this leadership began
        self.isr = ()
        self.near = {}  # about to be in sync
        self.enough = True
        self.leads = True
        self.open, self.closed = {}, []  # producer → first; (first, end of marker)
        self.real = Progress(0, 0, 0)
        self.real.lead(0, REPLICAS, (), 0)
        self.twin.events.append(("lead", 0, (), 0))

    def bound(self):
        ends = self.twin.followers()
        if not self.enough:
            return -1
        return min([self.held, *(ends.get(one, -1) for one in (*self.isr, *self.near))])

    def check(self, rose=None):
        before = self.high
        if self.leads:
            self.high = max(self.high, self.bound())
        if rose is not None:
            assert rose == (self.high > before)
        real = self.real
        assert (real.log_start, real.log_end, real.held) == (self.start, self.end, self.held)
        assert real.high_watermark == self.high
        unstable = [*self.open.values()]
        unstable += [first for first, end in self.closed if end > self.high]
        stable = max(self.start, min([self.high, *unstable]))
        assert real.last_stable == stable
        assert real.log_start <= real.last_stable <= real.high_watermark <= real.log_end
        if self.leads:
            ends = self.twin.followers()
            late = [
                one
                for one in self.isr
                if ends.get(one, -1) != self.end
                and self.now - self.twin.caught_up(one) > LONGEST_MS
            ]
            assert real.behind(self.now, LONGEST_MS) == late
            for one in REPLICAS:
                may = one not in self.isr and ends.get(one, -1) >= max(self.high, self.began)
                assert real.may_join(one) == may

    def lead(self, pick, again):
        self.isr = tuple(one for one in REPLICAS if pick & 1 << one)
        if not (again and self.leads):
            self.epoch += 1
            self.began = self.end
            self.near = {}
        self.leads = True
        self.enough = not pick & 1
        self.near = {one: None for one in self.near if one not in self.isr}
        self.twin.events.append(("lead", self.epoch, self.isr, self.now))
        enough = self.enough
        self.check(self.real.lead(self.epoch, REPLICAS, self.isr, self.now, enough=enough))

    def follow(self, _, __):
        if self.leads:
            self.leads, self.isr, self.near, self.enough = False, (), {}, True
            self.epoch += 1
            self.real.follow(self.epoch)
            self.twin.events.append(("follow",))

    def append(self, count, durable):
        self.end += count
        if not durable:
            self.held = self.end
        self.appended(count)

    def sync(self, back, _):
        held = max(self.held, self.end - back)
        self.held = held
        self.check(self.real.holds(held))

    def replica(self, number, back):
        if self.leads:
            replica, end = REPLICAS[number % 3], max(0, self.end - back * 2)
            before = self.twin.followers().get(replica, -1)
            if end < before and replica not in self.isr:
                self.near.pop(replica, None)
            self.twin.events.append(("at", replica, end, self.end, self.now))
            longest = LONGEST_MS if number > 2 else -1
            lags = self.now - self.twin.caught_up(replica)
            if lags <= longest and replica not in self.isr:
                self.near[replica] = None
            self.check(self.real.replica_at(replica, end, self.now, longest))
            assert not self.real.replica_at(9, self.end, self.now), "none of this partition's"
            assert not self.real.replica_at(replica, self.end + 1, self.now), "not in the log"

    def forget(self, _, __):
        ends = self.twin.followers()
        self.near = {
            one: None
            for one in self.near
            if ends[one] == self.end or self.now - self.twin.caught_up(one) <= LONGEST_MS
        }
        if self.leads:
            self.check(self.real.forget_late(self.now, LONGEST_MS))

    def told(self, ahead, _):
        if not self.leads:
            told = self.high + ahead - 2
            before, self.high = self.high, max(self.high, min(told, self.end))
            assert self.real.on_leader_high_watermark(told) == (self.high > before)

    def truncate(self, back, _):
        if not self.leads:
            self.end = max(self.start, self.end - back)
            self.held, self.high = min(self.held, self.end), min(self.high, self.end)
            whole = [(first, end) for first, end in self.closed if end <= self.end]
            cut = {90 + n: first for n, (first, end) in enumerate(self.closed) if end > self.end}
            self.open = {p: first for p, first in {**self.open, **cut}.items() if first < self.end}
            self.closed = whole
            self.real.truncated(self.end, self.open)

    def appended(self, count=1):
        self.twin.events.append(("append", self.end - count, self.now))
        self.check(self.real.appended(self.end, self.held, self.now))

    def begin(self, producer, _):
        if producer not in self.open:
            first, self.end = self.end, self.end + 1
            self.open[producer] = first
            self.real.begun(producer, first)
            self.appended()

    def finish(self, producer, _):
        self.end += 1
        self.appended()
        before = self.real.last_stable
        first = self.open.pop(producer, None)
        if first is not None:
            self.closed.append((first, self.end))
        rose = self.real.ended(producer, self.end)
        assert rose == (self.real.last_stable > before)

    def trim(self, back, _):
        self.start = max(self.start, self.high - back)
        self.real.starts_at(self.start)

    def wait(self, ms, _):
        self.now += ms * 20


NAMES = (
    *("append", "append", "sync", "sync", "replica", "replica", "lead", "follow", "told"),
    *("truncate", "begin", "finish", "trim", "wait", "forget"),
)
steps = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 31), st.integers(0, 3)), max_size=60
)


@given(steps)
@settings(max_examples=400, deadline=None)
def test_every_history_ends_where_the_twin_says(history):
    run = Run()
    for name, a, b in history:
        getattr(run, name)(a if name in ("lead", "wait") else a % 6, b)
        run.check()


def alone():
    one = Progress(0, 0, 0)
    one.lead(0)
    return one


def test_alone_with_group_commit_the_disk_is_the_replica_that_counts():
    one = alone()
    assert not one.appended(5, 0)
    assert (one.log_end, one.high_watermark) == (5, 0)
    assert one.holds(3)
    assert (one.high_watermark, one.last_stable) == (3, 3)
    assert not one.holds(2), "an older sync that ends late"
    assert one.holds(5)


def test_alone_without_it_what_is_written_counts():
    one = alone()
    assert one.appended(5, 5)
    assert one.high_watermark == 5


def test_a_follower_in_sync_holds_the_high_watermark_back_and_lets_it_go_when_it_leaves():
    one = Progress(0, 0, 0)
    one.lead(1, (2, 3), (2, 3))
    one.appended(10, 10)
    assert one.high_watermark == 0
    assert not one.replica_at(2, 10, 0)
    assert one.replica_at(3, 4, 0)
    assert one.high_watermark == 4
    assert one.lead(1, (2, 3), (2,), 0), "3 fell out"
    assert one.high_watermark == 10
    assert not one.may_join(3)
    one.replica_at(3, 10, 5)
    assert one.may_join(3)


def led_with_one_that_had_everything(now_ms):
    one = Progress(0, 0, 0)
    one.lead(1, (2, 3), (2, 3), now_ms)
    one.appended(1000, 1000, now_ms)
    for replica in (2, 3):
        one.replica_at(replica, 1000, now_ms, LONGEST_MS)
    assert one.high_watermark == 1000
    return one


@pytest.mark.parametrize("has", [0, 1000])
def test_nobody_waits_for_who_comes_back_until_it_is_level(has):
    """A moment ago it had everything; then it was away, for less than replica.lag.time.max.ms, and
    has lost its disk, or what was written meanwhile."""
    one, now_ms = led_with_one_that_had_everything(10_000), 10_010
    one.lead(1, (2, 3), (2,), now_ms)
    one.appended(9000, 9000, now_ms)
    assert one.replica_at(2, 9000, now_ms, LONGEST_MS)
    one.replica_at(3, has, now_ms, LONGEST_MS)
    assert one.near == ()
    one.appended(9001, 9001, now_ms)
    assert one.replica_at(2, 9001, now_ms, LONGEST_MS) and one.high_watermark == 9001
    one.replica_at(3, 9001, now_ms + 1, LONGEST_MS)
    assert one.near == (3,)


def test_nobody_waits_for_who_was_about_to_be_in_sync_and_has_lost_what_it_had():
    one = Progress(0, 0, 0)
    one.lead(1, (2,), (), 10_000)
    one.appended(10, 10, 10_000)
    one.replica_at(2, 10, 10_001, LONGEST_MS)
    assert one.near == (2,)
    one.appended(11, 11, 10_002)
    assert one.high_watermark == 10
    assert one.replica_at(2, 0, 10_003, LONGEST_MS), "it starts over"
    assert one.near == () and one.high_watermark == 11


def test_what_a_new_leader_may_not_know_stays_visible():
    """It leads with what its predecessor said was visible, and waits for its own followers."""
    one = Progress(0, 8, 6)
    one.follow(1)
    assert one.on_leader_high_watermark(7)
    one.lead(2, (2,), (2,))
    assert one.high_watermark == 7
    one.replica_at(2, 5, 0)
    assert one.high_watermark == 7
    one.replica_at(2, 8, 0)
    assert one.high_watermark == 8


def test_nobody_joins_a_new_leader_with_less_than_it_began_with():
    """Its predecessor may have shown all of that, and the follower could be the next leader."""
    one = Progress(0, 8, 5)
    one.lead(2, (2, 3), (2,))
    one.replica_at(3, 6, 0)
    assert one.high_watermark == 5 and not one.may_join(3)
    one.replica_at(3, 8, 0)
    assert one.may_join(3)
    one.appended(20, 20)
    one.lead(2, (2, 3), (2,))
    assert one.may_join(3), "the same leadership goes on: it began at 8"
    one.lead(3, (2, 3), (2,))
    one.replica_at(3, 8, 0)
    assert not one.may_join(3)


def test_a_transaction_is_stable_when_its_marker_is_visible():
    one = alone()
    one.begun(7, 0)
    one.appended(3, 3)
    assert (one.high_watermark, one.last_stable) == (3, 0)
    one.appended(4, 3)
    assert not one.ended(7, 4), "the marker is not visible"
    assert one.holds(4)
    assert one.last_stable == 4
    assert not one.ended(7, 4), "a second marker"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda one: one.lead(4),
        lambda one: one.follow(5),
        lambda one: one.truncated(3, {}),
        lambda one: one.on_leader_high_watermark(3),
        lambda one: one.holds(99),
        lambda one: one.appended(1, 0),
        lambda one: one.starts_at(99),
        lambda one: (one.begun(1, 10), one.begun(1, 11)),
        lambda one: one.begun(1, 2),
    ],
)
def test_what_cannot_be_is_an_error(wrong):
    one = Progress(0, 10, 10)
    one.lead(5)
    with pytest.raises(AssertionError):
        wrong(one)
