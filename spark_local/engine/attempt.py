"""One attempt to run a job: from views and query to its end. A job's thread makes them in turn.

Everything of an attempt happens on that thread, except the writing of batches and the listener,
which Spark calls; they hand over through the gate and the inbox.
"""

import json
import queue
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_local.board import Board, now_ms
from spark_local.cause import needs_tls
from spark_local.client_settings import ClientSettings
from spark_local.engine import checkpoint_files, progress, registered, sinks
from spark_local.engine.causes import away, trace, translate
from spark_local.engine.deadletters import EARLIEST, DeadLetters
from spark_local.engine.derive import Derived, derive, session
from spark_local.engine.exactly_once import ExactlyOnceSink
from spark_local.engine.listener import ENDED, IDLE, forward
from spark_local.engine.offsets import GroupOffsets
from spark_local.engine.reach import Reach
from spark_local.engine.source_topics import SourceTopics
from spark_local.engine.table_formats import table_sink
from spark_local.engine.table_sink import TableSink
from spark_local.engine.tables import CachedTable, ends_of, refresh_tables
from spark_local.folder import JobFolder
from spark_local.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

STOP_LIMIT_S: Final = 45.0
_LOOK_S: Final = 0.5
_BEHIND_S: Final = 10.0
_RESTS: Final = "Waiting for"
"""How Spark's word of a query begins that has done what there was to do."""
_OFFSETS_PACE_S: Final = 1.0


