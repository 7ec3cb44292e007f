"""Seeds of the simulation with members of both protocols; a seed is one history."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from consumer_simulation import Simulation

from tests.seeds import each_seed

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@each_seed(20)
def test_nothing_has_two_owners_while_groups_change_protocol(seed: int) -> None:
    Simulation(seed).run(400)


@pytest.mark.parametrize("seed", range(100, 108))
def test_nothing_has_two_owners_among_consumers(seed: int) -> None:
    Simulation(seed, classic_share=0).run(400)


def test_the_seeds_see_groups_of_both_kinds() -> None:
    simulation = Simulation(1)
    simulation.run(400)
    assert list(simulation.kinds) != ["classic"]
    assert len(simulation.kinds) == 2


def test_a_storm_of_fifty_consumers_ends() -> None:
    simulation = Simulation(5, clients=50, classic_share=0.2)
    simulation.world.check_every = 50
    simulation.run(2500)


def digest(seed: int) -> str:
    simulation = Simulation(seed)
    simulation.run(300)
    history = "\n".join(simulation.trace) + repr(simulation.world.log)
    return hashlib.sha256(history.encode()).hexdigest()


def test_a_seed_is_one_history_whatever_the_hash_seed() -> None:
    program = "from test_consumer_simulation import digest; print(digest(7))"
    found = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT}:{HERE}"}
        run = [sys.executable, "-c", program]
        found.append(subprocess.check_output(run, env=environment, text=True, cwd=ROOT))
    assert found[0] == found[1]
