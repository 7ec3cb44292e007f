"""The arithmetic of majorities."""

from collections.abc import Iterable


def needed(voters: int) -> int:
    """How many of so many voters are a majority."""
    assert voters > 0
    return voters // 2 + 1


def held_by_majority(held: Iterable[int]) -> int:
    """The largest offset that a majority has reached. held: what each of all voters has."""
    ends = sorted(held, reverse=True)
    return ends[needed(len(ends)) - 1]
