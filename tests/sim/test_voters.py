"""Voters come and go at random instants, and what is agreed stays; and the same with a bug planted,
which must be found."""

from unittest.mock import patch

import pytest
from sim.agreed.elections import play, play_crossing, play_replacing, play_watching
from sim.agreed.planted import driven
from sim.agreed.voter import Voter
from sim.seeds import first_broken

from appliance.quorum.majority import needed
from appliance.quorum.replica import Replica
from appliance.quorum.voters import History
from tests.seeds import plays


@plays(4, 2)
def test_what_is_agreed_stays_whoever_votes(some):
    for seed in some:
        play(seed)


@pytest.mark.parametrize("tell", [play_crossing, play_watching, play_replacing])
@plays(1, 2)
def test_who_looks_on_what_crosses_and_empty_disks_take_nothing_back(tell, some):
    for seed in some:
        tell(seed)


def test_a_voter_whose_disk_was_replaced_is_not_the_last_but_one():
    """The others let one of themselves go, and nobody could lead: a mistake of the story."""
    play_replacing(1)


# Bugs that must be found --------------------------------------------------------------------------


class KeepsWhatWasCutOff(Voter):
    """Voters of a log that was truncated."""

    def turn(self):
        with patch.object(History, "truncate", lambda *_: False):
            super().turn()

    def received(self, end, message):
        with patch.object(History, "truncate", lambda *_: False):
            super().received(end, message)


class HoldsOnToTheFirst(Replica):
    """Whatever the log says, voters are those of the start."""

    def elects(self, voters, end, agreed):
        super().elects(self.voters, end, agreed)


class ChangesBeforeItsFirst(Replica):
    """No record of its own epoch is agreed yet."""

    @property
    def may_change(self):
        return self.leads and self.high_watermark >= self._elected_end


class ChangesBeforeTheLast(Replica):
    """The change before is not agreed yet."""

    @property
    def may_change(self):
        return self.begun


class CountsObservers(Replica):
    """As many as would be a majority have it, whoever they are."""

    def _commit(self):
        held = [peer.held for peer in self.peers.values()] + [self._held] * self.votes
        agreed = sorted(held + [-1] * len(self.voters), reverse=True)[needed(len(self.voters)) - 1]
        if agreed > max(self._began, self.high_watermark):
            self.high_watermark = agreed


@pytest.mark.parametrize(
    ("tell", "voter", "first"),
    [
        (play, KeepsWhatWasCutOff, 10),
        (play, driven(HoldsOnToTheFirst), 1),
        (play, driven(ChangesBeforeTheLast), 26),
        (play_watching, driven(CountsObservers), 0),
        (play_crossing, driven(ChangesBeforeItsFirst), 2),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_bug_is_found(tell, voter, first):
    """first: a seed that showed it lately, from which on to look."""
    assert first_broken(lambda seed: tell(first + seed, voter=voter), 40), "no seed shows it"
