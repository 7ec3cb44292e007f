"""Folders of deleted partitions that have objects in the remote store: these go first.

A folder that waits for its removal keeps `remote-log-metadata` until the store has none of the
partition's objects any more; its other files go at once. Invariant: objects are removed only of a
topic that is not in the metadata and can never come back, here or on another node that holds a
replica's folder. Whatever is cut off begins anew: the next
start finds the folder. Called by the housekeeping, and by the chores.
"""

from collections.abc import Callable
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.ioproc.remote.link import AnswerRoutes, StoreAnswer, ask_delete_partition
from appliance.logstore import files
from appliance.logstore.partition_metadata import read_topic_id
from appliance.logstore.removal import Removal
from appliance.remotelog.journal import NAME
from appliance.shell.log import WARNING, Log

_PAUSE_NS: Final = 30_000_000_000
_KEPT: Final = frozenset((NAME, files.PARTITION_METADATA))


@dataclass(slots=True, eq=False)
class RemoteRemoval:
    """A folder, and the partition that it was. again_ns: not before."""

    removal: Removal
    topic_id: bytes
    partition: int
    again_ns: int = 0
    asked: bool = False
    said: str = ""


class RemoteRemovals:
    """exists: whether a topic id is in the metadata. node: this one's id."""

    def __init__(
        self,
        disk: Disk,
        events: Log,
        routes: AnswerRoutes,
        exists: Callable[[bytes], bool],
        node: int,
    ) -> None:
        self._disk = disk
        self._events = events
        self._store = routes.channel_for(self.take_answer)
        self._exists = exists
        self._node = node
        self._ready: list[Removal] = []
        self._waiting: list[RemoteRemoval] = []

    def take_removal(self, removal: Removal) -> bool:
        """True if it waits here for the store; else it can go on at once."""
        folder = removal.folder
        try:
            if not folder or not self._disk.exists(f"{folder}/{NAME}"):
                return False
            topic_id = read_topic_id(self._disk, folder)
        except StorageFailed:
            return False
        number = folder.rpartition(".")[0].rpartition("-")[2]
        if topic_id is None or not number.isdecimal() or self._exists(topic_id):
            return False
        self._waiting.append(RemoteRemoval(removal, topic_id, int(number)))
        return True

    def take_ready(self) -> list[Removal]:
        """Returns removals that wait no more, since the last call."""
        ready, self._ready = self._ready, []
        return ready

    def tick(self, now_ns: int, now_ms: int, uses: Callable[[bytes, int], bool]) -> None:
        """Ask the store what is due. uses: whether a copy or deletion of a partition (topic id,
        number) may still be under way."""
        for one in self._waiting:
            due = now_ns >= one.again_ns and now_ms >= one.removal.due_ms
            if due and not one.asked and not uses(one.topic_id, one.partition):
                one.asked = True
                self._ready.append(Removal(now_ms, self._rest_of(one.removal.folder)))
                question = ask_delete_partition(one.topic_id, one.partition, self._node)
                self._store.ask_store((one,), question)

    def _rest_of(self, folder: str) -> tuple[str, ...]:
        """The paths of what need not wait."""
        try:
            names = self._disk.listdir(folder) if self._disk.exists(folder) else []
        except StorageFailed:
            return ()
        return tuple(f"{folder}/{name}" for name in names if name not in _KEPT)

    def take_answer(self, answer: StoreAnswer, now_ns: int, now_ms: int) -> None:
        """The store has none of it any more, or is asked again later."""
        (one,) = answer.tag
        one.asked = False
        if not answer.failure:
            self._waiting.remove(one)
            self._ready.append(one.removal)
            return
        one.again_ns = now_ns + _PAUSE_NS
        if answer.failure != one.said:
            one.said = answer.failure
            self._events.event(
                WARNING, "remote-delete-failed", folder=one.removal.folder, cause=answer.failure
            )
