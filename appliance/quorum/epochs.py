"""Bounds on epochs, which only rise and have 31 bits on the wire and on the disk: a quorum at the
last one elects nobody any more.

An election takes one epoch. A replica that was away learns the epoch of the others from their
answers, so a request that is far ahead of the replica it reaches comes from no sound node. Apache
Kafka takes any epoch from a request.
"""

from typing import Final

LAST: Final = (1 << 31) - 2
"""The last epoch that anybody leads, votes in, or writes."""
MOST_AHEAD: Final = 1_000
"""Epochs by which requests move a replica on within `WINDOW_MS`: at that pace the last epoch is
four years away."""
WINDOW_MS: Final = 60_000


def is_out_of_reach(epoch: int, own: int) -> bool:
    """Returns whether a replica in epoch `own` believes no answer that names this one: it is behind
    the last, or far ahead in the half that a sound quorum does not come to. A replica that believed
    it would elect nobody any more, nor be heard."""
    return epoch > LAST or (epoch > LAST >> 1 and epoch - own > MOST_AHEAD)


class EpochBudget:
    """The epochs that requests may still move one replica on in this window."""

    __slots__ = ("_left", "_until_ms")

    def __init__(self) -> None:
        self._left, self._until_ms = MOST_AHEAD, 0

    def covers(self, ahead: int, now_ms: int) -> bool:
        """Returns whether a request may move the replica on by so many epochs now."""
        if now_ms >= self._until_ms:
            self._left, self._until_ms = MOST_AHEAD, now_ms + WINDOW_MS
        return ahead <= self._left

    def spend(self, ahead: int) -> None:
        """Counts epochs that a request has moved the replica on."""
        assert 0 < ahead <= self._left, f"{ahead} epochs at once, of {self._left}"
        self._left -= ahead
