"""Which time a restore takes instead of the one that was asked for."""

from appliance.coordinators.transactions.states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from console.model.backup.quiet import FARTHEST_MS, Step, time_before


def story(*spans, name="t"):
    """One transaction after the other, decided and completed then."""
    for begin, end in spans:
        yield Step(begin - 1, name, 7, ONGOING)
        yield Step(begin, name, 7, PREPARE_COMMIT)
        yield Step(end, name, 7, COMPLETE_COMMIT)


def test_a_time_without_a_decision_near_stays():
    assert time_before(50_000, story()) == 50_000
    assert time_before(50_000, story((49_000, 49_900), (50_100, 50_200))) == 50_000


def test_within_a_decision_it_is_before_it_by_the_best_margin_that_there_is():
    assert time_before(50_000, story((49_995, 50_010))) == 49_995 - 51
    assert time_before(50_000, story((49_990, 49_999))) == 49_990 - 51
    busy = [(begin, begin + 5) for begin in range(30_000, 60_000, 20)]
    at = time_before(50_003, story(*busy))
    assert at == 50_000 - 6, "50 and 20 ms are nowhere to be had, 5 ms are"
    for begin, end in busy:
        assert not begin - 5 <= at <= end + 5


def test_several_ids_overlap_and_an_abort_is_a_decision_too():
    one, other = story((49_000, 50_500)), story((48_000, 49_100), name="u")
    assert time_before(50_000, [*one, *other]) == 48_000 - 51
    steps = [Step(49_999, "t", 7, PREPARE_ABORT), Step(50_001, "t", 7, COMPLETE_ABORT)]
    assert time_before(50_000, steps) == 49_999 - 51


def test_what_is_never_completed_is_not_passed():
    assert time_before(50_000, [Step(49_000, "t", 7, PREPARE_COMMIT)]) == 49_000 - 51
    assert time_before(50_000, [Step(50_500, "t", 7, PREPARE_COMMIT)]) == 50_000


def test_without_a_time_near_it_is_the_one_that_was_asked_for():
    busy = [(begin, begin + 1) for begin in range(50_100 - 2 * FARTHEST_MS, 50_100)]
    assert time_before(50_000, story(*busy)) == 50_000
