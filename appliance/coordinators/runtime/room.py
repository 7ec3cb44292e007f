"""How much the coordinators of one kind may keep in one process, because clients choose names.

A thing that is kept already is never refused; what is loaded is kept, whatever the bound.
Callers: the kinds, before a decision keeps one more.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from appliance.config.broker import BrokerConfig

_UNBOUNDED: Final = 1 << 62


class CountedShard(Protocol):
    """The part of a shard that is looked at."""

    def size(self) -> int:
        """How many things it keeps."""

    def held_bytes(self) -> int:
        """Bytes that clients have said and that it keeps in memory."""


class Seated(Protocol):
    """Has a shard."""

    @property
    def shard(self) -> CountedShard:
        """Its shard."""


Beside = Callable[[], Iterable[Seated]]
"""Gives all shards of the kind in this process."""


def share_of(config: BrokerConfig, setting: str, processes: int) -> int:
    """The part that one of so many processes has in a setting of the node."""
    return max(1, config.int(setting) // processes)


class ShardRoom:
    """most: things. most_bytes: that clients have said. beside: the shards that share it."""

    def __init__(
        self,
        most: int = _UNBOUNDED,
        most_bytes: int = _UNBOUNDED,
        beside: Beside = tuple,
    ) -> None:
        self.most, self.most_bytes = most, most_bytes
        self._beside = beside

    def is_full(self) -> bool:
        """True if one more thing is too many."""
        return sum(one.shard.size() for one in self._beside()) >= self.most

    def lacks(self, more: int) -> bool:
        """True if there is no room for so many bytes more."""
        if more <= 0:
            return False
        return sum(one.shard.held_bytes() for one in self._beside()) + more > self.most_bytes
