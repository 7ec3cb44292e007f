"""Which partitions this I/O process fetches from which leader, and the turn in which it does.

`LeaderChanges` notes which partitions change, on whatever thread opens them, and `ReplicaFetchers`
does the work of a turn. Invariant: a partition is fetched from the leader of its newest epoch
alone, in one of two conversations, and from nobody while it leads, has failed, or nobody leads it.
Nothing is done while there are no followers here.
"""

from collections.abc import Callable
from time import monotonic_ns
from typing import Final

from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.replica_fetcher.divergence import DivergenceTruncation
from appliance.ioproc.replica_fetcher.fetch_lanes import CatchUpLane, CaughtUpLane
from appliance.ioproc.replica_fetcher.fetcher_context import FetcherContext
from appliance.ioproc.replica_fetcher.leader_fetcher import AFTER_BUG_MS, LeaderFetcher
from appliance.replication.follower import NEVER

TAKE_NS: Final = 500_000
"""For what came in one turn, beside a piece of each leader's: what is led here does not wait."""


class LeaderChanges:
    """An observer of partitions (`partition_listener.py`). changed: the partitions whose leader may
    be another since the last turn."""

    __slots__ = ("changed",)

    def __init__(self) -> None:
        self.changed: dict[Partition, None] = {}

    def opened(self, partition: Partition) -> None:
        """Does nothing: the leader follows."""

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


class ReplicaFetchers:
    """told: whose leader may be another. leaders: who is fetched from, by node id. Without either
    `turn` has nothing to do. behind: the conversations with some of these about partitions that are
    far behind."""

    def __init__(
        self,
        told: LeaderChanges,
        env: FetcherContext,
        parting: DivergenceTruncation,
        serves: Callable[[Partition], bool],
        appended: Callable[[], int],
    ) -> None:
        """serves: whether a partition is served here still. appended: how many batches were written
        by others than leaders so far."""
        self.told = told.changed
        self._env = env
        self._parting = parting
        self._serves = serves
        self._appended = appended
        self._seen = 0
        self.leaders: dict[int, LeaderFetcher] = {}
        self.behind: dict[int, LeaderFetcher] = {}
        self._where: dict[Partition, LeaderFetcher] = {}

    def run_once(self, now_ns: int, now_ms: int) -> int:
        """Go on with everybody, behind `Core.finish`: syncs that ended count at once. In how many
        ms at most to come again, 0 when there is something for `finish`, NEVER: when something
        happens."""
        try:
            return self._go_on(now_ns, now_ms)
        except Exception as bug:
            self._env.report_bug("fetching from leaders", bug)
            return AFTER_BUG_MS

    def _go_on(self, now_ns: int, now_ms: int) -> int:
        if self.told:
            self._follow_leaders()
        due = self._parting.truncate_one(now_ns, now_ms) if self._env.parted else NEVER
        self._env.until_ns = monotonic_ns() + TAKE_NS
        for leader in list(self.leaders.values()):
            due = min(due, leader.run_once(now_ns, now_ms))
            if leader.moving:
                due = self._move(leader, self._behind(leader.node))
        if self.behind:
            due = min(due, self._go_on_behind(now_ns, now_ms))
        return due

    def _go_on_behind(self, now_ns: int, now_ms: int) -> int:
        appended, due = self._appended(), NEVER
        if appended != self._seen:
            self._seen = appended
            self._env.writing.on_record_written(now_ns)
        for node, leader in list(self.behind.items()):
            due = min(due, leader.run_once(now_ns, now_ms))
            if leader.moving:
                due = self._move(leader, self.leaders[node])
                self._close_idle(node)
        return due

    def close(self) -> None:
        """Hang up."""
        for leader in (*self.leaders.values(), *self.behind.values()):
            leader.close()

    def _behind(self, node: int) -> LeaderFetcher:
        leader = self.behind.get(node)
        if leader is None:
            leader = self.behind[node] = LeaderFetcher(
                node, self._env, CatchUpLane(self._env, self.behind)
            )
        return leader

    def _move(self, leader: LeaderFetcher, to: LeaderFetcher) -> int:
        """Some of its partitions are fetched in the other manner: when to come again."""
        moving, leader.moving = leader.moving, {}
        for key, partition in moving.items():
            try:
                assert self._where[partition] is leader, partition
                leader.drop(key)
                self._where[partition] = to
                to.add(key, partition)
            except Exception as bug:
                self._env.confine_bug("another manner of fetching", partition, bug)
        return 0

    def _close_idle(self, node: int) -> None:
        """Hang up where nothing is fetched any more."""
        behind = self.behind.get(node)
        if behind is not None and not behind.partitions:
            del self.behind[node]
            behind.close()
        leader = self.leaders.get(node)
        if leader is not None and not leader.partitions and node not in self.behind:
            del self.leaders[node]
            leader.close()

    def _follow_leaders(self) -> None:
        told = list(self.told)
        self.told.clear()
        for partition in told:
            try:
                self._follow_leader(partition)
            except Exception as bug:
                self._env.confine_bug("a leader", partition, bug)
        for node in list(self.leaders):
            self._close_idle(node)

    def _follow_leader(self, partition: Partition) -> None:
        key = partition.topic_id, partition.index
        before = self._where.pop(partition, None)
        if before is not None:
            before.drop(key)
        self._env.parted.pop(partition, None)
        node = partition.role.leader
        if partition.leads or partition.broken is not None or node < 0:
            return
        if self._serves(partition):
            leader = self.leaders.get(node)
            if leader is None:
                leader = self.leaders[node] = LeaderFetcher(
                    node, self._env, CaughtUpLane(self._env)
                )
            self._where[partition] = leader
            leader.add(key, partition)
