"""A test's appliance has a wall clock that is ahead by what a file says."""

from datetime import timedelta

import pytest

from appliance.base import clock
from appliance.base.clock import OsClock, TurnedClock, clock_here
from appliance.base.retention_clock import RetentionClock
from penstock import turned_clock

WEEK = timedelta(days=7)
WEEK_MS = 7 * 86_400_000


def test_both_sides_call_it_the_same():
    assert turned_clock.VARIABLE == clock.VARIABLE


def test_without_its_name_in_the_environment_there_is_none(monkeypatch):
    monkeypatch.delenv(clock.VARIABLE, raising=False)
    assert type(clock_here()) is OsClock and not clock_here().is_turned


def test_who_has_it_open_sees_it_go_ahead(tmp_path, monkeypatch):
    turned = turned_clock.TurnedClock(tmp_path / "data")
    for name, value in turned.environment().items():
        monkeypatch.setenv(name, value)
    here = clock_here()
    assert here.is_turned
    assert 0 <= here.wall_ms() - OsClock().wall_ms() < WEEK_MS
    turned.advance(WEEK)
    assert WEEK_MS <= here.wall_ms() - OsClock().wall_ms() < 2 * WEEK_MS
    turned_clock.TurnedClock(tmp_path / "data").advance(WEEK)  # of the appliance, restarted
    assert 2 * WEEK_MS <= here.wall_ms() - OsClock().wall_ms() < 3 * WEEK_MS
    assert abs(here.monotonic_ns() - OsClock().monotonic_ns()) < WEEK_MS * 1_000_000


@pytest.mark.parametrize("by", [timedelta(seconds=-1), timedelta(days=36_526)])
def test_it_goes_neither_back_nor_further_than_a_century(tmp_path, by):
    turned = turned_clock.TurnedClock(tmp_path / "data")
    turned.advance(WEEK)
    with pytest.raises(ValueError, match="a clock goes ahead, and a century at most"):
        turned.advance(by)
    assert TurnedClock(str(tmp_path / "data.clock")).wall_ms() < OsClock().wall_ms() + 2 * WEEK_MS


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "short").write_bytes(b"soon")
    with pytest.raises(ValueError, match=r"PENSTOCK_TEST_CLOCK=.*short is no file of 8 bytes"):
        TurnedClock(str(tmp_path / "short"))


def test_its_jumps_are_believed():
    time = RetentionClock(doubts=False)
    assert time.at(0, 1_000) == 1_000
    assert time.at(1_000_000_000, 2_000 + WEEK_MS) == 2_000 + WEEK_MS
    assert not time.jumped_ms
