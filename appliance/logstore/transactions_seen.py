"""The view of transactions that compaction needs: which records were aborted, and which markers are
no longer needed.

A marker may lie behind the part of the log that is compacted, so whose records were aborted is told
by the transaction indexes. Invariant: every transaction that began in that part has ended, as it
lies below the last stable offset; an abort was entered before its marker. Called by `compaction`.
"""

from bisect import bisect_left

from appliance.logstore.aborted import Aborted, AbortedTransactions
from appliance.logstore.scan import HeaderFields
from appliance.wire.batch_header import CONTROL_BIT


class TransactionsSeen:
    """`aborted` may be asked of any batch; `discards` and `entry` once for each, in order."""

    __slots__ = ("_aborted", "_lasts", "_open")

    def __init__(self, transactions: AbortedTransactions) -> None:
        self._aborted: dict[int, list[Aborted]] = {}
        self._lasts: dict[int, list[int]] = {}
        for one in transactions:
            self._aborted.setdefault(one[0], []).append(one)
            self._lasts.setdefault(one[0], []).append(one[2])
        self._open: set[int] = set()

    def aborted(self, header: HeaderFields) -> bool:
        """True if this transactional batch was aborted."""
        found = self._at(header)
        return found is not None and found[1] <= header[0]

    def _at(self, header: HeaderFields) -> Aborted | None:
        """The first transaction that its producer aborted with a marker at this batch or behind."""
        lasts = self._lasts.get(header[9], [])
        at = bisect_left(lasts, header[0])
        return self._aborted[header[9]][at] if at < len(lasts) else None

    def discards(self, header: HeaderFields) -> bool:
        """True if a transactional batch may be removed: its records are aborted, or it is the
        marker of a transaction without other batches.
        """
        producer = header[9]
        if header[5] & CONTROL_BIT:
            if producer in self._open:
                self._open.remove(producer)
                return False
            return True
        self._open.add(producer)
        return self.aborted(header)

    def entry(self, header: HeaderFields) -> Aborted | None:
        """The transaction index entry of this marker; None when it commits."""
        found = self._at(header)
        return found if found is not None and found[2] == header[0] else None
