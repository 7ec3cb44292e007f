"""Journals the deletions that other leaders decide before they apply here, because a deleted topic
can be undeleted only while every node knows which folders to keep.

    a batch with removals ─ look ─▶ a note is written, on a thread ─ noted ─▶ it is replayed

Invariant: nothing is committed here behind a batch whose note is not on the disk. So no other
process of this node sees a topic go of which it could not read that it is kept. Called by
`quorum/metadata_quorum.py`; what this node decides itself waits in another way
(`MetadataQuorum.append`).
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import BatchHeader

NOWHERE: Final = 1 << 62


class DecidedBatch(NamedTuple):
    """Records of one batch. end: offset behind it. at_ms: wall clock of who decided."""

    records: Sequence[object]
    end: int
    at_ms: int


def only_removals(records: Sequence[object]) -> bool:
    """True if a batch only removes topics: its note does not depend on whether the batch before has
    been replayed.
    """
    return all(isinstance(one, kraft.RemoveTopicRecord) for one in records)


Notice = Callable[[DecidedBatch, MetadataImage], int]
"""What is decided, and the image before it → the note that must be on the disk before it comes
true here, 0: none."""


class DeletionBarrier:
    """notice: is told of each batch that creates or removes topics. limit: nothing is committed
    from this offset on."""

    __slots__ = ("_looked", "_waiting", "notice")

    def __init__(self) -> None:
        self.notice: Notice = lambda what, image: 0
        self._looked = 0  # batches below were told
        self._waiting: deque[tuple[int, int]] = deque()  # base offset and its note

    @property
    def limit(self) -> int:
        """The offset of the first batch whose note is not written, NOWHERE: there is none."""
        return self._waiting[0][0] if self._waiting else NOWHERE

    def check_batch(
        self, header: BatchHeader, records: Sequence[object], image: MetadataImage
    ) -> None:
        """This batch is about to come true in `image`, or else waits (`limit`) and comes again."""
        if header.base_offset < self._looked:
            return
        self._looked = end = header.last_offset + 1
        if any(isinstance(one, kraft.TopicRecord | kraft.RemoveTopicRecord) for one in records):
            note = self.notice(DecidedBatch(records, end, header.max_timestamp), image)
            if note:
                self._waiting.append((header.base_offset, note))

    def noted(self, note: int) -> None:
        """Notes up to this one are on the disk, or never will be."""
        while self._waiting and self._waiting[0][1] <= note:
            self._waiting.popleft()

    def forget_from(self, offset: int) -> None:
        """Other batches may come from this offset on."""
        self._looked = min(self._looked, offset)
        while self._waiting and self._waiting[-1][0] >= offset:
            self._waiting.pop()
