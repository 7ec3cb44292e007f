"""Which seeds a test runs, the first that breaks, and a seed in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from sim.world import Broken


def seeds(count):
    """The seeds of a test: `count` of them, or what SIM_SEED (the first) and SIM_RUNS (how many)
    say."""
    first = int(os.environ.get("SIM_SEED", "0"))
    return range(first, first + int(os.environ.get("SIM_RUNS", count)))


def first_broken(play, most):
    """(seed, Broken) of the first seed that breaks, of at most so many: how a planted bug is
    found. play: a world's whole story, from a seed."""
    for seed in range(most):
        try:
            play(seed)
        except Broken as broken:
            return seed, broken
    return None


def under_other_hashes(module, call):
    """What `call` (an expression over `module`) prints in two processes of their own, whose strings
    hash differently."""
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests), str(tests.parent), str(tests / "ioproc")])
    code = f"import {module} as m; print(m.{call})"
    found = []
    for salt in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": salt, "PYTHONPATH": paths}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=100
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.strip())
    return found
