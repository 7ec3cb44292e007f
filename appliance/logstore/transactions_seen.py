"""What compaction must know of transactions: whose records were aborted, and which markers have
nothing left to say.

Invariant: `note` has seen every transactional batch of the log's cleanable part, in order, before
anything is asked; it ends at or below the last stable offset, so every transaction in it has ended.
Called by `compaction`.
"""

from bisect import bisect_left

from appliance.logstore.scan import HeaderFields
from appliance.wire.batch_header import CONTROL_BIT, RECORDS_AT
from appliance.wire.record_keys import places

ABORT = 0
"""Type of the marker of an aborted transaction: int16 version, int16 type in its record's key."""


class TransactionsSeen:
    """Producer id → where its transactions ended, and how."""

    __slots__ = ("_aborts", "_ends", "_open")

    def __init__(self) -> None:
        self._ends: dict[int, list[int]] = {}
        self._aborts: dict[int, list[bool]] = {}
        self._open: set[int] = set()

    def note(self, header: HeaderFields, batch: memoryview) -> None:
        """A transactional batch; a marker ends the transaction of its producer."""
        if header[5] & CONTROL_BIT and header[12]:
            key = places(bytes(batch[RECORDS_AT:]), header[12])[0][3] or b""
            self._ends.setdefault(header[9], []).append(header[0])
            self._aborts.setdefault(header[9], []).append(int.from_bytes(key[2:4], "big") == ABORT)

    def aborted(self, header: HeaderFields) -> bool:
        """Whether the records of this batch were taken back."""
        ends = self._ends.get(header[9], ())
        at = bisect_left(ends, header[0])
        return at < len(ends) and self._aborts[header[9]][at]

    def discards(self, header: HeaderFields) -> bool:
        """Whether a batch may go: aborted records, or the marker of a transaction of which nothing
        is left. Asked for every transactional batch in order."""
        producer = header[9]
        if header[5] & CONTROL_BIT:
            if producer in self._open:
                self._open.remove(producer)
                return False
            return True
        self._open.add(producer)
        return self.aborted(header)
