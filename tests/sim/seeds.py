"""Which seeds a test runs, the first that breaks, and a seed in a process of its own."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from sim.world import Broken

from appliance.base.errors import CannotServe, PeerError, StorageFailed

NOTICED = (AssertionError, PeerError, StorageFailed, CannotServe)
"""How a bug shows; anything else is a mistake of the story."""


PLAYED_ALWAYS, PLAYED_BY_CI = 1, 4
"""Parts of a test's seeds that run before each commit, and with the proofs of `.ci/run`; the others
are for the night."""


def seeds(count):
    """The seeds of a test: `count` of them, or what SIM_SEED (the first) and SIM_RUNS (how many)
    say."""
    first = int(os.environ.get("SIM_SEED", "0"))
    return range(first, first + int(os.environ.get("SIM_RUNS", count)))


def plays(count, at_once=10):
    """Of a test that plays all of `some` seeds: together they are the seeds of the test (`seeds`).
    at_once: how many of them, at most."""
    every = seeds(count)
    some = [every[at : at + at_once] for at in range(0, len(every), at_once)]
    parts = []
    for number, one in enumerate(some):
        marks = [] if number < PLAYED_ALWAYS else [pytest.mark.proof]
        if number >= PLAYED_BY_CI:
            marks.append(pytest.mark.nightly)
        parts.append(pytest.param(one, id=f"{one[0]}-{one[-1]}", marks=marks))
    return pytest.mark.parametrize("some", parts)


def first_broken(play, most, by=""):
    """(seed, Broken) of the first seed that breaks, of at most so many: how a planted bug is
    found. play: a world's whole story, from a seed. by: with what it has to begin, if another rule
    may notice the same bug sooner."""
    for seed in range(most):
        try:
            play(seed)
        except Broken as broken:
            if not isinstance(broken.__cause__, NOTICED):
                raise
            if str(broken.__cause__).startswith(by):
                return seed, broken
    return None


def digests(stories, seed):
    """The hash of the trace of this seed in each of these stories: (module, what plays it)."""
    return [getattr(import_module(name), play)(seed).digest for name, play in stories]


def digests_under_other_hashes(stories, seed):
    """The same in a process of its own, in which strings hash differently."""
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join(map(str, (tests, tests.parent)))
    env = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": paths}
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"  # kio would import it
        f"from sim.seeds import digests; print(*digests({stories!r}, {seed}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
