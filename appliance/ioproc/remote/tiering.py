"""Tiered storage as one I/O process drives it: copies of closed segments, deletions of those that
are over, one task at a time for each partition.

    copy:    STARTED on the disk → objects → FINISHED on the disk → local retention may drop it
    delete:  STARTED on the disk → log start, durable → objects gone → FINISHED on the disk

Records are written by a thread, objects by the process behind `StoreChannel`; here is only what
comes next. Invariant: a record is replayed when it is on the disk, never before; nothing is taken
from the log or the store on the word of one that is not. A task that fails is left where it is, and
tried again later and later: what it began is an unfinished segment, which is deleted first.
Called by `remote_storage.py`.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from appliance.base.errors import DiskFull, StorageFailed
from appliance.config.broker import BrokerConfig
from appliance.config.log_config import LogConfig
from appliance.ioproc.durability.log_start_checkpoint import Told
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.remote.copying import (
    NotToBeCopied,
    describe_copy,
    find_uncopied,
    measure_lag,
)
from appliance.ioproc.remote.link import AnswerRoutes, Question, StoreAnswer, ask_copy, ask_delete
from appliance.ioproc.remote.tasks import COPY, DELETE, TieredPartition, TierTask
from appliance.ioproc.turn.job_context import JobContext
from appliance.remotelog.expiry import WholeRetention, select_chain, select_expired
from appliance.remotelog.journal import Change, RemoteJournal, update_of
from appliance.remotelog.segments import RemoteSegments
from appliance.remotelog.states import (
    COPY_SEGMENT_FINISHED,
    DELETE_SEGMENT_FINISHED,
    DELETE_SEGMENT_STARTED,
)
from appliance.shell.flusher import Done, Threads
from appliance.shell.log import NOTICE, WARNING

_FIRST_PAUSE_NS: Final = 1_000_000_000
_LONGEST_PAUSE_NS: Final = 60_000_000_000
_FOR_ALL: Final = 1 << 40
"""Copies have no limit from here on, in bytes per second."""

Trim = Callable[[Partition, Told], None]
"""Makes the log start of a partition durable (`log_start_checkpoint.LogStartCheckpoint.add`)."""
Believed = Callable[[int, int], int]
"""The time by which records are old: (monotonic ns, wall ms) → ms (`RetentionClock.at`)."""


class Tiering:
    """config: the broker's settings as they are now. threads: one thread, which writes records.
    share: how many I/O processes divide the rate and the threads. unique: an id for each copy."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        ground: JobContext,
        threads: Threads,
        routes: AnswerRoutes,
        trim: Trim,
        believed: Believed,
        share: int,
        unique: Callable[[], bytes],
        node: int,
    ) -> None:
        self._config = config
        self._disk, _, self._core, self._events = ground
        self._threads = threads
        self._store: Final = routes.channel_for(self.take_answer)
        self._trim = trim
        self._believed = believed
        self._share = share
        self._unique = unique
        self._node = node
        self._tiered: dict[Partition, TieredPartition] = {}
        self._due: dict[TieredPartition, None] = {}
        self._asked: dict[TierTask, None] = {}
        self._under_way = 0
        self._next_ns = 0
        self.copied_bytes = 0
        self.copies_failed = 0
        self.deletes_failed = 0

    def segments_of(self, partition: Partition) -> RemoteSegments | None:
        """The remote segments of a partition; None when it has none and gets none."""
        tiered = self._tiered.get(partition)
        if tiered is None and partition.log.copied_end >= 0:  # it was opened in this turn
            self._attach(partition)
            tiered = self._tiered.get(partition)
        return None if tiered is None else tiered.journal.known

    def uses_store(self, topic_id: bytes, partition: int) -> bool:
        """True if the store is being asked to copy or delete something of this partition."""
        owners = (one.one.remote_log_segment_id.topic_id_partition for one in self._asked)
        return any((one.id, one.partition) == (topic_id, partition) for one in owners)

    def measure_lags(self) -> tuple[int, int]:
        """(bytes, number) of closed segments that are to be copied, of all partitions."""
        lags = [measure_lag(each.partition.log) for each in self._tiered.values()]
        return sum(one for one, _ in lags), sum(number for _, number in lags)

    # Partitions come and go -----------------------------------------------------------------------

    def opened(self, partition: Partition) -> None:
        """It is served: what it has in the store is known from its folder."""
        if partition in self._tiered or partition.broken is not None:
            return
        if _is_wanted(partition.rules) or partition.log.copied_end >= 0:
            self._attach(partition)

    def closed(self, partition: Partition) -> None:
        """Its log is over; what is under way ends without it."""
        tiered = self._tiered.pop(partition, None)
        if tiered is not None:
            self._due.pop(tiered, None)

    def give_up(self, partition: Partition) -> None:
        """It is about to go: no record of it is being written when this returns."""
        tiered = self._tiered.get(partition)
        while tiered is not None and tiered.writes:
            self._threads.wait()
            self._take_written(0)

    def _attach(self, partition: Partition) -> None:
        log = partition.log
        try:
            journal = RemoteJournal.open_folder(
                self._disk, log.path, partition.topic_id, partition.index
            )
        except StorageFailed as failure:
            self._core.fail(partition, failure)
            return
        tiered = self._tiered[partition] = TieredPartition(partition, journal)
        self._set_copied_end(tiered)
        self._due[tiered] = None

    def _set_copied_end(self, tiered: TieredPartition) -> None:
        """As far as the store has the log; -1 for one that is kept by the rules of every other: its
        copies are over, or there are none and come none."""
        log, rules = tiered.partition.log, tiered.partition.rules
        _, end = select_chain(tiered.journal.known.finished(), log.log_start_offset)
        copies = rules.remote_storage_enable and not rules.remote_log_copy_disable
        log.copied_end = end if (end or copies) and not _is_over(rules) else -1

    # The round ------------------------------------------------------------------------------------

    def tick(self, now_ns: int, now_ms: int) -> None:
        """Take what was done, begin what comes next."""
        self._take_written(now_ns, now_ms)
        if now_ns >= self._next_ns:
            self._look_at_all(now_ns)
        self._begin_some(now_ns, now_ms)

    def _look_at_all(self, now_ns: int) -> None:
        every_ms = self._config().int("remote.log.manager.task.interval.ms")
        self._next_ns = now_ns + every_ms * 1_000_000
        for partition in list(self._core.partitions.values()):
            tiered = self._tiered.get(partition)
            if tiered is None:
                if _is_wanted(partition.rules) and partition.broken is None:
                    self._attach(partition)
            elif tiered.task is None:
                self._set_copied_end(tiered)
                self._due[tiered] = None

    def _begin_some(self, now_ns: int, now_ms: int) -> None:
        copiers = self._config().int("remote.log.manager.copier.thread.pool.size")
        most = max(1, copiers // self._share)
        for tiered in list(self._due):
            if self._under_way >= most:
                return
            if tiered.task is None and not tiered.writes and now_ns >= tiered.again_ns:
                del self._due[tiered]
                if self._serves(tiered):
                    self._guarded(tiered, partial(self._begin, tiered, now_ns, now_ms))

    def _begin(self, tiered: TieredPartition, now_ns: int, now_ms: int) -> None:
        try:
            task = self._next_task(tiered, now_ns, now_ms)
        except StorageFailed as failure:
            self._core.fail(tiered.partition, failure)
            return
        except NotToBeCopied as why:
            self._failed(tiered, COPY, str(why), now_ns)
            return
        if task is None:
            self._set_copied_end(tiered)
            if tiered.journal.is_sparse:
                tiered.writes += 1
                job = partial(tiered.journal.replace_file, tiered.journal.encode_whole())
                self._threads.submit((tiered, None), job)
            return
        tiered.task = task
        self._under_way += 1
        if task.kind == COPY:
            self._write(tiered, task.one)
        elif task.one.remote_log_segment_state == DELETE_SEGMENT_STARTED:
            self._ask(tiered, ask_delete(task.one))
        else:
            self._write(tiered, update_of(task.one, DELETE_SEGMENT_STARTED, now_ms))

    def _next_task(self, tiered: TieredPartition, now_ns: int, now_ms: int) -> TierTask | None:
        """Unfinished segments go first, then those that are over, then the oldest uncopied."""
        partition, known = tiered.partition, tiered.journal.known
        for one in known.unfinished():
            return TierTask(DELETE, one)
        rules, log = partition.rules, partition.log
        over = _is_over(rules)
        kept = WholeRetention(
            log.log_start_offset,
            rules.retention_ms,
            rules.retention_bytes,
            measure_lag(log)[0] + log.active_size,
            over,
        )
        old_ms = self._believed(now_ns, now_ms)
        for one in select_expired(known.finished(), kept, old_ms):
            return TierTask(DELETE, one, over=over)
        if not rules.remote_storage_enable or rules.remote_log_copy_disable:
            return None
        found = find_uncopied(partition)
        if found is None:
            return None
        one, paths, data = describe_copy(partition, *found, self._unique(), self._node, now_ms)
        return TierTask(COPY, one, paths=paths, data=data)

    # The steps of a task --------------------------------------------------------------------------

    def _write(self, tiered: TieredPartition, change: Change) -> None:
        tiered.writes += 1
        job = partial(tiered.journal.write_change, change)
        self._threads.submit((tiered, change), job)

    def _ask(self, tiered: TieredPartition, question: Question) -> None:
        assert tiered.task is not None
        self._asked[tiered.task] = None
        self._store.ask_store((tiered, tiered.task), question)

    def _take_written(self, now_ns: int, now_ms: int = 0) -> None:
        for done in self._threads.take_ended():
            tiered = done.tag[0]
            tiered.writes -= 1
            self._guarded(tiered, partial(self._written, done, now_ns, now_ms))

    def _written(self, done: Done, now_ns: int, now_ms: int) -> None:
        """A record is on the disk, or it is not."""
        tiered, change = done.tag
        if not self._serves(tiered):
            self._end(tiered)
            return
        task: TierTask | None = tiered.task
        if isinstance(done.failure, DiskFull):
            self._failed(tiered, COPY if task is None else task.kind, str(done.failure), now_ns)
            return
        if isinstance(done.failure, StorageFailed):
            self._end(tiered)
            self._core.fail(tiered.partition, done.failure)
            return
        if done.failure is not None:
            raise done.failure
        if change is None:  # the file was written anew
            return
        assert task is not None
        tiered.journal.known.replay(change)
        state = change.remote_log_segment_state
        if state == DELETE_SEGMENT_STARTED:
            self._move_log_start(tiered)
        elif state == COPY_SEGMENT_FINISHED:
            self._set_copied_end(tiered)
            self.copied_bytes += task.one.segment_size_in_bytes
            self._succeeded(tiered)
        elif state == DELETE_SEGMENT_FINISHED:
            self._succeeded(tiered)
        else:
            rate = self._config().int("remote.log.manager.copy.max.bytes.per.second")
            share = min(rate, _FOR_ALL) / self._share
            self._ask(tiered, ask_copy(task.one, task.paths, task.data, share))

    def _move_log_start(self, tiered: TieredPartition) -> None:
        """Hide from readers what is about to go, after a power cut, too."""
        partition, task = tiered.partition, tiered.task
        assert task is not None
        log = partition.log
        target = task.one.end_offset + 1
        if task.over:
            target = min(target, log.segments[0].base)
        if task.one.remote_log_segment_state != COPY_SEGMENT_FINISHED:
            target = 0  # a copy that was cut off: nobody ever read it
        if target <= log.log_start_offset:
            self._ask(tiered, ask_delete(task.one))
            return
        log.advance_log_start(target)
        partition.trimmed()
        self._core.publish(partition)
        self._trim(partition, partial(self._log_start_told, tiered, task))

    def _log_start_told(
        self, tiered: TieredPartition, task: TierTask, failure: StorageFailed | None
    ) -> None:
        if tiered.task is not task or not self._serves(tiered):
            self._end(tiered)
        elif failure is not None:
            self._failed(tiered, task.kind, str(failure), 0)
        else:
            self._ask(tiered, ask_delete(task.one))

    def take_answer(self, answer: StoreAnswer, now_ns: int, now_ms: int) -> None:
        """The store has done what a task asked, or it has not."""
        self._guarded(answer.tag[0], partial(self._answered, answer, now_ns, now_ms))

    def _answered(self, answer: StoreAnswer, now_ns: int, now_ms: int) -> None:
        tiered, task = answer.tag
        self._asked.pop(task, None)
        if tiered.task is not task or not self._serves(tiered):
            self._end(tiered)
        elif answer.failure:
            self._failed(tiered, task.kind, answer.failure, now_ns)
        else:
            state = COPY_SEGMENT_FINISHED if task.kind == COPY else DELETE_SEGMENT_FINISHED
            self._write(tiered, update_of(task.one, state, now_ms))

    def _succeeded(self, tiered: TieredPartition) -> None:
        if tiered.failures:
            self._events.event(NOTICE, "remote-goes-on", partition=tiered.partition)
        tiered.failures, tiered.said, tiered.again_ns = 0, "", 0
        self._end(tiered)
        self._due[tiered] = None  # there may be more of it

    def _failed(self, tiered: TieredPartition, kind: int, text: str, now_ns: int) -> None:
        """Tried again later and later; said when the cause is another one."""
        if kind == COPY:
            self.copies_failed += 1
        else:
            self.deletes_failed += 1
        pause = min(_FIRST_PAUSE_NS << min(tiered.failures, 10), _LONGEST_PAUSE_NS)
        tiered.failures += 1
        tiered.again_ns = now_ns + pause
        if text != tiered.said:
            tiered.said = text
            if kind == COPY:
                self._events.event(
                    WARNING, "remote-copy-failed", partition=tiered.partition, cause=text
                )
            else:
                self._events.event(
                    WARNING, "remote-delete-failed", partition=tiered.partition, cause=text
                )
        self._end(tiered)
        self._due[tiered] = None

    def _end(self, tiered: TieredPartition) -> None:
        if tiered.task is not None:
            tiered.task = None
            self._under_way -= 1

    def _serves(self, tiered: TieredPartition) -> bool:
        partition = tiered.partition
        served = self._core.partitions.get(partition.handle) is partition
        return served and partition.broken is None and self._tiered.get(partition) is tiered

    def _guarded(self, tiered: TieredPartition, step: Callable[[], None]) -> None:
        """An exception costs the task: what it began is found as unfinished."""
        try:
            step()
        except Exception as bug:
            self._end(tiered)
            tiered.again_ns = max(tiered.again_ns, self._next_ns)
            self._core.barrier.report_bug("tiered storage", bug, partition=tiered.partition)


def _is_wanted(rules: LogConfig) -> bool:
    """True if closed segments are to be copied, or were."""
    return rules.remote_storage_enable and not rules.compact


def _is_over(rules: LogConfig) -> bool:
    """True if tiering was switched off, and what was copied with it."""
    return not rules.remote_storage_enable and rules.remote_log_delete_on_disable
