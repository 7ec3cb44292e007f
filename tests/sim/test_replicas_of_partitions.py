"""Replicas of partitions under a controller: today's decisions, `Fetcher` and `Progress`, whatever
happens to machines and links; and the same with a bug planted, which must be found."""

import pytest
from sim.replicas.broker import Broker
from sim.replicas.replica import Replica
from sim.replicas.story import play
from sim.seeds import first_broken

from appliance.controller import partition_change
from appliance.replication.follower import TAKE, Fetcher
from appliance.replication.progress import Progress
from tests.seeds import plays


@plays(100)
def test_what_was_shown_stays_and_everything_becomes_well(some):
    for seed in some:
        play(seed)


# Bugs that must be found --------------------------------------------------------------------------


class NeverTruncates(Replica):
    """A follower fetches from its end, whatever is before it."""

    def position(self):
        return super().position()._replace(last_epoch=-1)


class TruncatesToWhatIsShown(Replica):
    """To the high watermark, which a follower hears late (KIP-101)."""

    def is_now(self, epoch, role, now_ms):
        super().is_now(epoch, role, now_ms)
        if not role.leads:
            self.part(self.progress.high_watermark)


class KeepsEmptyEpochs(Replica):
    """A leader that wrote nothing goes on with its epoch behind the log's end."""

    def part(self, offset):
        if offset != self.log.end:
            super().part(offset)


class ShowsTooEarly(Replica):
    """What it has itself, without asking who is in sync."""

    def wait_for(self, isr, epoch, now_ms):
        super().wait_for((), epoch, now_ms)


class OneIsEnough(Replica):
    """Less than min.insync.replicas show something (KIP-966)."""

    enough = True


class LeadsAsBefore(Replica):
    """By what the metadata says of an earlier life."""

    def may_lead(self):
        return True


class PageCacheCounts(Replica):
    """What is written counts as held, though power may take it."""

    def is_level(self):
        return True


class LosesInOrder(Broker):
    """A broker whose power was cut registers as one that ended in order."""

    unclean = property(lambda _: False, lambda _, value: None)


class KeepsItsSessions(Broker):
    """Its leaders do not hear that it is registered anew (KIP-903)."""

    def begin_sessions(self):
        pass


def with_replica(replica):
    return type(replica.__name__, (Broker,), {"replica": replica})


@pytest.mark.parametrize(
    ("broker", "durable"),
    [
        (with_replica(NeverTruncates), False),
        (with_replica(TruncatesToWhatIsShown), False),
        (with_replica(KeepsEmptyEpochs), True),
        (with_replica(ShowsTooEarly), True),
        (with_replica(OneIsEnough), True),
        (with_replica(LeadsAsBefore), False),
        (with_replica(PageCacheCounts), True),
        (LosesInOrder, False),
        (KeepsItsSessions, True),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_bug_of_a_broker_is_found(broker, durable):
    assert first_broken(lambda seed: play(seed, broker=broker, durable=durable), 60)


def early(self, replica):
    """With all that its leader shows, though a new leader shows less than the one before."""
    follower = self.followers.get(replica)
    new = follower is not None and replica not in self.in_sync
    return new and follower.end >= self.high_watermark


def late(self, told, now_ms):
    """Whatever was asked before counts."""
    return TAKE if told.key in self._positions and not told.error else 0


def anybody(self, one):
    return self._may_lead(one)


def for_ever(self):
    """Who was once in sync stays eligible."""
    self.elr = sorted({*self.elr, *self._old.isr} - {*self.isr, self.lost})


@pytest.mark.interpreted("puts a bug in the place of a part")
@pytest.mark.parametrize(
    ("where", "name", "bug", "durable", "by"),
    [
        (Progress, "may_join", early, True, ""),
        (Fetcher, "outcome", late, True, ""),
        (partition_change.PartitionChange, "_valid", anybody, True, ""),
        (partition_change.PartitionChange, "_keep_eligible", for_ever, True, ""),
        (partition_change.PartitionChange, "_keep_eligible", for_ever, True, "eligible beside"),
    ],
    ids=[
        "joins too early",
        "takes what is late",
        "anybody",
        "for ever",
        "for ever, beside those in sync",
    ],
)
def test_a_bug_of_a_part_is_found(monkeypatch, where, name, bug, durable, by):
    monkeypatch.setattr(where, name, bug)
    assert first_broken(lambda seed: play(seed, durable=durable), 60, by)
