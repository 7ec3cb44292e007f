"""How many more replicas the nodes of a cluster have rows for: each has a partition table of its
own, and tells when it registers how large that is.

It tells it as the name of a feature that is none, from 0 to 0, because a level has 16 bits only:
Apache Kafka's controllers and brokers take it for a feature that nobody uses. A node that tells
nothing, as Apache Kafka's do, has no limit.

Invariant: what was decided in a turn counts, so the topics of one request do not share a row.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import BrokerImage

MOST: Final = "penstock.partitions.max"
"""The setting that says how many rows a node has."""
_FEATURE: Final = f"{MOST}="
_DIGITS: Final = 7  # of the largest that the setting takes


def feature(rows: int) -> str:
    """The name of the feature by which a node says how many rows it has."""
    return f"{_FEATURE}{rows}"


def _limit(broker: BrokerImage) -> int | None:
    """How many rows the node has, None: it has not said so."""
    told = [one.name[len(_FEATURE) :] for one in broker.features if one.name.startswith(_FEATURE)]
    number = told[0] if told else ""
    usable = number.isascii() and number.isdecimal() and len(number) <= _DIGITS
    return int(number) if usable else None


class NodeRows:
    """Made anew for each request. free: rows that are left in this node's own table, which knows
    what is not let go of yet. refused: why the last refusal was, "" before there is one."""

    __slots__ = ("_free", "_held", "_image", "_limits", "_me", "_partitions", "_taken", "refused")

    def __init__(self, image: MetadataImage, me: int, free: int) -> None:
        self._image, self._me, self._free = image, me, free
        self.refused = ""
        told = {number: _limit(broker) for number, broker in image.brokers.items()}
        self._limits = {number: limit for number, limit in told.items() if limit is not None}
        self._partitions = sum(len(topic.partitions) for topic in image.topics_by_name.values())
        self._taken: Counter[int] = Counter()
        self._held: Counter[int] | None = None

    def left(self, count: int) -> dict[int, int]:
        """Node → rows that are left, below 0 where it lacks some; nodes without a limit are not
        named, and nobody is where `count` partitions more cannot fill any: then nothing is
        counted."""
        if self._held is None and not self._may_fill(count):
            return {}
        if self._held is None:
            self._held = _held(self._image)
        held, taken = self._held, self._taken
        left = {one: limit - held[one] - taken[one] for one, limit in self._limits.items()}
        if self._me in left:
            left[self._me] = min(left[self._me], self._free - taken[self._me])
        return left

    def _may_fill(self, count: int) -> bool:
        """True if a node could run out of rows: no node has two replicas of one partition."""
        if not self._limits:
            return False
        if self._me in self._limits and count > self._free - self._taken[self._me]:
            return True
        return self._partitions + count > min(self._limits.values())

    def check(self, placed: Sequence[Sequence[int]]) -> None:
        """That every node has a row for each new replica of these partitions. Raises PeerError."""
        left = self.left(len(placed))
        wanted = Counter(one for replicas in placed for one in replicas)
        full = [one for one, count in wanted.items() if one in left and count > left[one]]
        if full:
            raise self.refusal(full, len(placed))

    def refusal(self, full: Iterable[int], count: int) -> PeerError:
        """Returns the refusal of `count` partitions for which these nodes have too few rows."""
        left = self.left(count)
        named = [
            f"node {one} for {max(left[one], 0)} more ({MOST}={self._limits[one]})"
            for one in sorted(full)
        ]
        return self.refuse(
            f"{count} partition(s) do not fit: there is room on {', on '.join(named)}. Ask for"
            f" fewer partitions or replicas, name other nodes, delete topics, or raise {MOST} on"
            " the nodes named and restart them."
        )

    def refuse(self, why: str) -> PeerError:
        """Returns a refusal for lack of rows, and keeps `why` for the log."""
        self.refused = why
        return PeerError(errors.INVALID_PARTITIONS, why)

    def count_replicas(self, placed: Iterable[Sequence[int]]) -> None:
        """These new replicas of partitions are decided."""
        for replicas in placed:
            self._taken.update(replicas)
            self._partitions += 1


def _held(image: MetadataImage) -> Counter[int]:
    held: Counter[int] = Counter()
    for topic in image.topics_by_name.values():
        for partition in topic.partitions:
            held.update(partition.replicas)
    return held
