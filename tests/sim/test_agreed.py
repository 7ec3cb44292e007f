"""A quorum agrees on its log whatever happens to machines and links; and the same with a bug
planted, which must be found."""

import pytest
from sim.agreed.invariants import ALL
from sim.agreed.planted import OF_EACH, driven
from sim.agreed.story import play
from sim.agreed.voter import Voter
from sim.seeds import first_broken

from appliance.quorum.replica import Replica
from tests.seeds import plays


@plays(14, 2)
def test_what_is_agreed_stays_and_everything_becomes_well(some):
    for seed in some:
        play(seed)


# Bugs that must be found --------------------------------------------------------------------------


class PageCacheCounts(Voter):
    """What is written counts as held, though power may take it."""

    def turn(self):
        self.replica.durable(self.log.end_offset)
        super().turn()


class ForgetsItsSnapshot(Voter):
    """A log that begins behind a snapshot does not know of which epoch that was."""

    def turn(self):
        self.log._before = 0
        super().turn()


class VotesForAnybody(Replica):
    """However short the log is."""

    def _is_level(self, ask):
        return True


@pytest.mark.parametrize(
    "voter",
    [PageCacheCounts, ForgetsItsSnapshot, driven(VotesForAnybody)],
    ids=lambda value: value.__name__,
)
def test_a_planted_bug_is_found(voter):
    assert first_broken(lambda seed: play(seed, voter=voter), 20), "no seed shows it"


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_each_invariant_finds_the_bug_that_breaks_it(kind):
    name = kind.__name__
    found = first_broken(lambda seed: play(seed, voter=OF_EACH[name]), 20, by=name)
    assert found, "no seed shows it"
