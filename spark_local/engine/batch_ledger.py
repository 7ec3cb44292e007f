"""Which micro-batches of a job its sink has, of one attempt: what exactly-once sinks share.

The three witnesses are Spark's checkpoint, delivery.json beside it, and the marks that the sink
itself keeps. What is decided comes from spark_local/delivery.py; here are the files.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from spark_local import delivery
from spark_local.engine import checkpoint_files
from spark_local.folder import JobFolder, read_json, write_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BatchLedger:
    """`compare_witnesses` first, then `write_once` for each batch."""

    def __init__(
        self,
        job: str,
        place: JobFolder,
        plan: Callable[[int], dict[delivery.Position, int]],
        sink: str = "topic",
    ) -> None:
        """plan: a planned batch → the offsets that it commits. sink: topic or table."""
        self._job = job
        self._checkpoint = place.checkpoint
        self._file = place.path / "delivery.json"
        self._plan = plan
        self._sink = sink
        self._kept: delivery.Kept | None = None

    def compare_witnesses(self, found: Collection[delivery.Noted]) -> None:
        """Learn which batches the sink has. found: its marks. Raises JobError."""
        batch, again = checkpoint_files.next_batch(self._checkpoint)
        at = self._plan(batch) if again else None
        begin = delivery.Checkpoint(checkpoint_files.query_of(self._checkpoint), batch, at)
        self._kept = delivery.Kept.of(read_json(self._file))
        self._ledger = delivery.Ledger(self._job, begin, self._kept, found, self._sink)

    def write_once(self, rows: "DataFrame", batch_id: int, commit: Callable[[str], None]) -> bool:
        """Returns when the batch is committed: True if by this call, False if by a former
        incarnation. commit: writes the rows, and the mark that it is called with, at once."""
        if self._ledger.has(batch_id):
            # It is run all the same: the query's state is the sum of its batches.
            rows.write.format("noop").mode("overwrite").save()
            return False
        query = checkpoint_files.query_of(self._checkpoint)
        assert query is not None
        self._keep(self._ledger.kept(query))
        commit(delivery.mark(query, batch_id))
        self._ledger.committed(batch_id)
        self._keep(self._ledger.kept(query))
        return True

    def _keep(self, kept: delivery.Kept) -> None:
        if kept != self._kept:
            write_json(self._file, kept.content(), sync=True)
            self._kept = kept
