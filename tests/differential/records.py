"""Record batches for scripts: the same bytes for both brokers."""

import time

from benchmarks import batches

NOW_MS = int(time.time() * 1000)
"""One time for all records of a run."""


def batch(*values, timestamp=NOW_MS, **rest):
    """A valid batch of these values; the rest as `benchmarks.batches.batch` takes it."""
    return batches.batch(values, timestamp, **rest)


def spoiled(data, at=20):
    """The same bytes with one of them changed, by default one of the checksum's."""
    changed = bytearray(data)
    changed[at] ^= 0xFF
    return bytes(changed)
