"""The voters by the quorum's log (KIP-853): each record that names voters holds from its own
offset, committed or not, for as long as it is in the log.

A voter is a node with one log: whoever comes back with another folder is another voter, though its
number is the same.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

ANY: Final = bytes(16)
"""Directory id of a voter of which only the number is known: that of a static quorum."""
STATIC: Final = 0
DYNAMIC: Final = 1
"""Levels of kraft.version: voters are those of the settings, or those of the log."""


class ControllerEndpoint(NamedTuple):
    """A listener of controllers."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """directory: the id of the folder that has its log. lowest, highest: levels of kraft.version
    that it can follow."""

    node_id: int
    directory: bytes = ANY
    endpoints: tuple[ControllerEndpoint, ...] = ()
    lowest: int = STATIC
    highest: int = DYNAMIC


def place_of(endpoints: Sequence[ControllerEndpoint], listener: str) -> tuple[str, int] | None:
    """(host, port) of the endpoint of this listener; of the only one where names differ."""
    for one in endpoints:
        if one.name == listener or len(endpoints) == 1:
            return one.host, one.port
    return None


class Electorate(NamedTuple):
    """The voters, by ascending numbers, and the kraft.version that they came by."""

    kraft_version: int = STATIC
    voters: tuple[Voter, ...] = ()

    @property
    def keys(self) -> dict[int, bytes]:
        """Number → directory id."""
        return {one.node_id: one.directory for one in self.voters}

    def find_voter(self, node_id: int) -> Voter | None:
        """The voter of this number."""
        return next((one for one in self.voters if one.node_id == node_id), None)

    def with_voter(self, voter: Voter) -> "Electorate":
        """With this one, in the place of whoever had its number."""
        others = [one for one in self.voters if one.node_id != voter.node_id]
        return self._replace(voters=tuple(sorted([*others, voter])))

    def without(self, node_id: int) -> "Electorate":
        """The others."""
        return self._replace(voters=tuple(one for one in self.voters if one.node_id != node_id))


class History:
    """The voter sets of the log, in its order. Invariant: the first one lies below all that may
    still be truncated.
    """

    __slots__ = ("_said",)

    def __init__(self, first: Electorate) -> None:
        """first: holds from the beginning of the log."""
        self._said = [(0, first)]

    @property
    def latest(self) -> Electorate:
        """The voters at the end of the log."""
        return self._said[-1][1]

    @property
    def oldest(self) -> Electorate:
        """The voters that no truncation can change."""
        return self._said[0][1]

    @property
    def latest_end(self) -> int:
        """Behind the record that says so."""
        return self._said[-1][0]

    def at(self, offset: int) -> Electorate:
        """The voters when the log ends at `offset`."""
        return next(one for end, one in reversed(self._said) if end <= offset)

    def add_electorate(self, end: int, electorate: Electorate) -> None:
        """The log says so below `end`."""
        assert end >= self.latest_end, (end, self.latest_end)
        self._said.append((end, electorate))

    def truncate(self, offset: int) -> bool:
        """The log ends at `offset` now; whether that changes what holds."""
        before = self.latest
        while self.latest_end > offset:
            self._said.pop()
        assert self._said, "what is agreed stays"
        return self.latest != before

    def agreed(self, offset: int) -> None:
        """Drops history below `offset`, which cannot be truncated any more."""
        while len(self._said) > 1 and self._said[1][0] <= offset:
            del self._said[0]
