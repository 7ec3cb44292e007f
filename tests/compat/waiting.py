"""Waiting for what a broker may do a moment after it has answered.

Kafka answers an admin request before every part of the broker has heard of it.
"""

import time


def until(check, limit_s=60.0):
    """Call `check` until it holds; its last failure is raised when it does not within limit_s."""
    end = time.monotonic() + limit_s
    while True:
        try:
            assert check() is not False
            return
        except AssertionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
