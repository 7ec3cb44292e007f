"""The ledger that group members are held to: what is a second owner, and what is only late."""

import pytest

from benchmarks.members import Ledger


@pytest.fixture
def ledger():
    """Partition 0 is a's, by a heartbeat of second 1."""
    found = Ledger(session_s=6)
    found.hold([0], "a", 1.0, 1.1)
    return found


def test_a_partition_that_two_own_who_are_heard_of_is_told(ledger):
    with pytest.raises(AssertionError, match="a still holds 0, and b was given it"):
        ledger.hold([0], "b", 6.0, 6.9)


def test_what_the_other_one_gave_up_may_be_had(ledger):
    ledger.hold([1], "a", 2.0, 2.1)
    ledger.release("a", but=[1])
    ledger.hold([0], "b", 2.0, 2.1)
    assert ledger.holders == {0: "b", 1: "a"}


def test_who_was_not_heard_of_for_a_session_has_lost_it_and_must_be_told_so(ledger):
    ledger.hold([0], "b", 7.0, 7.1)
    ledger.hold([0], "a", 1.5, 7.6)  # an answer that was on its way for more than a session
    assert ledger.holders == {0: "b"}
    with pytest.raises(AssertionError, match="b still holds 0, and a was given it"):
        ledger.hold([0], "a", 7.2, 7.7)
