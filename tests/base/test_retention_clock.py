"""A clock that jumps ahead makes nothing old before the jump has lasted for an hour."""

from appliance.base.retention_clock import DOUBTED_NS, SLACK_MS, RetentionClock

SECOND_NS, YEARS_MS = 1_000_000_000, 315_360_000_000


def test_a_clock_that_goes_on_is_believed():
    time = RetentionClock()
    for second in range(10):
        assert time.at(second * SECOND_NS, 5_000 + second * 1_000) == 5_000 + second * 1_000
    assert time.at(10 * SECOND_NS, 15_000 + SLACK_MS) == 15_000 + SLACK_MS
    assert not time.jumped_ms


def test_a_jump_ahead_is_believed_when_it_has_lasted():
    time = RetentionClock()
    time.at(0, 5_000)
    assert time.at(SECOND_NS, YEARS_MS) == 6_000
    assert time.jumped_ms == YEARS_MS - 6_000
    assert time.at(2 * SECOND_NS, YEARS_MS + 1_000) == 7_000
    last = SECOND_NS + DOUBTED_NS
    assert time.at(last - 1, YEARS_MS + 2_000) < YEARS_MS
    assert time.at(last, YEARS_MS + 2_000) == YEARS_MS + 2_000
    assert time.at(last + 1, YEARS_MS + 2_001) == YEARS_MS + 2_001
    assert not time.jumped_ms


def test_a_jump_that_was_taken_back_is_forgotten():
    time = RetentionClock()
    time.at(0, 5_000)
    time.at(SECOND_NS, YEARS_MS)
    assert time.at(2 * SECOND_NS, 7_000) == 7_000
    assert not time.jumped_ms
    assert time.at(DOUBTED_NS, YEARS_MS) < YEARS_MS, "it is another jump"


def test_a_jump_back_is_believed_at_once():
    time = RetentionClock()
    time.at(0, YEARS_MS)
    assert time.at(1, 5_000) == 5_000
