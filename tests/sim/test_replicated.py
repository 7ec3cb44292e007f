"""Three replicas over today's Log and Progress, whatever happens to machines and links; and the
same with a bug planted, which must be found."""

import pytest
from sim.replicated.broker import Broker
from sim.replicated.cluster import play
from sim.seeds import first_broken

from tests.seeds import plays


@plays(100)
def test_what_was_shown_stays_and_everything_becomes_well(some):
    for seed in some:
        play(seed)


# Bugs that must be found --------------------------------------------------------------------------


class PageCacheCounts(Broker):
    """What is written counts as held, though power may take it."""

    def held(self, end):
        return end

    def may_fetch(self):
        return True


class SyncIsBelieved(Broker):
    """A sync that did not happen counts."""

    def sync(self, job):
        pass


class NeverTruncates(Broker):
    """A follower fetches from its end, whatever is before it."""

    def part(self, found, end):
        self.parted = self.epoch


class KeepsItsRecoveryPoint(Broker):
    """On the disk, where an opening believes in it."""

    def lower_recovery_point(self, offset):
        self.log.recovery_point = 0


class TruncatesToWhatIsShown(Broker):
    """To the high watermark, which a follower hears late (KIP-101)."""

    def part(self, found, end):
        self.truncate(self.progress.high_watermark)
        self.parted = self.epoch


class AsksOnce(Broker):
    """Truncates to where its epoch ended with the leader, whatever is before that (KIP-279)."""

    def part(self, found, end):
        self.truncate(end)
        self.parted = self.epoch


class JoinsTooEarly(Broker):
    """With all that its leader shows, though a new leader shows less than the one before
    (KIP-320)."""

    def may_join(self, number):
        known = self.progress.followers[number]
        return number not in self.progress.in_sync and known.end >= self.progress.high_watermark


class CountsWhoJoinsLate(Broker):
    """Only when the controller has answered (KIP-497)."""

    def count_at_once(self, in_sync):
        pass


class ShowsTooEarly(Broker):
    """What it has itself, without asking who is in sync."""

    def lead(self, in_sync):
        super().lead(())


@pytest.mark.parametrize(
    ("broker", "durable"),
    [
        (PageCacheCounts, True),
        (SyncIsBelieved, True),
        (NeverTruncates, False),
        (KeepsItsRecoveryPoint, True),
        (TruncatesToWhatIsShown, False),
        (AsksOnce, False),
        (JoinsTooEarly, False),
        (CountsWhoJoinsLate, False),
        (ShowsTooEarly, False),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_planted_bug_is_found(broker, durable):
    found = first_broken(lambda seed: play(seed, broker=broker, durable=durable), 40)
    assert found, "no seed shows it"
