"""Times of flags, as the house writes them."""

import click
import pytest

from console.flags.units import Seconds, in_words


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [
        *(("20", 20.0), ("0.5", 0.5), ("20s", 20.0), ("500ms", 0.5), ("1h30m", 5400.0)),
        *((" 2m ", 120.0), ("1d", 86_400.0), ("250us", 0.00025), (7, 7.0)),
    ],
)
def test_a_time_is_seconds_or_has_units(typed, seconds):
    assert Seconds(0).convert(typed, None, None) == seconds


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        *(("soon", "is no time: say for example 20s"), ("", "is no time"), ("nan", "is no time")),
        *(("inf", "is no time"), ("1.5h", "is no time"), ("5M", "say 5m for minutes")),
        *(("50ms", "not at least 100ms and at most 1h"), ("2h", "at most 1h")),
    ],
)
def test_what_is_none_is_told_with_what_would_be(typed, told):
    with pytest.raises(click.BadParameter, match=told):
        Seconds(0.1, 3600).convert(typed, None, None)


def test_words():
    assert [in_words(one) for one in (0, 0.1, 1, 90, 120, 3600, 86_400)] == [
        *("0s", "100ms", "1s", "90s", "2m", "1h", "1d"),
    ]


def test_commands_take_them(run):
    run("wait", "--timeout", "500ms", "--data", "nowhere", code=3)
    run("topic", "list", "--timeout", "20s")
    told = run("topic", "list", "--timeout", "20 s", code=2).stderr
    assert "--timeout" in told and "'20 s' is no time" in told
