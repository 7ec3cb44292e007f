"""The I/O processes of this node and its log folders, as the controller is to see them.

An I/O process that dies is back after tens of ms, and the node keeps what it leads. One that stays
away (it dies again and again, or its logs take long to open) has its replicas told as LOST, so that
others lead: an I/O process is no folder, and which partitions it has depends on how many there are,
so they are told one by one (docs/decisions/0056). When it is back it says itself where they lie.
Folders without room are told as cordoned (KIP-1066). Replicas that another node decided on and for
which the partition table here has no row are LOST too: others lead.

Invariant: nothing is told before this start of the node is in use, and nothing of a partition that
nobody else has. Called by `shell.py` in every turn; times are ms of a clock that never goes back.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from appliance.base.home import home_of
from appliance.config.broker import BrokerConfig
from appliance.control.broker.lifecycle import NEVER, State
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import LOST, directory_of
from appliance.metadata.parts import PartitionImage
from appliance.ring.process_table import IOPROC, READY, Peer, ProcessTable
from appliance.shell.log import ERROR, NOTICE, Log

_SOON_MS: Final = 50
"""Nobody rings when an I/O process serves, or has read more metadata."""

Key = tuple[bytes, int]
"""Topic id and partition."""


class Teller(Protocol):
    """`node.Node`."""

    @property
    def state(self) -> State: ...

    @property
    def epoch(self) -> int: ...

    def assign(self, topic_id: bytes, partition: int, folder: bytes) -> None: ...

    def cordon(self, folders: Sequence[bytes]) -> None: ...


class Crew:
    """due_ms: when to look again at the latest."""

    __slots__ = ("_away", "_full", "_lacking", "_lacking_ms", "_log", "_node_id", "_patience_ms",
                 "_processes", "_since", "due_ms")  # fmt: skip

    def __init__(
        self,
        processes: ProcessTable,
        ioprocs: int,
        config: BrokerConfig,
        full: Callable[[], Sequence[bytes]],
        lacking: Collection[Key],
        log: Log,
    ) -> None:
        """full: ids of the folders without room. lacking: the replicas without a row, as they are
        at any time. Whoever is back within `broker.heartbeat.interval.ms` was never away."""
        self._processes = processes
        self._node_id = config.int("node.id")
        self._patience_ms = config.int("broker.heartbeat.interval.ms")
        self._full = full
        self._lacking = lacking
        self._lacking_ms = 0  # when to tell of them again
        self._log = log
        self._since = [0] * ioprocs  # ms of the last time that each was there, or was told away
        self._away = [False] * ioprocs
        self.due_ms = NEVER

    def check_ioprocs(self, now_ms: int, teller: Teller, image: MetadataImage) -> bool:
        """Tell what is to be told; whether every I/O process serves, and knows that this node is
        registered."""
        ready, self.due_ms = True, NEVER
        in_use = teller.state is State.RUNNING
        for index in range(len(self._since)):
            one = Peer(IOPROC, index)
            if self._processes.state(one) == READY:
                ready = ready and self._processes.applied(one) > teller.epoch
                self._since[index] = now_ms
                if self._away[index]:
                    self._away[index] = False
                    self._log.event(NOTICE, "ioproc-back", ioproc=index)
                continue
            ready = False
            if not in_use:
                self._since[index] = now_ms
            elif now_ms - self._since[index] >= self._patience_ms:
                self._since[index] = now_ms
                self._tell(index, teller, image)
            self.due_ms = min(self.due_ms, self._since[index] + self._patience_ms)
        if in_use:
            teller.cordon(self._full())
            if self._lacking:
                self._tell_lacking(now_ms, teller, image)
        if not ready:
            self.due_ms = min(self.due_ms, now_ms + _SOON_MS)
        return ready

    def _tell_lacking(self, now_ms: int, teller: Teller, image: MetadataImage) -> None:
        if now_ms >= self._lacking_ms:
            self._lacking_ms = now_ms + self._patience_ms
            for topic_id, index in sorted(self._lacking):
                topic = image.topics_by_id.get(topic_id)
                if topic is not None:
                    self._lose(teller, topic_id, topic.partitions[index])
        self.due_ms = min(self.due_ms, self._lacking_ms)

    def _lose(self, teller: Teller, topic_id: bytes, one: PartitionImage) -> None:
        """A replica here is lost, if others have one too and the metadata do not say so."""
        here = self._node_id in one.replicas and len(one.replicas) > 1
        if here and directory_of(one, self._node_id) != LOST:
            teller.assign(topic_id, one.index, LOST)

    def _tell(self, index: int, teller: Teller, image: MetadataImage) -> None:
        """Its replicas are lost, as far as the metadata do not say so."""
        ioprocs = len(self._since)
        for topic in image.topics_by_id.values():
            for one in topic.partitions:
                if home_of(topic.topic_id, one.index, ioprocs) == index:
                    self._lose(teller, topic.topic_id, one)
        if not self._away[index]:
            self._away[index] = True
            self._log.event(ERROR, "ioproc-away", ioproc=index, action="lead-elsewhere")
