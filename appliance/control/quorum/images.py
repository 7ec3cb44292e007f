"""Two images of the cluster: the committed one, which followers see, and the speculative one, which
includes decisions not committed yet.

Invariant: `committed` has replayed exactly the records below the high watermark. `speculative`,
there while this node leads, has replayed those and everything decided since; dropping it forgets
all of that in one step. Both share their parts (`metadata/image_state.py`), so the second one costs
its dictionaries, and a commit costs what the records changed.
"""

from collections import deque
from collections.abc import Iterable

from appliance.base.dataclass import dataclass
from appliance.metadata.changes import Change, PartitionAdded
from appliance.metadata.delta import Delta
from appliance.metadata.image import MetadataImage


@dataclass(slots=True, frozen=True)
class UncommittedBatch:
    """One batch of records that is not committed. end: offset behind it. size: bytes."""

    end: int
    size: int
    changes: list[Change]
    delta: Delta
    partitions: int


class Images:
    """partitions: how many were decided and are not committed."""

    __slots__ = ("_decided", "committed", "partitions", "speculative")

    def __init__(self, committed: MetadataImage) -> None:
        self.committed = committed
        self.speculative: MetadataImage | None = None
        self.partitions = 0
        self._decided: deque[UncommittedBatch] = deque()

    def begin_image(self) -> MetadataImage:
        """Decide over what is committed."""
        assert self.speculative is None and not self._decided
        self.speculative = self.committed.copy()
        return self.speculative

    def drop(self) -> None:
        """Forget everything that was decided and is not committed."""
        self.speculative = None
        self.partitions = 0
        self._decided.clear()

    def decide(
        self, base: int, end: int, records: Iterable[object], *, epoch: int, size: int
    ) -> None:
        """Let records come true that stand in the log from `base` to `end`, which none of them may
        fill: control batches have nothing for an image."""
        image = self.speculative
        assert image is not None, "only a leader decides"
        assert base == image.applied_offset + 1, (image.applied_offset, base)
        assert base < end, (base, end)
        changes: list[Change] = []
        for offset, record in enumerate(records, base):
            changes += image.apply(offset, record)
        image.epoch, image.applied_offset = epoch, end - 1
        partitions = sum(isinstance(change, PartitionAdded) for change in changes)
        self.partitions += partitions
        self._decided.append(
            UncommittedBatch(end, size, changes, Delta(image, changes), partitions)
        )

    def commit(self, high_watermark: int) -> tuple[list[Change], int]:
        """Everything below is committed: what changed for followers, and the bytes it has in the
        log."""
        changes: list[Change] = []
        size = 0
        decided = self._decided
        while decided and decided[0].end <= high_watermark:
            one = decided.popleft()
            one.delta.apply_to(self.committed)
            changes += one.changes
            size += one.size
            self.partitions -= one.partitions
        assert self.partitions >= 0
        if not decided and self.speculative is not None:
            assert self.speculative.applied_offset == self.committed.applied_offset
        return changes, size
