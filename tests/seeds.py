"""Which seeds a test plays: the first ones before each commit, more with the proofs of `.ci/run`,
the others by night."""

import os

import pytest

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


def each_seed(count):
    """Of a test that plays one `seed`: the first ten of `count` run before each commit, the others
    by night."""
    nightly = (pytest.mark.proof, pytest.mark.nightly)
    every = [pytest.param(one, marks=nightly if one >= 10 else ()) for one in range(count)]
    return pytest.mark.parametrize("seed", every)
