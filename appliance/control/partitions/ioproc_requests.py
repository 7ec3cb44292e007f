"""Requests of I/O processes to control: blocks of producer ids, another ISR, an assignment of a
replica to a log folder.

While this node leads the metadata log, or nobody else ever does, it decides at once; else the
active controller is asked (`broker/node.py`). Called by `shell.py`.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from appliance.base.errors import UNKNOWN_SERVER_ERROR, DiskFull, PeerError
from appliance.control.broker.node import OURSELVES, Node
from appliance.control.broker.reports import Proposal
from appliance.control.partitions.id_blocks import IdBlocks
from appliance.control.quorum.leadership import NotController
from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.controller.decision import Record, Situation
from appliance.controller.placement import assign_directory
from appliance.controller.producer_ids import ProducerIdBlocks
from appliance.metadata.log_dirs import LOST, LogDirs
from appliance.replication.isr_change import decode
from appliance.ring.messages import (
    ASSIGN,
    FOLDER_FAILED,
    ISR_CHANGE,
    PRODUCER_IDS,
    Message,
)
from appliance.ring.partition_table import PartitionTable
from appliance.ring.ring import RingWriter
from appliance.ring.slots import pack_isr_refused, read_folder

Caught = Callable[[str, Exception], None]
_HERE: Final = (DiskFull, NotController)


class Homes:
    """writers: the ring to each I/O process. append: stages records. situation: what is decided
    from, made anew by each call."""

    __slots__ = ("_append", "_dirs", "_ids", "_partitions", "_producer_ids", "_quorum", "_refused",
                 "_situation", "_writers")  # fmt: skip

    def __init__(
        self,
        writers: Mapping[int, RingWriter],
        partitions: PartitionTable,
        dirs: LogDirs,
        quorum: MetadataQuorum,
        producer_ids: ProducerIdBlocks,
        append: Callable[[list[Record]], None],
        situation: Callable[[], Situation],
    ) -> None:
        self._writers = writers
        self._partitions = partitions
        self._dirs = dirs
        self._quorum = quorum
        self._producer_ids = producer_ids
        self._append = append
        self._situation = situation
        self._ids = IdBlocks(writers)
        self._refused: deque[tuple[Proposal, int]] = deque()

    def handle(self, ioproc: int, messages: Sequence[Message], node: Node, caught: Caught) -> None:
        """Messages of one I/O process, in order. caught: tells what one of them raises, or raises
        it again."""
        for message in messages:
            try:
                self._take(ioproc, message, node)
            except Exception as bug:
                caught(f"message {message.op}", bug)
                self._refuse(ioproc, message)

    def _take(self, ioproc: int, message: Message, node: Node) -> None:
        if message.op == ISR_CHANGE:
            node.propose(Proposal(ioproc, message.handle, decode(message.payload)))
        elif message.op == ASSIGN:
            self._assign(message, None if node.alone else node)
        elif message.op == FOLDER_FAILED:
            self._folder_failed(read_folder(message).folder, node)
        elif message.op != PRODUCER_IDS:
            return
        elif node.alone or self._quorum.leadership.leads:
            self._give_ids(ioproc)
        else:
            node.want_ids(ioproc)

    def _refuse(self, ioproc: int, message: Message) -> None:
        """Refuse a message whose handling has raised an exception. The I/O process asks again; what
        has no answer it sends again by itself."""
        if message.op == PRODUCER_IDS:
            self._ids.refuse(ioproc)
        elif message.op == ISR_CHANGE:
            proposal = Proposal(ioproc, message.handle, decode(message.payload))
            self.isr_refused(proposal, UNKNOWN_SERVER_ERROR)

    def _give_ids(self, ioproc: int) -> None:
        """A block of producer ids, once it is written down that it is taken."""
        try:
            records, first = self._producer_ids.block(self._situation())
            self._append(records)
        except (DiskFull, NotController, PeerError):
            self._ids.refuse(ioproc)
        else:
            self._ids.add_block(ioproc, first, self._quorum.replayed_end)

    def _assign(self, message: Message, node: Node | None) -> None:
        """A partition has moved, or nearly so: write down the folder that it is in, or let the
        controller do so. An I/O process asks again when it does not see it."""
        found = self._partitions.holder(message.handle)
        folder = read_folder(message).folder
        if found is None or not -1 <= folder < len(self._dirs.ids):
            return
        directory_id = LOST if folder < 0 else self._dirs.ids[folder]
        topic = self._quorum.image.topics_by_id.get(found.topic_id)
        if topic is None or directory_id is None:
            return
        if node is not None:
            node.assign(topic.topic_id, found.partition, directory_id)
            return
        partition = topic.partitions[found.partition]
        node_id = self._situation().node_id
        new = assign_directory(topic.topic_id, partition, node_id, directory_id)
        if new:
            with suppress(*_HERE):
                self._append(new)

    def _folder_failed(self, number: int, node: Node) -> None:
        """Raises CannotServe as `Node.failed`."""
        directory_id = self._dirs.ids[number]
        if directory_id is not None:
            node.failed(directory_id, self._dirs.paths[number])

    # What another controller said -----------------------------------------------------------------

    def isr_refused(self, proposal: Proposal, code: int) -> None:
        """Queues the refusal of an ISR that this ioproc proposed."""
        self._refused.append((proposal, code))

    def ids(self, ioproc: int, first: int, count: int) -> None:
        """A block of producer ids of another controller; count 0: there is none to have."""
        if ioproc == OURSELVES:
            if count:
                self._producer_ids.add_block(first, count)
        elif count:
            self._ids.assign_block(ioproc, first, count)
        else:
            self._ids.refuse(ioproc)

    # Answers --------------------------------------------------------------------------------------

    def undo(self, since: int) -> None:
        """Refuses the decisions from `since` on, which are lost."""
        self._ids.undo(since)

    def release(self, committed: int) -> bool:
        """Say what may be said; False when some waits for room in a ring."""
        refused = self._refused
        while refused:
            proposal, code = refused[0]
            epoch = proposal.change.partition_epoch
            writer = self._writers[proposal.ioproc]
            if not writer.push(*pack_isr_refused(proposal.handle, code, epoch)):
                return False
            refused.popleft()
        return self._ids.release(committed)

    def forget_ioproc(self, ioproc: int) -> None:
        """This process is dead; its successor has asked nothing."""
        self._ids.forget_ioproc(ioproc)
        self._refused = deque(one for one in self._refused if one[0].ioproc != ioproc)
