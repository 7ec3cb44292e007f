"""Which seeds a test plays: the first ones before each commit, more with the proofs of `.ci/run`,
the others by night."""

import os

import pytest

PLAYED_ALWAYS, PLAYED_BY_CI = 1, 4
"""Parts of a test's seeds that run before each commit, and with the proofs of `.ci/run`; the others
are for the night."""
EACH_ALWAYS = 10
"""Seeds of `each_seed` that run before each commit."""
_WITHOUT_NIGHT = ("not proof", "not nightly", "proof and not nightly")
_made = {"nightly": True}


def make_chosen(marks):
    """Leaves out, of files imported from now on, the nightly seeds that `-m` would leave out: there
    are three times as many as all other tests. marks: the expression of `-m`."""
    _made["nightly"] = marks not in _WITHOUT_NIGHT


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
    """Of a test that plays one `seed`: the first EACH_ALWAYS of `count` run before each commit, the
    others by night."""
    always, nightly = range(count)[:EACH_ALWAYS], range(count)[EACH_ALWAYS:]
    marks = (pytest.mark.proof, pytest.mark.nightly)
    every = [pytest.param(one) for one in always]
    every += [pytest.param(one, marks=marks) for one in nightly if _made["nightly"]]
    return pytest.mark.parametrize("seed", every)
