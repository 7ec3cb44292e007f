"""Curves of cost: their exponents, and what a report says of them."""

import math

import pytest

from benchmarks import curves
from benchmarks.curves import Point, exponent, report


@pytest.mark.parametrize(
    ("values", "slope"),
    [([5, 5, 5], 0), ([1, 10, 100], 1), ([3, 300, 30_000], 2), ([100, 10, 1], -1)],
)
def test_the_exponent_is_the_power_by_which_a_cost_grows(values, slope):
    assert exponent([10, 100, 1000], values) == pytest.approx(slope)


def test_one_point_and_a_cost_of_nothing_have_none():
    assert math.isnan(exponent([10], [5]))
    assert math.isnan(exponent([10, 100], [0, 5]))


def test_a_report_has_each_point_and_leaves_out_what_failed():
    found = {
        ("groups", 10, "penstock"): [Point(1000, math.nan, 20, 50_000_000)] * 3,
        ("groups", 100, "penstock"): [Point(900, math.nan, 200, 60_000_000)],
        ("groups", 100, "kafka"): [Point(700, math.nan, 90, 500_000_000)],
    }
    lines = report(found, markdown=True).splitlines()
    assert lines[2] == "| groups | 10 | 1,000 | – | – | – | 20.0 | – | 50.0 | – |"
    assert lines[3] == "| groups | 100 | 900 | 700 | – | – | 200 | 90.0 | 60.0 | 500 |"
    assert lines[4] == "| groups | exponent |  |  |  |  | 1.00 | nan | 0.08 | nan |"


def test_every_point_is_one_that_the_load_can_take():
    for curve in curves.CURVES.values():
        assert list(curve.points + curve.more) == sorted(set(curve.points + curve.more))
    assert max(curves.CURVES["sizes"].points) < 1 << 20, "message.max.bytes"
