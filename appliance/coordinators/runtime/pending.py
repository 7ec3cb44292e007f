"""Records that belong to a transaction, while a coordinator's partition is replayed: they count
when its marker commits them, if nothing newer of their key counts by then (KIP-98).

Invariant: of the records of one key the one with the highest offset counts, of those that count at
all, as compaction of the topic would have it. A transaction without a marker changes nothing.
Called by whoever reads the partition.
"""

Found = tuple[int, bytes | None, bytes | None]
"""Offset, key and value of a record."""


class Pending:
    """By producer id: the records of its open transaction, by key."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[int, dict[bytes | None, Found]] = {}

    def __bool__(self) -> bool:
        return any(self._open.values())

    def hold(self, producer_id: int, record: Found) -> None:
        """A record in a producer's transaction."""
        self._open.setdefault(producer_id, {})[record[1]] = record

    def counts(self, offset: int, key: bytes | None) -> None:
        """A record counts: older ones of its key never will."""
        for records in self._open.values():
            held = records.get(key)
            if held is not None and held[0] < offset:
                del records[key]

    def end(self, producer_id: int, *, committed: bool) -> list[Found]:
        """The marker of a producer's transaction: its records that count now, oldest first."""
        records = self._open.pop(producer_id, {})
        if not committed:
            return []
        for offset, key, _ in records.values():
            self.counts(offset, key)
        return sorted(records.values(), key=lambda record: record[0])
