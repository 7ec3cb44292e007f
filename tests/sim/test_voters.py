"""Voters come and go at random instants, and what is agreed stays."""

import pytest
from sim.agreed.elections import play
from sim.seeds import seeds


@pytest.mark.parametrize("seed", seeds(3))
def test_what_is_agreed_stays_whoever_votes(seed):
    play(seed)
