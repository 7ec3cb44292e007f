"""A build is slower than the one before when the change is beyond the noise of the same run."""

import random

import pytest

from benchmarks.losses import FLOOR, Round, judge


def rounds(factor, noise, count=8, seed=0):
    """What a build `factor` times the old one shows, with this deviation of each measurement."""
    chance = random.Random(seed)
    return [
        Round(*(1000 * of * chance.lognormvariate(0, noise) for of in (factor, 1, 1)))
        for _ in range(count)
    ]


def test_on_a_quiet_machine_a_twentieth_is_a_loss_and_a_fiftieth_is_not():
    assert judge(rounds(0.95, 0.002), more_is_better=True).word == "loss"
    assert judge(rounds(0.98, 0.002), more_is_better=True).word == "same"


def test_where_less_is_better_a_smaller_figure_is_the_gain():
    assert judge(rounds(0.9, 0.002), more_is_better=False).word == "gain"
    assert judge(rounds(1.1, 0.002), more_is_better=False).word == "loss"


def test_what_the_noise_hides_is_neither():
    verdict = judge(rounds(0.95, 0.2), more_is_better=True)
    assert verdict.word == "same"
    assert verdict.limit > 0.05


def test_the_same_build_is_seldom_called_slower():
    words = [judge(rounds(1, 0.1, seed=seed), more_is_better=True).word for seed in range(300)]
    assert words.count("loss") + words.count("gain") <= 15


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_a_loss_of_a_third_is_always_seen(noise):
    words = {judge(rounds(0.67, noise, seed=seed), more_is_better=True).word for seed in range(99)}
    assert words == {"loss"}


def test_one_disturbed_round_decides_nothing():
    some = rounds(1, 0.002)
    some[3] = Round(300, 1000, 1000)
    verdict = judge(some, more_is_better=True)
    assert (verdict.word, verdict.limit) == ("same", FLOOR)
