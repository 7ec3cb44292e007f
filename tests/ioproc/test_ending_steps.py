"""kill -9 at every step between EndTxn and the record that completes the transaction, of either I/O
process, of both, and of the power, and once more while its successors recover: whatever was decided
is decided everywhere, once.

With PENSTOCK_TEST_STEPS=all every pair of steps is played (minutes); else some, by seed.
"""

import os
from random import Random

import pytest
from sim.disk import PowerCut
from two_processes import TOPICS, Both, steps_of

from appliance.base import errors

END = 26
DONE = {True: "CompleteCommit", False: "CompleteAbort"}
WAYS = ("one", "all", "power")
ALL = os.environ.get("PENSTOCK_TEST_STEPS") == "all"
SECONDS = 60  # steps of a recovery, at most
PAIRS = 200


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("commit", [True, False])
def test_it_ends_as_decided_whoever_dies_at_whichever_step(commit, how):
    last = steps_of(commit)
    assert last > 20, "as many as writes, syncs and turns"
    found = [ends(commit, (how, step)) for step in range(1, last + 1)]
    assert set(found) == {"Ongoing", DONE[commit]}
    assert found == sorted(found, reverse=True), "undecided up to a step, decided from there on"


def test_it_does_so_when_its_successors_die_too():
    cases = [
        (commit, (how, step), (again, second))
        for commit in (True, False)
        for how in WAYS
        for step in range(1, steps_of(commit) + 1)
        for again in WAYS
        for second in range(1, SECONDS + 1)
    ]
    for case in cases if ALL else Random(16).sample(cases, PAIRS):
        ends(*case)


def ends(commit, *deaths):
    """Each way to die and at which step, counted from the one before: the phase that was found."""
    both = Both()
    epoch = both.begin()
    both.end(epoch, commit=commit)
    told, pending = {}, list(deaths)
    both.strike(pending[0][1])
    while pending:
        how, _ = pending[0]
        try:
            told |= both.settle()
            break  # nothing happened any more before that step
        except PowerCut:
            pending.pop(0)
        while True:
            try:
                both.die(how, pending[0][1] if pending else 0)
                break
            except PowerCut:  # while it was opened
                how, _ = pending.pop(0)
    both.strike(0)
    told |= both.settle()
    where = str((commit, *deaths))
    assert told in ({}, {END: errors.NONE}), where
    found = both.phase()
    if found == "Ongoing":
        assert not told, f"{where}: it was answered as decided"
        assert both.markers(epoch) == {name: [] for name in TOPICS}, where
        both.end(epoch, commit=commit)
        assert both.settle() == {END: errors.NONE}, where
    assert both.phase() == DONE[commit], where
    assert both.markers(epoch) == {name: [commit] for name in TOPICS}, where
    assert both.stable() == set(TOPICS), where
    assert not any(one.endings.under_way for one in both.lives.values()), where
    following = both.begin()
    both.settle()
    assert following == epoch + 1 and both.phase() == "Ongoing", where
    assert both.stable() == set(), f"{where}: what was left of it ended the next one"
    return found
