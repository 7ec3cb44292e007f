"""Which role this node has in each open partition: what the metadata says, some in each turn.

A node that ends makes another one the leader of thousands at once. Invariant: while `waiting` has
anybody nothing is decided that was asked of this process (`metadata_replay.py` counts the metadata
as not replayed), so nobody is served by a role that the image has no more. What ends meanwhile, a
sync, counts by the role before, as when the metadata had come later: whoever is in sync by that one
has the record, or it is not acknowledged; that they have it they say by fetches, which wait here as
well. Called by `partition_manager.py` and `metadata_replay.py`.
"""

from collections.abc import Callable
from time import monotonic_ns
from typing import Final

from appliance.ioproc.turn.core import Core
from appliance.metadata.follower import Follower
from appliance.metadata.parts import PartitionImage
from appliance.replication.role import PartitionRole, role_of

ROLES_NS: Final = 4_000_000
"""Of one turn at most."""

Key = tuple[bytes, int]
"""(topic id, partition)"""


class PartitionRoles:
    """waiting: the partitions whose role may be another than they know. spent_ns: on roles, since
    somebody looked."""

    __slots__ = ("_core", "_follower", "_look", "_node_id", "_run_id", "spent_ns", "waiting")

    def __init__(
        self,
        node_id: int,
        run_id: bytes,
        core: Core,
        follower: Follower,
        look: Callable[[int, bytes, int], None],
    ) -> None:
        """run_id: of this life of the appliance. look: at each that gets a role: row, topic id,
        partition."""
        self._node_id = node_id
        self._run_id = run_id
        self._core = core
        self._follower = follower
        self._look = look
        self.waiting: dict[Key, None] = {}
        self.spent_ns = 0

    def of(self, partition: PartitionImage) -> PartitionRole:
        """The role of this node. It leads nothing of which others have replicas before this life of
        it is registered."""
        role = role_of(partition, self._node_id)
        if role.leads and role.replicas:
            broker = self._follower.image.brokers.get(self._node_id)
            if broker is None or broker.incarnation_id != self._run_id:
                return role._replace(leads=False, leader=-1)
        return role

    def queue_role(self, key: Key) -> None:
        """The metadata says something new of this partition; however often, it is told once."""
        self.waiting[key] = None

    def tell_roles(self) -> bool:
        """Tell some partitions their roles, by the image as it is now; whether those were all."""
        began, took_ns = monotonic_ns(), 0
        waiting = self.waiting
        while waiting:
            key = waiting.popitem()[0]
            try:
                self._tell(key)
            except Exception as bug:
                self._confine(key, bug)
            took_ns = monotonic_ns() - began
            if took_ns >= ROLES_NS:
                break
        self.spent_ns += took_ns
        return not waiting

    def _confine(self, key: Key, bug: Exception) -> None:
        """One that has half a role is served no more, and the others get theirs."""
        core = self._core
        partition = core.partitions.get(self._follower.handles.get(key, -1))
        if partition is None:
            core.barrier.report_bug("a role", bug)
        else:
            core.barrier.confine_bug("a role", partition, bug)
            core.tell_observers()

    def _tell(self, key: Key) -> None:
        topic_id, index = key
        core, image = self._core, self._follower.image
        handle = self._follower.handles.get(key, -1)
        partition = core.partitions.get(handle)
        topic = image.topics_by_id.get(topic_id)
        if partition is None or topic is None or index >= len(topic.partitions):
            return  # it has gone, or begins with the role that it has then
        found = topic.partitions[index]
        if self._node_id not in found.replicas:
            return
        self._look(handle, topic_id, index)
        role = self.of(found)
        if role.leads:
            core.lead(partition, found.leader_epoch, role, core.served.now_ms)
        else:
            core.follow(partition, found.leader_epoch, role)
