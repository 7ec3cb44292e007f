"""The coordinators of one kind in their ioproc: requests to shards, records to logs, answers back.

Every partition of the kind's topic that this node leads has a shard (`coordinators.runtime.shard`
says how it wants to be driven), for one leader epoch: when the partition follows, closes, or is led
in another epoch, the shard is dropped with all that it promised and had not written. In a turn
requests are decided first, then all records of one partition are appended as one batch, and the
answers go out, and endings begin, when the sync covers them. Invariant: a shard whose records could
not be appended is dropped; a decision that fails by a bug costs its shard a reload, never the
process.
"""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from appliance.authorization.rights import Callers
from appliance.base import errors
from appliance.base.clock import Clock
from appliance.base.errors import MalformedRequest, PeerError, StorageFailed
from appliance.config.broker import BrokerConfig
from appliance.coordinators.runtime.call import NEVER, Outcome
from appliance.coordinators.runtime.kind import CoordinatorPartition, Kind, Lent
from appliance.coordinators.runtime.shard import ACTIVE, LOADING, Shard
from appliance.coordinators.runtime.transaction_effects import Ending
from appliance.ioproc.coordination.coordinator_loading import Loading, LoadResult, Loads
from appliance.ioproc.coordination.coordinator_partition import LedCoordinator
from appliance.ioproc.coordination.long_work import LONG_ANSWER, LONG_ANSWERS, LongWork, has_many
from appliance.ioproc.coordination.marker_sender import MarkerSender
from appliance.ioproc.coordination.pending_requests import PendingRequest, PendingRequests
from appliance.ioproc.netproc_peer import NetprocPeer
from appliance.ioproc.partition_failures import PartitionFailures
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.requests.appends import Appends
from appliance.metadata.image import MetadataImage
from appliance.ring.counters import ErrorCounts
from appliance.ring.messages import UNVERIFIED, Message
from appliance.ring.ring import RingWriter
from appliance.shell.answers import Answers
from appliance.shell.log import ERROR, INFO, NOTICE
from appliance.shell.log import Log as EventLog
from appliance.wire import error_codes
from appliance.wire.plain import encode

AT_ONCE: Final = 0
MOST_OPENED: Final = 256
"""Partitions that a request adds whose homes are told of that."""
SLICE_NS: Final = 1_500_000
"""How long loading may take of one turn, for each kind of coordinator."""


