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
from typing import Any, Final

from appliance.base.errors import DiskFull, StorageFailed
from appliance.config.broker import BrokerConfig
from appliance.ioproc.durability.log_start_checkpoint import Told
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.remote.adoption import close_gap
from appliance.ioproc.remote.copying import NotToBeCopied, measure_lag
from appliance.ioproc.remote.failures import FENCED
from appliance.ioproc.remote.link import AnswerRoutes, Question, StoreAnswer, ask_copy, ask_delete
from appliance.ioproc.remote.manifest_steps import (
    TO_CLAIM,
    TO_PUBLISH,
    TO_READ,
    TO_SWEEP,
    ask_claim,
    ask_newer,
    ask_publish,
    ask_sweep,
    entries_in,
)
from appliance.ioproc.remote.task_choice import (
    FIRST_LOOK_NS,
    LOOK_NS,
    chain_of,
    choose_task,
    copies,
    end_in_log,
    is_over,
    is_wanted,
)
from appliance.ioproc.remote.tasks import (
    CLAIM,
    COPY,
    DELETE,
    FOLLOW,
    SWEEP,
    TieredPartition,
    TierTask,
)
from appliance.ioproc.turn.job_context import JobContext
from appliance.logstore.producer_snapshot import NEVER
from appliance.remotelog.journal import (
    Change,
    RemoteJournal,
    decode_entries,
    encode_entries,
    update_of,
)
from appliance.remotelog.manifests import Term
from appliance.remotelog.records import RemoteLogSegmentMetadataUpdateRecord as Update
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
    share: how many I/O processes divide the rate and the threads. chance: 8 random
    bytes for the id of a copy."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        ground: JobContext,
        threads: Threads,
        routes: AnswerRoutes,
        trim: Trim,
        believed: Believed,
        share: int,
        chance: Callable[[], bytes],
        node: int,
    ) -> None:
        self._config = config
        self._disk, _, self._core, self._events = ground
        self._threads = threads
        self._store: Final = routes.channel_for(self.take_answer)
        self._trim = trim
        self._believed = believed
        self._share = share
        self._chance = chance
        self.node = node
        self.is_alone: Callable[[Partition], bool] = lambda one: not one.role.replicas
        self._tiered: dict[Partition, TieredPartition] = {}
        self._due: dict[TieredPartition, None] = {}
        self._asked: dict[TierTask, tuple[bytes, int]] = {}
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
        return (topic_id, partition) in self._asked.values()

    def measure_lags(self) -> tuple[int, int]:
        """(bytes, number) of closed segments that are to be copied, of all partitions."""
        lags = [measure_lag(each.partition.log) for each in self._tiered.values()]
        return sum(one for one, _ in lags), sum(number for _, number in lags)

    # Partitions come and go -----------------------------------------------------------------------

    def opened(self, partition: Partition) -> None:
        """It is served: what it has in the store is known from its folder."""
        if partition in self._tiered or partition.broken is not None:
            return
        if is_wanted(partition.rules) or partition.log.copied_end >= 0:
            self._attach(partition)

    def closed(self, partition: Partition) -> None:
        """Its log is over; what is under way ends without it."""
        tiered = self._tiered.pop(partition, None)
        if tiered is not None:
            self._due.pop(tiered, None)

    def role_changed(self, partition: Partition) -> None:
        """This node leads or follows, in another epoch maybe: a task of before is over."""
        tiered = self._tiered.get(partition)
        if tiered is not None:
            if tiered.task is not None and not self._goes_on(tiered, tiered.task):
                self._end(tiered)
            tiered.again_ns = 0
            self._due[tiered] = None

    def take_over(self, partition: Partition, entries: bytes, term: Term) -> RemoteSegments:
        """The log of a follower is about to begin behind these remote segments: they are on the
        disk at return. Raises StorageFailed."""
        if partition not in self._tiered:
            self._attach(partition)
        self.give_up(partition)
        tiered = self._tiered[partition]
        self._end(tiered)
        known, _ = decode_entries(entries, *tiered.key)
        tiered.journal.replace_file(entries)
        tiered.journal.known, tiered.term = known, term
        self._due[tiered] = None
        return known

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
        _, end = chain_of(tiered.partition, tiered.journal.known)
        log.copied_end = end if (end or copies(rules)) and not is_over(rules) else -1
        log.snapshots.needed_from = log.copied_end if copies(rules) else NEVER

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
                if is_wanted(partition.rules) and partition.broken is None:
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
            old_ms = self._believed(now_ns, now_ms)
            task = choose_task(tiered, now_ns, now_ms, old_ms, self._chance, self.node)
        except StorageFailed as failure:
            self._core.fail(tiered.partition, failure)
            return
        except NotToBeCopied as why:
            self._failed(tiered, COPY, str(why), now_ns)
            return
        if task is None:
            self._set_copied_end(tiered)
            if tiered.journal.is_sparse:
                self._write_anew(tiered, tiered.journal.encode_whole())
            return
        tiered.task = task
        self._under_way += 1
        known, key = tiered.journal.known, tiered.key
        holders = (self.node, *tiered.partition.role.replicas)
        if task.kind == COPY:
            self._write(tiered, task.segment)
        elif task.kind == CLAIM:
            alone = self.is_alone(tiered.partition)
            own = encode_entries(known)
            self._ask(tiered, ask_claim(key, holders, task.epoch, own, alone=alone))
        elif task.kind == FOLLOW:
            node = self.node if now_ns >= tiered.look_ns else None
            self._ask(tiered, ask_newer(key, node, tiered.term))
        elif task.kind == SWEEP:
            self._ask(tiered, ask_sweep(key, holders, tiered.term, encode_entries(known)))
        elif task.segment.remote_log_segment_state == DELETE_SEGMENT_STARTED:
            self._move_log_start(tiered)
        else:
            self._write(tiered, update_of(task.segment, DELETE_SEGMENT_STARTED, now_ms))

    # The steps of a task --------------------------------------------------------------------------

    def _write(self, tiered: TieredPartition, change: Change) -> None:
        tiered.writes += 1
        job = partial(tiered.journal.write_change, change)
        self._threads.submit((tiered, change), job)

    def _write_anew(self, tiered: TieredPartition, entries: bytes) -> None:
        tiered.writes += 1
        self._threads.submit((tiered, None), partial(tiered.journal.replace_file, entries))

    def _publish(self, tiered: TieredPartition, change: Update | None = None) -> None:
        """Tell other nodes what is known, with a change that is not known here before they are."""
        entries = encode_entries(tiered.journal.known, change)
        self._ask(tiered, ask_publish(tiered.key, tiered.term, entries))

    def _ask(self, tiered: TieredPartition, question: Question) -> None:
        assert tiered.task is not None
        self._asked[tiered.task] = tiered.key
        self._store.ask_store((tiered, tiered.task, question["op"]), question)

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
            if task is not None and task.entries is not None:
                self._adopt(tiered, task, now_ns)
            return
        if task is None:  # the role of this node changed meanwhile
            tiered.journal.known.replay(change)
            return
        tiered.journal.known.replay(change)
        state = change.remote_log_segment_state
        if not self._goes_on(tiered, task):
            self._end(tiered)
        elif state == DELETE_SEGMENT_STARTED:
            self._move_log_start(tiered)
        elif state == COPY_SEGMENT_FINISHED:
            self._set_copied_end(tiered)
            self.copied_bytes += task.segment.segment_size_in_bytes
            self._succeeded(tiered)
        elif state == DELETE_SEGMENT_FINISHED:
            self._succeeded(tiered)
        else:
            rate = self._config().int("remote.log.manager.copy.max.bytes.per.second")
            share = min(rate, _FOR_ALL) / self._share
            self._ask(tiered, ask_copy(task.segment, task.paths, task.data, share))

    def _adopt(self, tiered: TieredPartition, task: TierTask, now_ns: int) -> None:
        """The manifest is in the journal: it is what is known."""
        assert task.entries is not None
        known, _ = decode_entries(task.entries, *tiered.key)
        tiered.journal.known = known
        leads = task.kind == CLAIM
        if leads and self._goes_on(tiered, task):
            tiered.claimed = task.epoch
            if close_gap(tiered.partition, known):
                self._core.publish(tiered.partition)
        self._set_copied_end(tiered)
        tiered.look_ns = now_ns + (FIRST_LOOK_NS if leads else LOOK_NS)
        self._succeeded(tiered, more=leads)

    def _move_log_start(self, tiered: TieredPartition) -> None:
        """Hide from readers what is about to go, after a power cut, too."""
        partition, task = tiered.partition, tiered.task
        assert task is not None
        log, one = partition.log, task.segment
        target = end_in_log(partition, one)
        if task.over:
            target = min(target, log.segments[0].base)
        if one.remote_log_segment_state == DELETE_SEGMENT_STARTED:  # begun by who did not end it
            start, end = chain_of(partition, tiered.journal.known)
            target = start if end else log.segments[0].base
        elif one.remote_log_segment_state != COPY_SEGMENT_FINISHED or target == one.start_offset:
            target = 0  # a copy that was cut off, or records that the log lost: nobody reads them
        if target <= log.log_start_offset:
            self._publish(tiered)
            return
        log.advance_log_start(target)
        partition.trimmed()
        self._core.publish(partition)
        self._trim(partition, partial(self._log_start_told, tiered, task))

    def _log_start_told(
        self, tiered: TieredPartition, task: TierTask, failure: StorageFailed | None
    ) -> None:
        if tiered.task is not task or not self._goes_on(tiered, task):
            self._end(tiered, task)
        elif failure is not None:
            self._failed(tiered, task.kind, str(failure), 0)
        else:
            self._publish(tiered)

    def take_answer(self, answer: StoreAnswer, now_ns: int, now_ms: int) -> None:
        """The store has done what a task asked, or it has not."""
        self._guarded(answer.tag[0], partial(self._answered, answer, now_ns, now_ms))

    def _answered(self, answer: StoreAnswer, now_ns: int, now_ms: int) -> None:
        tiered, task, op = answer.tag
        self._asked.pop(task, None)
        if answer.failure and op == TO_PUBLISH and tiered.task is task:
            tiered.term = Term(tiered.term.epoch, tiered.term.number + 1)  # it may be there
        if tiered.task is not task or not self._goes_on(tiered, task):
            self._end(tiered, task)
        elif answer.kind == FENCED:
            tiered.claimed = -1  # the metadata will say who leads
            self._pause(tiered, now_ns)
            self._end(tiered)
            self._due[tiered] = None
        elif answer.failure:
            self._failed(tiered, task.kind, answer.failure, now_ns)
        elif op in (TO_CLAIM, TO_READ):
            self._take_manifest(tiered, task, answer.fields, now_ns)
        elif op == TO_PUBLISH:
            tiered.term = Term(*answer.fields["term"])
            if task.kind == DELETE:
                self._ask(tiered, ask_delete(task.segment))
            else:
                self._write(tiered, update_of(task.segment, COPY_SEGMENT_FINISHED, now_ms))
        elif op == TO_SWEEP:
            tiered.look_ns = now_ns + LOOK_NS
            self._succeeded(tiered)
        elif task.kind == COPY:
            self._publish(tiered, update_of(task.segment, COPY_SEGMENT_FINISHED, now_ms))
        else:
            self._write(tiered, update_of(task.segment, DELETE_SEGMENT_FINISHED, now_ms))

    def _take_manifest(
        self, tiered: TieredPartition, task: TierTask, fields: dict[str, Any], now_ns: int
    ) -> None:
        tiered.term = Term(*fields["term"])
        if "entries" not in fields:
            tiered.look_ns = now_ns + LOOK_NS
            self._succeeded(tiered, more=False)
            return
        task.entries = entries_in(fields)
        self._write_anew(tiered, task.entries)

    def _succeeded(self, tiered: TieredPartition, *, more: bool = True) -> None:
        """more: there may be something left to do."""
        if tiered.said:
            self._events.event(NOTICE, "remote-goes-on", partition=tiered.partition)
        tiered.failures, tiered.said, tiered.again_ns = 0, "", 0
        self._end(tiered)
        if more:
            self._due[tiered] = None

    def _failed(self, tiered: TieredPartition, kind: int, text: str, now_ns: int) -> None:
        """Tried again later and later; said when the cause is another one."""
        copies_on = kind != DELETE
        if copies_on:
            self.copies_failed += 1
        else:
            self.deletes_failed += 1
        self._pause(tiered, now_ns)
        if text != tiered.said:
            tiered.said = text
            if copies_on:
                self._events.event(
                    WARNING, "remote-copy-failed", partition=tiered.partition, cause=text
                )
            else:
                self._events.event(
                    WARNING, "remote-delete-failed", partition=tiered.partition, cause=text
                )
        self._end(tiered)
        self._due[tiered] = None

    def _pause(self, tiered: TieredPartition, now_ns: int) -> None:
        pause = min(_FIRST_PAUSE_NS << min(tiered.failures, 10), _LONGEST_PAUSE_NS)
        tiered.failures += 1
        tiered.again_ns = now_ns + pause

    def _end(self, tiered: TieredPartition, task: TierTask | None = None) -> None:
        """The task is over. task: only if it is this one."""
        if tiered.task is not None and task in (None, tiered.task):
            tiered.task = None
            self._under_way -= 1

    def _goes_on(self, tiered: TieredPartition, task: TierTask) -> bool:
        """True if this node still has the role in which the task began."""
        partition = tiered.partition
        leads = task.kind != FOLLOW
        same = partition.leader_epoch == task.epoch and partition.leads is leads
        return self._serves(tiered) and same

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
