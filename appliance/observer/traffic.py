"""Bytes written to and read from each topic, kept up to date without reading every row again: with
100,000 partitions that takes seconds, and most of them are idle.

Rows are looked at in blocks. A block whose memory has the checksum that it had at the last look is
left alone; one whose checksum happens to be the same although it changed is read when it changes
again. A checksum is taken before its rows are read: what changes in between is seen next time.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from appliance.base.crc import crc32c
from appliance.base.ids import TopicId
from appliance.ring import partition_table as columns
from appliance.ring.partition_table import PartitionTable

BLOCK: Final = 16
"""Rows: 4 KiB of their state."""


_BREATH: Final = 100
"""Blocks that are the same: 0.5 ms."""
_SERVED: Final = (columns.ONLINE, columns.FOLLOWING)


class Sums(NamedTuple):
    """Sums over some partitions. offline: those that this node neither leads nor follows. records:
    those that a consumer can read. held: those of them that wait for an open transaction:
    read_committed does not get them. batches_in … bytes_out: since the appliance started, in
    encoded batches; fetches: answers that had records of them."""

    partitions: int = 0
    offline: int = 0
    records: int = 0
    size_bytes: int = 0
    batches_in: int = 0
    records_in: int = 0
    bytes_in: int = 0
    fetches: int = 0
    bytes_out: int = 0
    held: int = 0


NOTHING: Final = Sums()


class Traffic:
    """topics: what there is of each topic that has a partition, as of the last look."""

    def __init__(self, table: PartitionTable) -> None:
        self.topics: dict[TopicId, Sums] = {}
        self._table = table
        self._checksums: list[int] = []
        self._blocks: list[dict[TopicId, Sums]] = []

    def find_changed(self, breathe: Callable[[], None] = lambda: None) -> set[TopicId]:
        """Look again: the topics of which something is different now. breathe: called now and then
        meanwhile, for who has to do something else at once."""
        changed: set[TopicId] = set()
        rows = self._table.row_count
        for block, first in enumerate(range(0, rows, BLOCK)):
            last = min(rows, first + BLOCK)
            checksum = 0
            for part in self._table.memory_of(first, last):
                checksum = crc32c(part, checksum)
            if block == len(self._blocks):
                self._checksums.append(-1)
                self._blocks.append({})
            if not block % _BREATH:
                breathe()
            if checksum != self._checksums[block]:
                breathe()
                self._checksums[block] = checksum
                changed |= self._read(block, first, last)
        return changed

    def _read(self, block: int, first: int, last: int) -> set[TopicId]:
        """Those whose sums in the block are different now."""
        before, now = self._blocks[block], _sums(self._table, first, last)
        self._blocks[block] = now
        changed = {
            topic
            for topic in before.keys() | now.keys()
            if before.get(topic, NOTHING) != now.get(topic, NOTHING)
        }
        for topic in changed:
            old, new = before.get(topic, NOTHING), now.get(topic, NOTHING)
            known = self.topics.get(topic, NOTHING)
            total = Sums(
                *(all_ - was + is_ for all_, was, is_ in zip(known, old, new, strict=True))
            )
            assert total.partitions >= 0, "what is taken away was added before"
            if total.partitions:
                self.topics[topic] = total
            else:
                del self.topics[topic]
        return changed


def _sums(table: PartitionTable, first: int, last: int) -> dict[TopicId, Sums]:
    found: dict[TopicId, list[int]] = {}
    for row in table.live_rows(first, last):
        state = table.read_row(row.handle)
        fetches, bytes_out = table.served_of(row.handle)
        of = found.get(row.topic_id)
        if of is None:
            of = found[row.topic_id] = [0] * len(NOTHING)
        of[0] += 1
        of[1] += state[columns.STATUS] not in _SERVED
        of[2] += state[columns.HIGH_WATERMARK] - state[columns.LOG_START]
        of[3] += state[columns.SIZE_BYTES]
        of[4] += state[columns.BATCHES_IN]
        of[5] += state[columns.RECORDS_IN]
        of[6] += state[columns.BYTES_IN]
        of[7] += fetches
        of[8] += bytes_out
        of[9] += max(0, state[columns.HIGH_WATERMARK] - state[columns.LAST_STABLE])
    return {topic: Sums(*sums) for topic, sums in found.items()}