class CoordinatorHost:
    """An observer of partitions (`observing`), and who answers for the kind.

    apis: the requests that it answers. decided: there are records to stage. waiting: there are
    answers to send. long: what takes several turns. due_ms: when `turn` has something to do, level
    time. writers: the ring to each
    netproc, by index. lent: what shards may ask of this process. counts: of the errors that are
    answered. callers: what those who ask may do. endings: carries out what was decided about
    transactions."""

    def __init__(
        self,
        kind: Kind,
        appends: Appends,
        failures: PartitionFailures,
        config: BrokerConfig,
        writers: Mapping[int, RingWriter],
        image: MetadataImage,
        clock: Clock,
        lent: Lent,
        counts: ErrorCounts,
        callers: Callers,
        events: EventLog,
        endings: MarkerSender,
    ) -> None:
        self.apis = kind.APIS
        self.decided = False
        self.waiting = False
        self._kind = kind
        self._topic = kind.TOPIC.name
        self._appends = appends
        self._failures = failures
        self._config = config
        self._image = image
        self._clock = clock
        self._led: dict[int, LedCoordinator] = {}
        self._lent = lent._replace(beside=self._led.values)
        self._time = lent.time
        self._counts = counts
        self._events = events
        self._endings = endings
        self._answers = {index: Answers(writer) for index, writer in writers.items()}
        self._requests = PendingRequests(callers, kind.takes_turns)
        self.long = LongWork(clock, self._requests, counts, self._put, self._tell_bug, kind.LIST)
        self._touched: dict[LedCoordinator, None] = {}
        self._unsent: dict[LedCoordinator, None] = {}
        self._loading = Loading(clock)
        self.unread = self._loading.queue  # who is not loaded yet
        self._isolated = False
        self.due_ms = NEVER

    # Requests -------------------------------------------------------------------------------------

    def take_piece(self, asker: NetprocPeer, message: Message, now_ms: int) -> None:
        """A piece of a request has come; it is decided when that was the last one."""
        try:
            asked = self._requests.take_piece(asker.index, message, len(asker.arena))
        except MalformedRequest:
            self._answers[asker.index].put_answer(message.token, errors.INVALID_REQUEST, b"")
            self.waiting = True
            return
        if asked is not None and asked.body is None:
            self._serve(asker, message.handle, asked, now_ms)
        elif asked is not None:
            decide = partial(self._serve, asker, message.handle)
            self.long.decide(asked, self._led.get(message.handle), decide)
            self.due_ms = AT_ONCE

    def _serve(self, asker: NetprocPeer, handle: int, asked: PendingRequest, now_ms: int) -> None:
        call, request = asked.call, asked.request
        led = self._led.get(handle)
        if led is None or (self._isolated and self._appends.deserts(led.partition)):
            self._send(call.token, self._kind.unserved(call, request, 0, 1))
            return
        partition = led.partition
        held = led.lost or (partition.log.has_unwritten and partition in self._appends.unwritten)
        no_more = partition.space.tight or partition.short
        if held or (no_more and self._kind.grows(call, request)):
            self._refuse(led, asked, errors.COORDINATOR_NOT_AVAILABLE)
            return
        if led.loading is not None:
            self._loading.hurry(led)
        try:
            level_ms = now_ms - self._time.ahead_ms
            outcome = led.shard.handle(call, request, level_ms)
            if outcome.unverified:
                adds = call.version >= self._kind.ADDING[call.api_key]
                standing, guard = led.standing(request, asked.guard, now_ms, adds=adds)
                if guard:
                    del self._requests.asked[call.token]
                    code = errors.INVALID_TXN_STATE
                    asker.out.append((UNVERIFIED, code + 1, handle, asked.token, guard))
                    return
                outcome = led.shard.handle(replace(call, standing=standing), request, level_ms)
        except Exception:
            self._bug(led)
            self._put(asked, errors.UNKNOWN_SERVER_ERROR, b"")
        else:
            if led.loading is None:
                self._carry_out(led, outcome, now_ms)
                return
            for token, values in outcome.responses:  # a refusal, which waits for nothing
                self._send(token, values)

    def _decide(self, led: LedCoordinator, now_ms: int, decision: Callable[[], Outcome]) -> None:
        """Runs a decision that a shard makes on its own."""
        try:
            outcome = decision()
        except Exception:
            self._bug(led)
        else:
            self._carry_out(led, outcome, now_ms)

    def _bug(self, led: LedCoordinator) -> None:
        """A decision failed. Half of it may have been applied: what is in the log counts."""
        self._tell_bug(str(led.partition))
        self._restart(led)

    def _tell_bug(self, where: str) -> None:
        why = traceback.format_exc(limit=-4)
        self._events.event_seldom(ERROR, "bug", partition=where, cause=why)

    def _carry_out(self, led: LedCoordinator, outcome: Outcome, now_ms: int) -> None:
        led.now_ms = now_ms
        if outcome.producer is not None:
            self._append(led)
        led.responses += outcome.responses
        if led.lost:
            return
        if outcome.producer is not None:
            led.producer = outcome.producer
        led.records += outcome.records
        for note in outcome.notes:
            say = self._events.event_of if note.is_loss else self._events.note_of
            level = NOTICE if note.is_loss else INFO
            say(level, note.event, note.about, **{self._kind.TOPIC.unit: note.about, **note.fields})
        if led.shard.ENDS:
            led.endings += led.shard.take_endings()
            led.openings += led.shard.take_openings()
        if outcome.producer is not None:
            self._append(led)
        elif led.records or led.responses or led.endings:
            self._touched[led] = None
            self.decided = True
        self.due_ms = min(self.due_ms, led.shard.next_deadline_ms)

    def _refuse(self, led: LedCoordinator, asked: PendingRequest, code: int) -> None:
        self._send(asked.call.token, led.shard.refuse(asked.call, asked.request, code))

    def _refuse_unsent(self, led: LedCoordinator, code: int, late_ms: int = NEVER) -> None:
        """Refuses what never will be written, or what should have been committed by late_ms."""
        for token in led.take_unsent() if late_ms == NEVER else led.take_late(late_ms):
            asked = self._requests.asked.get(token)
            if asked is not None:
                self._refuse(led, asked, code)

    # The end of a turn ----------------------------------------------------------------------------

    def stage(self) -> None:
        """Append what was decided in this turn."""
        self.decided = False
        touched, self._touched = self._touched, {}
        for led in touched:
            try:
                self._append(led)
            except Exception:
                self._begin_anew(led)

    def _begin_anew(self, led: LedCoordinator) -> None:
        """An exception may have lost what was about to be said: who waits asks again, and the shard
        begins from the log."""
        self._tell_bug(str(led.partition))
        partition = led.partition
        self._resign(partition)
        if partition.broken is None and partition.progress.leads:
            self.leads(partition)

    def _append(self, led: LedCoordinator) -> None:
        appends = self._appends
        # What completes a transaction is synced with what begins the next: one sync less of five.
        awaited = bool(led.responses or led.openings or led.endings) or not led.shard.ENDS
        batches = led.take_batches()
        for batch in batches:
            if not appends.append_own(led.partition, memoryview(batch), led.now_ms, awaited):
                led.lost = True
                return  # `closed` or `no_room` will be called
        if batches:
            led.unawaited = not awaited
        elif awaited and led.unawaited:
            appends.hasten(led.partition)
            led.unawaited = False
        led.staged(led.now_ms - self._time.ahead_ms)
        self.due_ms = min(self.due_ms, led.late_ms)
        if led.waiting or led.decided:
            self._unsent[led] = None
            self.waiting = True

    def release(self) -> bool:
        """Send the answers whose records are committed now, and begin the endings; False when some
        answers wait for room."""
        for led in list(self._unsent):
            try:
                for token, values in led.due():
                    self._send(token, values)
                if led.decided:
                    self._carry_on(led)
                if not led.waiting and not led.decided:
                    del self._unsent[led]
            except Exception:
                self._begin_anew(led)
        sent = True
        for answers in self._answers.values():
            sent = answers.push() and sent
        self.waiting = bool(self._unsent) or not sent
        return sent

    def _carry_on(self, led: LedCoordinator) -> None:
        """Transactions may go on in the partitions that were added, if they are at home here: other
        homes ask. And they end where they must."""
        shard, endings = led.shard, self._endings
        for openings, decided in led.due_decisions():
            for opening in openings:
                if len(opening.partitions) > MOST_OPENED:
                    continue  # those homes ask, too
                for where in opening.partitions:
                    handle = endings.handle(where)
                    if handle is not None:
                        self._appends.expect(handle, opening.producer_id, opening.epoch)
            for ending in decided:
                endings.begin_ending(ending, shard, partial(self._marked, led, shard, ending))

    def _marked(
        self,
        led: LedCoordinator,
        shard: Shard[Any],
        ending: Ending,
        where: tuple[tuple[str, int], ...],
        now_ms: int,
    ) -> bool:
        """Markers are durable in these partitions. False: nothing can be written down now."""
        assert led.shard is shard and shard.phase == ACTIVE, "it would have been forgotten"
        partition = led.partition
        if partition.space.low:
            return False
        self._decide(led, now_ms, lambda: shard.marked(ending, where, self._time.of(now_ms)))
        return True

    def _send(self, token: int, values: Mapping[str, Any]) -> None:
        asked = self._requests.asked.get(token)
        if asked is None:
            return  # its netproc died
        key, version = asked.call.api_key, asked.call.version
        if asked.body is not None or (key in LONG_ANSWERS and has_many(values)):
            self.long.answer(asked, values)
            self.due_ms = AT_ONCE
            return
        try:
            body = encode(key, version, values)
        except Exception:
            self._tell_bug(f"an answer of API {key} v{version}")
            self._put(asked, errors.UNKNOWN_SERVER_ERROR, b"")
        else:
            for code in error_codes.collect_codes(key, version, values):
                self._counts.failed(key, code)
            if len(body) >= LONG_ANSWER:
                self.long.answered += len(body)
            self._put(asked, errors.NONE, body)

    def _put(self, asked: PendingRequest, code: int, body: bytes) -> None:
        self._requests.asked.pop(asked.call.token, None)
        self._answers[asked.peer].put_answer(asked.token, code, body)
        self.waiting = True

    # Time, topics, metadata -----------------------------------------------------------------------

    def run_once(self, now_ms: int) -> None:
        """Load, go on with long requests, and do what is due."""
        self.long.run_turn()
        if self._loading.queue:
            for loaded in self._loading.load_slice(SLICE_NS):
                try:
                    self._loaded(loaded, now_ms)
                except Exception:
                    self._begin_anew(loaded.led)
        level_ms = self._time.of(now_ms)
        for led in list(self._led.values()):
            if led.shard.phase == ACTIVE and led.shard.next_deadline_ms <= level_ms:
                self._decide(led, now_ms, partial(led.shard.tick, level_ms))
            if led.late_ms <= level_ms:
                self._refuse_unsent(led, errors.COORDINATOR_NOT_AVAILABLE, level_ms)
        if self.long.busy or (self._loading.queue and not self._loading.pause_ms):
            self.due_ms = AT_ONCE
        else:
            rest_ms = level_ms + self._loading.pause_ms if self._loading.queue else NEVER
            dues = (min(led.shard.next_deadline_ms, led.late_ms) for led in self._led.values())
            self.due_ms = min(rest_ms, min(dues, default=NEVER))

    def ids_came(self) -> None:
        """There are producer ids again."""
        now_ms = self._clock.wall_ms()
        for led in list(self._led.values()):
            if led.shard.phase == ACTIVE:
                self._decide(led, now_ms, partial(led.shard.ids_came, self._time.of(now_ms)))

    def shards(self) -> list[Shard[Any]]:
        """Those that serve here."""
        return [led.shard for led in self._led.values() if led.shard.phase == ACTIVE]

    def follow(self, image: MetadataImage) -> None:
        """The image of this process may be another one now."""
        self._image = image
        self._endings.follow(image)
        for led in list(self._led.values()):
            try:
                led.shard.follow(image)
            except Exception:
                self._begin_anew(led)

    def topic_deleted(self, name: str, topic_id: bytes, now_ms: int) -> None:
        """Drops the state of a deleted topic."""
        for led in list(self._led.values()):
            if led.shard.phase == LOADING:
                led.deleted.append((name, topic_id))
            else:
                self._forget_topic(led, name, topic_id, now_ms)

    def _forget_topic(self, led: LedCoordinator, name: str, topic_id: bytes, now_ms: int) -> None:
        forget = partial(led.shard.on_topic_deleted, name, topic_id, self._time.of(now_ms))
        self._decide(led, now_ms, forget)

    # Partitions and askers come and go ------------------------------------------------------------

    def opened(self, partition: Partition) -> None:
        """Does nothing: leadership decides which partitions coordinate."""

    def leads(self, partition: Partition) -> None:
        """Coordinate what this partition holds, once it is loaded."""
        if partition.topic != self._topic:
            return
        before = self._led.get(partition.handle)
        if before is not None and before.epoch == partition.leader_epoch:
            return
        self._resign(partition)
        patience_ms = self._config.int(self._kind.PATIENCE) if self._kind.PATIENCE else NEVER
        led = LedCoordinator(partition, self._shard(partition), patience_ms)
        partition.on_marker = led.end_transaction
        self._led[partition.handle] = led
        self._begin_loading(led)
        if partition.log.log_start_offset == partition.log.end_offset:
            loaded = self._loading.read(led, 0)
            assert loaded is not None, "there is nothing to read"
            self._loaded(loaded, self._clock.wall_ms())  # a new one serves at once

    def follows(self, partition: Partition) -> None:
        """Another node coordinates."""
        self._resign(partition)

    def closed(self, partition: Partition) -> None:
        """Its log failed or is going away."""
        self._resign(partition)

    def _resign(self, partition: Partition) -> None:
        """Stops coordinating: refuses waiting requests with NOT_COORDINATOR."""
        led = self._led.pop(partition.handle, None)
        if led is None:
            return
        partition.on_marker = None
        self._loading.stop(led)
        self._touched.pop(led, None)
        self._unsent.pop(led, None)
        self._end(led)
        self._refuse_unsent(led, errors.NOT_COORDINATOR)

    def _end(self, led: LedCoordinator) -> None:
        self._endings.forget_owner(led.shard)
        for token, values in led.shard.resign().responses:
            self._send(token, values)

    def no_room(self, partition: Partition, *, lost: bool) -> None:
        """Refuses what found no room, so that clients retry. The shard goes on from what is held,
        which is written before anything else, and must forget what is lost."""
        led = self._led.get(partition.handle)
        if led is None:
            return
        self._refuse_unsent(led, errors.COORDINATOR_NOT_AVAILABLE)
        if lost:
            self._restart(led)

    def isolate(self, *, isolated: bool) -> None:
        """Others coordinate, it seems, or not: who waits is told to look for them."""
        self._isolated = isolated
        for led in self._led.values():
            if self._appends.deserts(led.partition):
                self._refuse_unsent(led, errors.NOT_COORDINATOR)

    def drain(self) -> None:
        """The appliance ends: nobody is left waiting for others. A second call does nothing."""
        for led in self._led.values():
            self._loading.stop(led)
            self._end(led)

    def drop(self, peer: int) -> None:
        """The netproc died: its members are gone when their sessions end."""
        self._requests.drop(peer)
        self._answers[peer].drop()

    # Shards begin ---------------------------------------------------------------------------------

    def _shard(self, partition: Partition) -> Shard[Any]:
        topic = self._image.topics_by_id[partition.topic_id]
        place = CoordinatorPartition(partition.index, len(topic.partitions), partition.leader_epoch)
        return self._kind.shard(place, self._config, self._image, self._lent)

    def _restart(self, led: LedCoordinator) -> None:
        """Begin again from what is in the log."""
        self._append(led)
        self._loading.stop(led)
        led.lost = False
        self._end(led)
        if led.partition.broken is None:
            led.begin_again(self._shard(led.partition))
            self._begin_loading(led)

    def _begin_loading(self, led: LedCoordinator) -> None:
        partition = led.partition
        if partition.high_watermark < partition.log.end_offset and not partition.log.has_unwritten:
            self._appends.hasten(partition)
        skipped = f"{self._kind.TOPIC.unit}-record-skipped"
        self._loading.begin_load(led, Loads(led, skipped, self._events))
        self.due_ms = AT_ONCE

    def _loaded(self, loaded: LoadResult, now_ms: int) -> None:
        led, failure = loaded
        units = f"{self._kind.TOPIC.unit}s"
        if isinstance(failure, StorageFailed):
            self._failures.fail(led.partition, failure)
        elif failure is not None:
            event = f"{units}-not-loaded" if isinstance(failure, PeerError) else "bug"
            self._events.event(ERROR, event, partition=str(led.partition), cause=loaded.why())
            self._resign(led.partition)
        else:
            self._decide(led, now_ms, lambda: led.shard.activate(self._time.of(now_ms)))
            if size := led.shard.size():
                told = {units: size}
                self._events.event(INFO, f"{units}-loaded", partition=led.partition, **told)
            for name, topic_id in led.deleted:
                self._forget_topic(led, name, topic_id, now_ms)
            led.deleted.clear()
