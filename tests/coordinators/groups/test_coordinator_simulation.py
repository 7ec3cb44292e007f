"""Seeds of the simulation, and the proof that a seed means one history."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from group_simulation import Simulation

from tests.seeds import each_seed

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@each_seed(25)
def test_a_group_survives_what_happens_to_it(seed: int) -> None:
    Simulation(seed).run(400)


def test_a_storm_of_fifty_members_ends() -> None:
    simulation = Simulation(3, members=50, room=50)
    simulation.world.check_every = 50
    simulation.run(2500)
    assert len(simulation.group().members) == 50


def digest(seed: int) -> str:
    simulation = Simulation(seed)
    simulation.run(300)
    history = "\n".join(simulation.trace) + repr(simulation.world.log)
    return hashlib.sha256(history.encode()).hexdigest()


def test_a_seed_is_one_history_whatever_the_hash_seed() -> None:
    program = "from test_coordinator_simulation import digest; print(digest(7))"
    found = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT}:{HERE}"}
        run = [sys.executable, "-c", program]
        found.append(subprocess.check_output(run, env=environment, text=True, cwd=ROOT))
    assert found[0] == found[1]
