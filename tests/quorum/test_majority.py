"""Majorities, beside a twin that tries every offset."""

from hypothesis import given
from hypothesis import strategies as st

from appliance.quorum.majority import held_by_majority, needed


@given(st.lists(st.integers(-1, 9), min_size=1, max_size=9))
def test_the_largest_offset_that_more_than_half_have(held):
    twin = max(at for at in range(-1, 10) if 2 * sum(one >= at for one in held) > len(held))
    assert held_by_majority(held) == twin


@given(st.integers(1, 99))
def test_two_majorities_share_a_voter(voters):
    assert 2 * needed(voters) > voters
    assert 2 * (needed(voters) - 1) <= voters
