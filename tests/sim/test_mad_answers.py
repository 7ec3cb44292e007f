"""Voters that answer what they like: nobody's process ends for it, and no epoch comes near the last
one. That what is agreed stays so cannot be had: who leads is believed what it says of that."""

import random
from unittest.mock import patch

from sim.agreed import voter
from sim.agreed.story import Story
from sim.agreed.voter import LIMITS, SHORT
from sim.world import Broken, World

from appliance.quorum.epochs import LAST
from tests.seeds import plays
from tests.wrong_answers import any_answer, changed

BELIEVED = "ConsistentCommittedData"
RUN_MS = 2_000
EVERY = 4
"""So many answers there are to one that is wrong."""


class Lies:
    """What voters hear instead of what was said. count: how often it was something else."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.count = 0
        self._true = voter.decode_response

    def decode(self, key, version, body):
        said = self._true(key, version, body)
        if self.rng.randrange(EVERY):
            return said
        self.count += 1
        if self.rng.randrange(4):
            return changed(said, self.rng)
        return any_answer(key, version, self.rng)


def outlives(seed):
    """Of one seed: how many lies its voters have heard."""
    story = Story(World(seed), limits=SHORT if seed % 2 else LIMITS)
    story.world.invariants.clear()
    lies = Lies(seed)
    told = patch.object(voter, "CONTRADICTS", "no cause begins so")
    with patch.object(voter, "decode_response", lies.decode), told:
        try:
            story.world.run(RUN_MS)
        except Broken as broken:
            if not str(broken.__cause__).startswith(BELIEVED):
                raise
    epochs = [one.replica.epoch for one in story.machines if one.replica is not None]
    assert max(epochs) <= LAST >> 1, epochs
    return lies.count


@plays(12, 2)
def test_no_voter_ends_whatever_the_others_answer(some):
    assert sum(map(outlives, some)) > 30
