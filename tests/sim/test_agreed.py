"""A quorum agrees on its log whatever happens to machines and links; and the same with a bug
planted, which must be found."""

from unittest.mock import patch

import pytest
from sim.agreed.story import play
from sim.agreed.voter import Voter
from sim.seeds import first_broken, seeds

from appliance.control.metadata_quorum import MetadataQuorum
from appliance.quorum.replica import Replica
from appliance.quorum.role import Role


@pytest.mark.parametrize("seed", seeds(10))
def test_what_is_agreed_stays_and_everything_becomes_well(seed):
    play(seed)


# Bugs that must be found --------------------------------------------------------------------------


class Forgets(Voter):
    """Whom it voted for, and which epochs there were."""

    def begin(self):
        with patch.object(MetadataQuorum, "remember", lambda *_: None):
            super().begin()

    def turn(self):
        with patch.object(MetadataQuorum, "remember", lambda *_: None):
            super().turn()

    def received(self, end, message):
        with patch.object(MetadataQuorum, "remember", lambda *_: None):
            super().received(end, message)


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


class NeverParts(Replica):
    """A leader takes every log for a beginning of its own."""

    def fetched_by(self, ask, now_ms):
        return super().fetched_by(ask, now_ms)._replace(parts=None)


class LeadsOn(Replica):
    """After a start, in the epoch that it led before."""

    def __init__(self, *args):
        super().__init__(*args)
        if self.role is Role.RESIGNED and self.leader == self.node_id:
            self.role = Role.CANDIDATE
            self._lead(args[5])


def driven(replica):
    return type(replica.__name__, (Voter,), {"replica_of": replica})


@pytest.mark.parametrize(
    "voter",
    [
        Forgets,
        PageCacheCounts,
        ForgetsItsSnapshot,
        *map(driven, (VotesForAnybody, NeverParts, LeadsOn)),
    ],
    ids=lambda value: value.__name__,
)
def test_a_planted_bug_is_found(voter):
    assert first_broken(lambda seed: play(seed, voter=voter), 20), "no seed shows it"
