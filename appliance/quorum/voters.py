"""Who elects, as the log of the quorum says it (KIP-853): each of its records that names voters
holds from where it stands, agreed or not, and no longer than it stands there.

A voter is a node with one log: whoever comes back with another folder is another voter, though its
number is the same.
"""

from typing import Final, NamedTuple

ANY: Final = bytes(16)
"""Directory id of a voter of which only the number is known: that of a static quorum."""
STATIC: Final = 0
DYNAMIC: Final = 1
"""Levels of kraft.version: voters are those of the settings, or those of the log."""


class Endpoint(NamedTuple):
    """A listener of controllers."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """directory: the id of the folder that has its log. lowest, highest: levels of kraft.version
    that it can follow."""

    node_id: int
    directory: bytes = ANY
    endpoints: tuple[Endpoint, ...] = ()
    lowest: int = STATIC
    highest: int = DYNAMIC


class Electorate(NamedTuple):
    """The voters, by ascending numbers, and the kraft.version that they came by."""

    kraft_version: int = STATIC
    voters: tuple[Voter, ...] = ()

    @property
    def keys(self) -> dict[int, bytes]:
        """Number → directory id."""
        return {one.node_id: one.directory for one in self.voters}

    def find(self, node_id: int) -> Voter | None:
        """The voter of this number."""
        return next((one for one in self.voters if one.node_id == node_id), None)

    def put(self, voter: Voter) -> "Electorate":
        """With this one, in the place of whoever had its number."""
        others = [one for one in self.voters if one.node_id != voter.node_id]
        return self._replace(voters=tuple(sorted([*others, voter])))

    def without(self, node_id: int) -> "Electorate":
        """The others."""
        return self._replace(voters=tuple(one for one in self.voters if one.node_id != node_id))


class History:
    """What the log says, in the order in which it does. Invariant: one that is older than all that
    may still be truncated is at its beginning."""

    __slots__ = ("_said",)

    def __init__(self, first: Electorate) -> None:
        """first: holds from the beginning of the log."""
        self._said = [(0, first)]

    @property
    def latest(self) -> Electorate:
        """What holds at the end of the log."""
        return self._said[-1][1]

    @property
    def oldest(self) -> Electorate:
        """What holds whatever is cut off."""
        return self._said[0][1]

    @property
    def end(self) -> int:
        """Behind the record that says so."""
        return self._said[-1][0]

    def at(self, offset: int) -> Electorate:
        """What holds when the log ends at `offset`."""
        return next(one for end, one in reversed(self._said) if end <= offset)

    def say(self, end: int, electorate: Electorate) -> None:
        """The log says so below `end`."""
        assert end >= self.end, (end, self.end)
        self._said.append((end, electorate))

    def truncate(self, offset: int) -> bool:
        """The log ends at `offset` now; whether that changes what holds."""
        before = self.latest
        while self.end > offset:
            self._said.pop()
        assert self._said, "what is agreed stays"
        return self.latest != before

    def agreed(self, offset: int) -> None:
        """What is below is not truncated any more."""
        while len(self._said) > 1 and self._said[1][0] <= offset:
            del self._said[0]
