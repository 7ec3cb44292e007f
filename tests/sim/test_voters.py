"""Voters come and go at random instants, and what is agreed stays; and the same with a bug planted,
which must be found."""

from unittest.mock import patch

import pytest
from sim.agreed.elections import play
from sim.agreed.voter import Voter
from sim.seeds import first_broken, seeds

from appliance.quorum.replica import Replica
from appliance.quorum.voters import History


@pytest.mark.parametrize("seed", seeds(3))
def test_what_is_agreed_stays_whoever_votes(seed):
    play(seed)


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


def driven(replica):
    return type(replica.__name__, (Voter,), {"replica_of": replica})


@pytest.mark.parametrize(
    "voter",
    [KeepsWhatWasCutOff, driven(HoldsOnToTheFirst)],
    ids=lambda value: value.__name__,
)
def test_a_planted_bug_is_found(voter):
    assert first_broken(lambda seed: play(seed, voter=voter), 20), "no seed shows it"
