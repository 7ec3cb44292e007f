"""Which partitions this I/O process fetches from which leader, and the turn in which it does.

`Leaders` is told by the core what becomes of partitions, on whatever thread opens them, and only
notes it; `Pulling` does the work of a turn. Invariant: a partition is fetched from the leader of
its newest epoch alone, and from nobody while it leads, has failed, or nobody leads it. Nothing is
done while there are no followers here.
"""

from collections.abc import Callable
from time import monotonic_ns
from typing import Final

from appliance.ioproc.partition import Partition
from appliance.ioproc.pulling.env import Env
from appliance.ioproc.pulling.leader import Leader
from appliance.ioproc.pulling.parting import Parting
from appliance.replication.follower import NEVER

TAKE_NS: Final = 500_000
"""For what came in one turn, beside a piece of each leader's: what is led here does not wait."""


class Leaders:
    """An observer of partitions (`observing.py`). changed: the partitions whose leader may be
    another since the last turn."""

    __slots__ = ("changed",)

    def __init__(self) -> None:
        self.changed: dict[Partition, None] = {}

    def opened(self, partition: Partition) -> None:
        """Who leads it comes next."""

    def leads(self, partition: Partition) -> None:
        """This node: it fetches from nobody."""
        if partition.role.replicas:
            self.changed[partition] = None

    def follows(self, partition: Partition) -> None:
        """Another node, in a new epoch."""
        self.changed[partition] = None

    def no_room(self, partition: Partition, *, lost: bool) -> None:
        """Said of what is produced here."""

    def closed(self, partition: Partition) -> None:
        """It is not fetched any more."""
        self.changed[partition] = None


class Pulling:
    """told: whose leader may be another. leaders: who is fetched from, by node id. Without either
    `turn` has nothing to do."""

    def __init__(
        self,
        told: Leaders,
        env: Env,
        parting: Parting,
        serves: Callable[[Partition], bool],
    ) -> None:
        """serves: whether a partition is served here still."""
        self.told = told.changed
        self._env = env
        self._parting = parting
        self._serves = serves
        self.leaders: dict[int, Leader] = {}
        self._where: dict[Partition, Leader] = {}

    def turn(self, now_ns: int, now_ms: int) -> int:
        """Go on with everybody, behind `Core.finish`: syncs that ended count at once. In how many
        ms at most to come again, 0 when there is something for `finish`, NEVER: when something
        happens."""
        if self.told:
            self._follow_leaders()
        due = self._parting.go_on(now_ns, now_ms) if self._env.parted else NEVER
        self._env.until_ns = monotonic_ns() + TAKE_NS
        for leader in list(self.leaders.values()):
            due = min(due, leader.turn(now_ns, now_ms))
        return due

    def close(self) -> None:
        """Hang up."""
        for leader in self.leaders.values():
            leader.close()

    def _follow_leaders(self) -> None:
        for partition in self.told:
            key = partition.topic_id, partition.index
            before = self._where.pop(partition, None)
            if before is not None:
                before.drop(key)
            self._env.parted.pop(partition, None)
            node = partition.role.leader
            if partition.leads or partition.broken is not None or node < 0:
                continue
            if self._serves(partition):
                leader = self.leaders.get(node)
                if leader is None:
                    leader = self.leaders[node] = Leader(node, self._env)
                self._where[partition] = leader
                leader.add(key, partition)
        self.told.clear()
        for node, leader in list(self.leaders.items()):
            if not leader.partitions:
                del self.leaders[node]
                leader.close()
