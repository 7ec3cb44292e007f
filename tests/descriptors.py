"""Waiting for a descriptor, however large its number: `select` knows none above 1,023."""

import select


def readable(fd, seconds):
    """Whether there is something to read within so many seconds."""
    bell = select.poll()
    bell.register(fd, select.POLLIN)
    return bool(bell.poll(seconds * 1000))
