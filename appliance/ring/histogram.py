"""Latencies in fixed memory: how many fell into which bucket (log-linear, as HdrHistogram has it).

Below 32 µs a bucket is one µs wide; from there on each doubling has 32 buckets, so a bucket is at
most 1/32 of its lowest value wide, and its middle is at most 1.6 % (or half a µs) from any value in
it. What takes longer than 134 s is counted in the last one. A histogram is a sequence of BUCKETS
counts; two are added, or subtracted, bucket by bucket. A coarse one has 4 buckets for each
doubling, and their middles are at most 12.5 % from any value.
"""

from collections.abc import Sequence
from typing import Final

EXACT: Final = 32
"""Buckets of one µs each, and buckets for each doubling."""
_DOUBLINGS: Final = 22
LONGEST_US: Final = EXACT << _DOUBLINGS
"""From here on everything is in the last bucket."""
BUCKETS: Final = EXACT * (1 + _DOUBLINGS)
COARSE: Final = 4
"""Of a coarse histogram: buckets of one µs each, and buckets for each doubling."""
COARSE_BUCKETS: Final = COARSE * (1 + _DOUBLINGS + 3)


def bucket_of(us: int) -> int:
    """The bucket of a duration in whole µs."""
    if us < EXACT:
        return max(us, 0)
    if us >= LONGEST_US:
        return BUCKETS - 1
    shift = us.bit_length() - EXACT.bit_length()
    return shift * EXACT + (us >> shift)


def coarse_bucket_of(us: int) -> int:
    """The bucket of a duration in whole µs in a coarse histogram."""
    if us < COARSE:
        return max(us, 0)
    if us >= LONGEST_US:
        return COARSE_BUCKETS - 1
    shift = us.bit_length() - COARSE.bit_length()
    return shift * COARSE + (us >> shift)


def bounds(bucket: int, exact: int = EXACT) -> tuple[int, int]:
    """(lowest µs in the bucket, lowest µs above it). exact: EXACT or COARSE."""
    if bucket < exact:
        return bucket, bucket + 1
    shift = bucket // exact - 1
    low = bucket - shift * exact << shift
    return low, low + (1 << shift)


def percentile_us(counts: Sequence[int], share: float, exact: int = EXACT) -> float:
    """The duration that `share` (0 to 1) of those counted did not exceed: the middle of its bucket,
    in µs; 0.0 when nothing was counted. exact: EXACT or COARSE."""
    total = sum(counts)
    wanted = max(1, -int(-share * total // 1))  # nearest rank, rounded up
    seen = 0
    for bucket, count in enumerate(counts):
        seen += count
        if count and seen >= wanted:
            low, above = bounds(bucket, exact)
            return (low + above) / 2
    return 0.0


assert bucket_of(LONGEST_US - 1) == BUCKETS - 1 and bounds(BUCKETS - 1)[1] == LONGEST_US
assert coarse_bucket_of(LONGEST_US - 1) == COARSE_BUCKETS - 1
assert bounds(COARSE_BUCKETS - 1, COARSE)[1] == LONGEST_US
