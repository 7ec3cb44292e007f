"""Dispatches the messages of the rings: the one place that knows every operation.

Called by the shell with the messages of one process, in order; appends are answered by the end of
the turn or by a later sync.
"""

from collections.abc import Callable
from typing import Final

from appliance.base import errors
from appliance.ioproc.coordination.marker_sender import MarkerSender
from appliance.ioproc.coordination.orphaned_transactions import OrphanedTransactions
from appliance.ioproc.netproc_peer import NetprocPeer, refusal
from appliance.ioproc.partition_failures import ANSWERS
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.turn.core import Core
from appliance.ioproc.turn.message_barrier import MessageBarrier
from appliance.ring.messages import (
    APPEND,
    APPENDED,
    CANCEL,
    COORDINATE,
    KNOWN,
    KNOWS,
    MARK,
    MOVE,
    MOVED,
    WATCH,
    Message,
)
from appliance.ring.slots import read_move
from appliance.wire.compression import OPENED

Opens = Callable[[int], Partition | None]
"""Opens the partition of a row at once if it is still to be opened; None: there is none here."""

Mover = Callable[[Partition, int, int], int]
"""(partition, number of a log folder, now in ms): begins to move it there; Kafka's error code."""

API_SHIFT: Final = 16
"""COORDINATE says in `b` for which API it is, above the version."""


class Dispatcher:
    """open_: who opens partitions. move: who moves them. endings: who asked for markers. left: of
    transactions in what was deleted. barrier: answers messages that raise an exception; without
    one, as in a simulation, the exception ends everything."""

    __slots__ = (
        "_appends",
        "_core",
        "_endings",
        "_hosts",
        "_left",
        "_move",
        "_open",
        "_partitions",
        "_questions",
        "_refusing",
        "_watches",
        "barrier",
        "postponed",
    )

    def __init__(
        self,
        core: Core,
        open_: Opens,
        move: Mover,
        endings: MarkerSender,
        left: OrphanedTransactions | None = None,
    ) -> None:
        self.barrier: MessageBarrier | None = None
        self.postponed = core.postponed
        self._core = core
        self._open = open_
        self._move = move
        self._endings = endings
        self._left = left
        self._partitions = core.partitions
        self._appends = core.appends
        self._questions = core.questions
        self._watches = core.served.watches
        hosts = tuple(core.coordinators.values())
        self._hosts = {key: host for host in hosts for key in host.apis}
        self._refusing = hosts[0] if hosts else None  # what none of them answers

    def handle(self, asker: NetprocPeer, messages: list[Message], now_ms: int) -> None:
        """Decide on the messages of one asker in order."""
        partitions, postponed = self._partitions, self.postponed
        for message in messages:
            op, handle = message[0], message[2]
            if op == CANCEL:
                self._cancel(asker, message)
                continue
            partition = partitions.get(handle)
            try:
                late = OPENED[0] > postponed.until or postponed.payload < 0 or postponed.held
                is_open = partition is not None
                if (late or not is_open) and postponed.postpone(asker, message, is_open=is_open):
                    continue
                partition = partition or self._open_now(handle)
                if op == APPEND:
                    self._appends.append(asker, partition, message, now_ms)
                elif op == COORDINATE:
                    postponed.payload -= len(message[14])
                    host = self._hosts.get(message[5] >> API_SHIFT, self._refusing)
                    if host is not None:
                        host.take_piece(asker, message, now_ms)
                        postponed.payload -= host.long.answered
                        host.long.answered = 0
                elif op == MARK:
                    self._mark(asker, partition, message, now_ms)
                elif op == APPENDED:
                    self._endings.answered(asker.index, message[3], message[1] - 1, now_ms)
                elif op == MOVE:
                    self._begin_move(asker, partition, message, now_ms)
                elif op in ANSWERS:
                    self._questions.ask_partition(asker, partition, message)
                else:
                    self._handle_rare(asker, message, now_ms)
            except Exception as bug:
                self._fail(asker, partition, message, bug)

    def _open_now(self, handle: int) -> Partition | None:
        partition = self._open(handle)
        if partition is not None:
            self.postponed.openings -= 1
        return partition

    def resume(self, now_ms: int) -> None:
        """Handle postponed messages for which this turn has room."""
        while (row := self.postponed.resume()) is not None:
            self.handle(row[0], [row[1]], now_ms)
        self.postponed.resumed()

    def _cancel(self, asker: NetprocPeer, message: Message) -> None:
        self._core.purgatory.cancel(asker.index, message.token)
        if self.postponed.held:
            self.postponed.cancel_reads(asker, message.token)
        if self._watches.waits:
            self._watches.cancel(asker.index, message.token)

    def _fail(
        self, asker: NetprocPeer, partition: Partition | None, message: Message, bug: Exception
    ) -> None:
        if self.barrier is None:
            raise bug
        self.barrier.refuse(asker, partition, message, bug)

    def _mark(
        self, asker: NetprocPeer, partition: Partition | None, message: Message, now_ms: int
    ) -> None:
        """Appends a marker, behind what was decided about its transaction in this turn."""
        if partition is not None:
            host = self._core.coordinators.get(partition.topic)
            if host is not None and host.decided:
                host.stage()
        self._appends.mark(asker, partition, message, now_ms)

    def _handle_rare(self, asker: NetprocPeer, message: Message, now_ms: int) -> None:
        left = self._left
        if message.op == WATCH:
            self._questions.watch_partitions(asker, message)
        elif left is None:
            return
        elif message.op == KNOWS:
            left.answer_known(asker, message)
        elif message.op == KNOWN:
            left.answered(asker.index, message.token, message.flags - 1, now_ms)

    def _begin_move(
        self, asker: NetprocPeer, partition: Partition | None, message: Message, now_ms: int
    ) -> None:
        if partition is None:
            code = self._core.absent(message.handle)
        elif partition.broken is not None:
            code = errors.KAFKA_STORAGE_ERROR
        else:
            code = self._move(partition, read_move(message).folder, now_ms)
            self._core.served.stirred = True
        asker.out.append(refusal(MOVED, code, message.handle, message.token))
