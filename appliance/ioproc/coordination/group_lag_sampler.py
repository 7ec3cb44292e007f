"""How far groups are behind, their states and members: every few seconds, out of what their
coordinators keep here and the table of partitions, into the table that observers read
(`ring/lag_table.py`).

Nobody is asked. A round is done in slices, so it is not of one moment: each topic of a group is.
Called with the chores.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nlargest
from time import monotonic_ns
from typing import Any, Final

from appliance.coordinators.groups.records import OffsetCommitValue
from appliance.coordinators.groups.shard import GroupShard
from appliance.coordinators.runtime.shard import ACTIVE, Shard
from appliance.metadata.follower import Follower
from appliance.ring.lag_table import ROWS, GroupTotals, Lag, LagTable, Members
from appliance.ring.partition_table import HIGH_WATERMARK, LOG_START, PartitionTable

SLICE_NS: Final = 500_000
_EVERY_NS: Final = 5_000_000_000
_SOON_NS: Final = 500_000_000
"""While there is no group: the first one is told soon."""
_REST: Final = 400
"""Times as long as a round took: with very many groups it is a quarter of a percent of a core."""
_AT_ONCE: Final = 50  # partitions between two looks at the clock


class GroupLagSampler:
    """region: where in `table` this process writes. shards: those that are led here."""

    def __init__(
        self,
        table: LagTable,
        region: int,
        partitions: PartitionTable,
        follower: Follower,
        shards: Callable[[], Iterable[Shard[Any]]],
    ) -> None:
        self._table = table
        self._region = region
        self._partitions = partitions
        self._follower = follower
        self._shards = shards
        self._round: Iterator[None] | None = None
        self._took_ns = 0
        self._due_ns = 0
        self._found = False

    def sample_slice(self, now_ns: int) -> bool:
        """A slice, when it is time; False when there is more of it at once."""
        if self._round is None:
            if now_ns < self._due_ns:
                return True
            self._round = self._look()
            self._took_ns = 0
        began = monotonic_ns()
        over = True
        for _ in self._round:
            if monotonic_ns() >= began + SLICE_NS:
                over = False
                break
        self._took_ns += monotonic_ns() - began
        if over:
            self._round = None
            rest_ns = _EVERY_NS if self._found else _SOON_NS
            self._due_ns = now_ns + max(rest_ns, self._took_ns * _REST)
        return over

    def _look(self) -> Iterator[None]:
        """The whole round, in pieces."""
        found: list[Lag] = []
        states: Counter[str] = Counter()
        members: list[Members] = []
        seen = 0
        for shard in list(self._shards()):
            if not isinstance(shard, GroupShard):
                continue
            for one in list(shard.state.groups.values()):
                if shard.phase != ACTIVE:
                    break
                states[one.state_name] += 1
                if not one.is_empty():
                    members.append(Members(one.size(), one.group_id))
                seen += 1 + one.size()
                if seen >= _AT_ONCE:
                    seen = 0
                    yield
            offsets = shard.state.offsets
            for group in list(offsets.by_group):
                if shard.phase != ACTIVE:
                    break
                for topic, committed in list(offsets.topics(group).items()):
                    sums = self._sums(topic, committed)
                    if sums is not None:
                        found.append(Lag(sums[0], group, topic, sums[1]))
                    seen += len(committed)
                    if seen >= _AT_ONCE:
                        seen = 0
                        yield
        self._found = bool(found or states)
        kept = found if len(found) <= ROWS else nlargest(ROWS, found)
        most = members if len(members) <= ROWS else nlargest(ROWS, members)
        groups = GroupTotals(states, most, len(members) - len(most))
        self._table.write_lags(self._region, kept, len(found) - len(kept), groups)

    def _sums(
        self, name: str, committed: Mapping[int, OffsetCommitValue]
    ) -> tuple[int, int] | None:
        """(records behind, offsets) of all partitions that have a commit; None for a topic that is
        no more."""
        topic = self._follower.image.topics_by_name.get(name)
        if topic is None:
            return None
        table, rows = self._partitions, self._follower.handles
        behind = offsets = 0
        for partition, value in committed.items():
            handle = rows.get((topic.topic_id, partition))
            if handle is not None:
                first = max(value.offset, table.read_column(handle, LOG_START))
                behind += max(table.read_column(handle, HIGH_WATERMARK) - first, 0)
                offsets += value.offset
        return behind, offsets