class Attempt:
    """Ask for `run`, which returns at the end and raises what made it fail; `stop` from another
    thread lets it return early."""

    def __init__(
        self, root: "SparkSession", job: Job, place: JobFolder, kafka: ClientSettings, board: Board
    ) -> None:
        self._job = job
        self._place = place
        self._kafka = kafka
        self._board = board
        self._root = root
        self._inbox: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._totals = progress.Totals.of(board.content.get("progress"))
        self._gate = sinks.Gate(lambda batch: self._topics.check_batch(batch))
        self._reach = Reach(kafka.bootstrap)
        self._batch = -1
        self._well = False
        self._idle = False
        self._told_all = False
        self._positions: dict[tuple[str, str], int] = {}
        self._told_positions: dict[tuple[str, str], int] = {}
        self._offsets_at = 0.0
        self._lock = threading.Lock()

    def stop(self) -> None:
        """End after the batch that is being written. May be asked for again and again, which must
        not keep `_drain` from finding the inbox empty."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._inbox.put(None)

    def run(self) -> None:
        """Until a job that ends by itself has ended, or `stop`."""
        job = self._job
        if not self._kafka.uses_tls and (where := self._reach.secured):
            raise needs_tls(where)
        self._kafka = self._kafka.written(self._place.path)
        self._root.sparkContext.setLocalProperty("spark.scheduler.pool", job.name)
        spark = session(self._root, job)
        sink = self._sink(spark)
        self._job = job = self._asked_registries(spark)
        keep = self._place.path / "schemas.json"
        derived = derive(spark, job, self._kafka, streaming=not job.batch, keep=keep)
        dead = self._place.path / "dead.json"
        self._letters = DeadLetters(spark, job, derived.schemas, self._kafka, dead)
        self._offsets = GroupOffsets(job.name, self._kafka)
        self._topics = SourceTopics(job, self._kafka, self._place, self._board, self._totals)
        for table in derived.tables:
            self._changed(table)
        try:
            if not job.batch:
                self._topics.resume(self._letters)
            sink.prepare()
            if job.batch:
                self._batch_job(derived, sink)
            else:
                self._stream(spark, derived, sink)
        except Exception as problem:
            self._learn_schemas(spark, problem)
            told = self._topics.explained(problem)
            if told is problem:
                raise
            raise told from problem
        finally:
            sink.close()
            self._ended.set()
            for table in derived.tables:
                table.close()

    def _asked_registries(self, spark: "SparkSession") -> Job:
        """The job with what schema registries say of its sources."""
        found = registered.ask_registries(spark, self._job, self._place.path / registered.FILE)
        if not found.batch:
            return found
        everything: registered.Spans = {one.name: (None, None) for one in found.sources}
        return registered.scan(spark, found, self._kafka, everything)

    def _learn_schemas(self, spark: "SparkSession", problem: Exception) -> None:
        """After a batch that met schemas which are new: learns them, and raises NewSchemas."""
        number = registered.new_number(trace(problem))
        batch = checkpoint_files.unfinished(self._place.checkpoint)
        if number is None or batch is None:
            return
        spans: registered.Spans = {}
        for one in self._job.sources:
            if one.place.topic:
                begin = checkpoint_files.begin_of(self._place.checkpoint, batch, one.place.topic)
                end = checkpoint_files.end_of(self._place.checkpoint, batch, one.place.topic)
                spans[one.name] = ({p: begin.get(p, EARLIEST) for p in end}, end)
        keep = self._place.path / registered.FILE
        registered.scan(spark, self._job, self._kafka, spans, keep)
        raise registered.NewSchemas(f"values name schema {number}, which is new") from None

    def _sink(self, spark: "SparkSession") -> sinks.Sink:
        job = self._job
        if job.sink.place.table:
            return table_sink(job, self._kafka, spark, self._place, self._board.log)
        if job.sink.is_transactional:
            return ExactlyOnceSink(job, self._kafka, self._root, self._place)
        return sinks.make_sink(job, self._kafka)

    def _batch_job(self, derived: Derived, sink: sinks.Sink) -> None:
        begins = [
            (one, ends_of(self._kafka, one.place.topic))
            for one in self._job.sources
            if one.place.topic
        ]
        if self._board.state == "starting":  # one that failed before proves nothing by beginning
            self._board.set("running")
        sink.write_rows(derived.rows, 0)
        for source, ends in begins:
            self._letters.saw(source, dict.fromkeys(ends, EARLIEST), ends, 1)
        kept = self._board.content.get("progress") or {}
        self._board.content["progress"] = kept | {"dead_letters": self._letters.count}

    def _stream(self, spark: "SparkSession", derived: Derived, sink: sinks.Sink) -> None:
        listener = forward(spark, self._inbox)
        try:
            query = self._start(derived.rows, sink)
            if derived.tables and not self._job.once:
                self._watch(derived.tables)
            try:
                self._follow(query)
            finally:
                if query.isActive:
                    query.stop()
        finally:
            spark.streams.removeListener(listener)

    def _start(self, rows: "DataFrame", sink: sinks.Sink) -> "StreamingQuery":
        from pyspark.sql import functions as f

        job = self._job
        counted = rows.observe(progress.OUTPUT, f.count(f.lit(1)).alias("rows"))
        writer = counted.writeStream.queryName(job.name).outputMode(job.sink.mode)
        writer = writer.option("checkpointLocation", str(self._place.checkpoint))
        if job.trigger_ms is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{job.trigger_ms} milliseconds")
        if isinstance(sink, sinks.FileSink):
            return writer.format(sink.format).options(**sink.options()).start()
        if isinstance(sink, TableSink):
            sink.fit_table(rows)
        sink.prepare_rows(rows)  # a wrong key is told before anything is read
        return writer.foreachBatch(
            lambda df, number: self._gate.write_batch(sink, df, number)
        ).start()

    def _watch(self, tables: list[CachedTable]) -> None:
        def trouble(table: CachedTable, problem: Exception) -> None:
            cause = translate(problem, self._job.name).problem
            self._board.log(f"table {table.table.name} stays as it is: {cause}")

        def run() -> None:
            pool = f"{self._job.name}-tables"
            self._root.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
            refresh_tables(tables, self._ended, self._changed, trouble)

        threading.Thread(target=run, name=f"{self._job.name}-tables", daemon=True).start()

    def _changed(self, table: CachedTable) -> None:
        if table.refreshed > 1:
            self._board.log(f"table {table.table.name} was read again")
        with self._lock:
            self._letters.table_letters(table.table.name, table.bad_records())

    def _follow(self, query: "StreamingQuery") -> None:
        while True:
            self._take(_LOOK_S)
            if self._stopped.is_set():
                self._end(query)
                break
            if not query.isActive:
                break
            self._see_broker()
            if not self._well and str(query.status["message"]).startswith(_RESTS):
                self._works()
            quiet = self._idle and self._totals.rows_in == 0
            self._board.set_warning(self._nothing() if quiet else None)
        self._drain()
        self._publish(last=True)
        problem = None if self._stopped.is_set() else query.exception()
        if problem is not None:
            raise problem

    def _see_broker(self) -> None:
        """Spark retries for a minute before it says that nobody answers; a person is told at once.
        The query is left alone: it goes on by itself when the appliance is back in time."""
        there = self._reach.is_reachable()
        if not there and self._board.state in ("starting", "running"):
            self._board.set("waiting", away())
        elif there and self._well:
            self._board.delivered()

    def _works(self) -> None:
        """A batch of this attempt was delivered, or there is nothing to read."""
        if not self._well:
            self._well = True
            if not self._stopped.is_set():
                self._board.delivered()

    def _nothing(self) -> str:
        """Why a job may have read nothing yet."""
        topics = [one for one in self._job.sources if one.place.topic]
        late = [one.place.topic for one in topics if one.start == "latest"]
        if late:
            return (
                f"it has read nothing yet: it waits for new records in {', '.join(map(str, late))}"
            )
        names = ", ".join(one.place.text for one in self._job.sources)
        return f"it has read nothing yet: there is nothing to read in {names}"

    def _end(self, query: "StreamingQuery") -> None:
        """Stop between two batches: the one that is being written is finished and committed."""
        self._board.set("stopping")
        until = time.monotonic() + STOP_LIMIT_S
        last = self._gate.close(STOP_LIMIT_S)
        while last is not None and self._batch < last and query.isActive:
            self._take(0.1)
            if time.monotonic() > until:
                break
        while self._job.sink.place.file and query.isActive and time.monotonic() < until:
            if not query.status["isTriggerActive"]:
                break
            self._take(0.02)
        query.stop()

    def _take(self, limit_s: float) -> None:
        """One account of the listener, or nothing."""
        try:
            told = self._inbox.get(timeout=limit_s)
        except queue.Empty:
            self._publish()
            return
        self._take_in(told)

    def _take_in(self, told: str | None) -> None:
        if told == IDLE:
            self._works()
            self._idle = True
            self._board.idle()
        elif told == ENDED:
            self._told_all = True
        elif told is not None:
            self._account(json.loads(told))

    def _drain(self) -> None:
        """Reads the listener's remaining events: it may be behind the query, by seconds on a busy
        machine, and marks the last one.
        """
        while not self._told_all:
            try:
                told = self._inbox.get(timeout=_BEHIND_S)
            except queue.Empty:
                return
            self._take_in(told)

    def _account(self, told: dict[str, Any]) -> None:
        self._batch = max(self._batch, int(told.get("batchId") or 0))
        self._topics.publish_losses()
        account = progress.account(self._job, told, self._totals, now_ms())
        began = told.get("timestamp")
        began_ms = progress.milliseconds(str(began)) if began else None
        for span in progress.spans(self._job, told):
            begin = span.begin or initial(self._place.checkpoint, str(span.source.place.topic))
            with self._lock:
                found = self._letters.saw(span.source, begin, span.end, span.bad, began_ms)
            if found:
                self._board.log(f"{found} records could not be read: {self._job.dead_letters}")
            topic = str(span.source.place.topic)
            self._positions |= {(topic, p): at for p, at in span.end.items()}
        account["dead_letters"] = self._letters.count
        self._board.progress(account)
        self._works()
        self._publish()
        if self._job.sink.place.file:  # Spark writes its batches, which pass no gate
            self._topics.check_batch(self._batch)

    def _publish(self, *, last: bool = False) -> None:
        if last or time.monotonic() - self._offsets_at > _OFFSETS_PACE_S:
            self._offsets_at = time.monotonic()
            if self._positions != self._told_positions:
                self._letters.keep_positions()
                if self._position_is_told():
                    self._told_positions = dict(self._positions)
        if last or self._board.pending():
            self._board.publish_state()

    def _position_is_told(self) -> bool:
        if self._job.sink.is_transactional:  # a batch's transaction says it
            return True
        # Not in an outage: what times out there costs the process of the clients.
        return self._reach.there and self._offsets.publish(self._positions)


def initial(checkpoint: Path, topic: str) -> dict[str, int]:
    """Where a query that has no former batch began to read a topic; empty when that is not kept
    here, which reads as: at the oldest record."""
    for file in sorted(checkpoint.glob("sources/*/0")):
        for line in file.read_text(errors="replace").splitlines():
            if line.startswith("{"):
                found = json.loads(line).get(topic)
                if found is not None:
                    return {str(p): int(at) for p, at in found.items()}
    return {}
