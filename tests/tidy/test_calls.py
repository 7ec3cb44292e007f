"""What a request costs in calls may not rise: a slower structure is seen without a clock.

Whoever needs more calls for something new raises a number here, and says in the commit what it
buys; whoever needs fewer lowers it. `python -m benchmarks.calls --list` tells where they are.
"""

from collections import Counter

import pytest

from appliance.base.clock import OsClock
from appliance.ring.histogram import bucket_of
from benchmarks import calls
from benchmarks.calls import Count, row_of

MOST = {  # netproc in, I/O, netproc out
    "produce, acks=all, idempotent": (25, 55, 20),
    "produce, acks=1": (25, 39, 20),
    "fetch via the home": (33, 22, 39),
    "fetch by cursor": (52, 0, 0),
    "OffsetCommit of one group": (34, 123, 20),
    "OffsetFetch": (48, 77, 20),
    "Metadata of one topic": (121, 0, 0),
    "ApiVersions": (32, 0, 0),
    "a transaction of one record": (104, 564, 63),
}
TRIES = 6  # a background sync in every sample of one request, and it costs a few calls more


def parts(count):
    row = row_of(count)
    return row.net_in, row.io, row.net_out


def too_many(counts):
    return {
        name: {"counted": parts(count), "most": MOST[name]}
        for name, count in counts.items()
        if any(here > most for here, most in zip(parts(count), MOST[name], strict=True))
    }


@pytest.mark.interpreted("calls of compiled functions are not seen")
def test_no_request_takes_more_calls_than_it_did():
    assert set(MOST) == set(calls.REQUESTS)
    over = dict.fromkeys(MOST)
    for _ in range(TRIES):
        over = too_many(calls.measure(over))
        if not over:
            return
    raise AssertionError(over)


@pytest.mark.interpreted("calls of compiled functions are not seen")
def test_calls_are_those_of_our_files_from_the_first_named_one_on():
    clock, found = OsClock(), Counter()
    with calls.counting(found, first="wall_ms"):
        bucket_of(5)
        clock.wall_ms()
        bucket_of(5)
        parts(Count({part: Counter() for part in calls.PARTS}))
    clock.wall_ms()
    assert found == {
        ("base/clock.py", "OsClock.wall_ms"): 1,
        ("ring/histogram.py", "bucket_of"): 1,
    }


def test_a_row_adds_up():
    one, two = ("a.py", "f"), ("b.py", "g")
    found = Count({calls.IN: Counter({one: 3}), calls.IO: Counter({one: 1, two: 2}),
                   calls.OUT: Counter()}, hops=2, idle=4)  # fmt: skip
    assert row_of(found) == (6, 3, 3, 0, 2, 2, 2, 2)
