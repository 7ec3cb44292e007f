"""Replicas whose log is not what was written: aside, and fetched anew from who leads.

One that is read and found damaged goes offline where others can do without it (`failing.py`), and
the controller is told that it is LOST (`whereabouts.py`). Invariant: its folder stays as it is
until the metadata says that another node leads, and that nobody counts on this replica; it is only
renamed then, and removed when this node is in sync again, which has looked at every checksum of
what it fetched; or before, where there is no room for both. Called by `home.py`.
"""

from collections.abc import Callable

from appliance.ioproc.ground import Ground
from appliance.ioproc.leaving import Leaving
from appliance.logstore.removal import Removal
from appliance.metadata.follower import Follower
from appliance.metadata.log_dirs import LOST, directory_of
from appliance.metadata.parts import PartitionImage
from appliance.shell.log import NOTICE, WARNING

Key = tuple[bytes, int]
"""(topic id, partition)"""


class Afresh:
    """Those of one I/O process that are damaged, and those that are not whole again."""

    def __init__(
        self,
        node_id: int,
        ground: Ground,
        follower: Follower,
        leaving: Leaving,
        remove: Callable[[Removal], None],
    ) -> None:
        """remove: something, on a thread."""
        self._node_id = node_id
        _, self._dirs, self._core, self._events = ground
        self._follower = follower
        self._leaving = leaving
        self._remove = remove
        self._lay_in: dict[Key, int] = {}  # number of the log folder
        self._aside: dict[Key, str] = {}

    def go_on(self, now_ns: int, now_ms: int) -> dict[int, Key]:
        """Set aside what can be, one of them; remove what is needed no more. Returns what is to be
        opened anew: row → topic id and partition."""
        if self._aside:
            self._look_at_aside(now_ms)
        damaged = self._core.served.damaged
        for handle, key in list(damaged.items()):
            partition = self._core.partitions.get(handle)
            found = self._found(key)
            if partition is None or partition.broken is None or found is None:
                del damaged[handle]  # it has gone otherwise
            elif _is_superseded(found, self._node_id):
                del damaged[handle]
                return self._set_aside(handle, key, (now_ns, now_ms))
        return {}

    def _set_aside(self, handle: int, key: Key, now: tuple[int, int]) -> dict[int, Key]:
        partition = self._core.partitions[handle]
        node, cause = partition.role.leader, partition.broken
        folder = self._leaving.set_aside(partition, now)
        if not folder:
            self._core.served.refuse_row(handle)  # or its old log would come back
            return {}
        found = self._found(key)
        node = node if found is None else found.leader
        self._events.event(
            WARNING, "replica-set-aside", partition=partition, folder=folder, leader=node,
            cause=cause,
        )  # fmt: skip
        self._lay_in[key] = partition.directory
        self._aside[key] = folder
        return {handle: key}

    def lay_in(self, key: Key) -> bytes:
        """The id of the log folder in which a damaged replica lay: it is made anew there; b"" for
        every other one."""
        number = self._lay_in.pop(key, -1)
        return b"" if number < 0 else self._dirs.ids[number] or b""

    def _look_at_aside(self, now_ms: int) -> None:
        for key, folder in list(self._aside.items()):
            found, handle = self._found(key), self._follower.handles.get(key, -1)
            partition = self._core.partitions.get(handle)
            whole = found is not None and self._node_id in found.isr
            low = partition is not None and partition.space.low
            if whole or low or found is None:
                del self._aside[key]
                self._remove(Removal(now_ms, (), folder))
            if whole and partition is not None:
                self._events.event(NOTICE, "replica-whole", partition=partition, removed=folder)

    def _found(self, key: Key) -> PartitionImage | None:
        topic = self._follower.image.topics_by_id.get(key[0])
        if topic is None or key[1] >= len(topic.partitions):
            return None
        found = topic.partitions[key[1]]
        return found if self._node_id in found.replicas else None


def _is_superseded(found: PartitionImage, node_id: int) -> bool:
    """Whether another node leads, and nobody counts on the replica here."""
    return (
        found.leader not in (-1, node_id)
        and found.leader in found.isr
        and node_id not in (*found.isr, *found.eligible_leader_replicas)
        and directory_of(found, node_id) == LOST
    )
