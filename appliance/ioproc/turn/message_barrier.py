"""The barrier around each message that an I/O process takes: an exception costs one answer.

A request that fails before it changes anything is answered with UNKNOWN_SERVER_ERROR. A partition
whose log may be half changed goes offline, as after a failed write, because nobody knows what its
files would be appended to. What has no answer (an answer to ourselves, a marker's end) raises the
exception again: the process ends, and its successor asks again.
"""

import errno
from typing import Final

from appliance.base.errors import KAFKA_STORAGE_ERROR, UNKNOWN_SERVER_ERROR, StorageFailed
from appliance.ioproc.netproc_peer import NetprocPeer, refusal
from appliance.ioproc.partition_failures import ANSWERS
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.turn.core import Core
from appliance.ring.messages import (
    ANSWERED,
    APPEND,
    APPENDED,
    COORDINATE,
    DELETE_RECORDS,
    MARK,
    MOVE,
    MOVED,
    Message,
)
from appliance.shell.bugs import Bugs

_CHANGES: Final = {APPEND: APPENDED, MARK: APPENDED, DELETE_RECORDS: ANSWERS[DELETE_RECORDS],
                   MOVE: MOVED}  # fmt: skip
"""What may change a log, and with what it is answered."""


class MessageBarrier:
    """Answers messages whose handling has raised an exception."""

    __slots__ = ("_bugs", "_core")

    def __init__(self, core: Core, bugs: Bugs) -> None:
        self._core = core
        self._bugs = bugs

    def refuse(
        self,
        asker: NetprocPeer,
        partition: Partition | None,
        message: Message,
        bug: Exception,
    ) -> None:
        """Answer one message. Raises `bug` when the message is no question."""
        op, code = message.op, UNKNOWN_SERVER_ERROR
        answer = ANSWERED if op == COORDINATE else _CHANGES.get(op) or ANSWERS.get(op)
        if answer is None:
            raise bug
        self._bugs.report(f"message {op} of {partition or 'no partition'}", bug)
        if partition is not None and op in _CHANGES and (partition.changing or answer != APPENDED):
            code = KAFKA_STORAGE_ERROR
            if partition.broken is None:
                why = f"it may be half changed: {type(bug).__name__}: {bug}"
                self._core.fail(partition, StorageFailed(str(partition), errno.EIO, why))
        asker.out.append(refusal(answer, code, message.handle, message.token))
