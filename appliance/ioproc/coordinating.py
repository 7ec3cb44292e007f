"""Group coordinators in their ioproc: requests to shards, records to the log, answers back.

Every partition of `__consumer_offsets` that lives here has a shard (`coordinators.shard`, which
says how it wants to be driven). In a turn requests are decided first, then all records of one
partition are appended as one batch, and the answers go out when the sync covers them. Invariant: a
shard whose records could not be appended is dropped with all that it had promised; a decision that
fails by a bug costs its shard a reload, never the process.
"""

import traceback
from collections import deque
from collections.abc import Callable, Mapping
from time import monotonic_ns
from typing import Any, Final

from appliance.base import errors
from appliance.base.errors import MalformedRequest, PeerError, StorageFailed
from appliance.base.ids import OFFSETS_TOPIC
from appliance.config.broker import BrokerConfig
from appliance.coordinators import settings
from appliance.coordinators.call import NEVER, Outcome
from appliance.coordinators.settings import Settings
from appliance.coordinators.shard import ACTIVE, HANDLERS, LOADING, Shard
from appliance.ioproc.asker import Asker
from appliance.ioproc.core import Core
from appliance.ioproc.group_loading import load
from appliance.ioproc.group_requests import Asked, GroupRequests
from appliance.ioproc.offsets_partition import OffsetsPartition
from appliance.ioproc.partition import Partition
from appliance.metadata.image import MetadataImage
from appliance.ring.messages import Message
from appliance.ring.ring import RingWriter
from appliance.shell.answers import Answers
from appliance.shell.log import ERROR, INFO
from appliance.shell.log import Log as EventLog
from appliance.wire.plain import encode

SLICE_NS: Final = 2_000_000
"""How long loading may take of one turn."""

GROWING: Final = frozenset((8, 11, 14, 68))
"""APIs that make the log grow: refused when even offsets have no room any more. Of
ConsumerGroupHeartbeat (68) only the one that joins: who is in the group stays in it."""
_HEARTBEAT: Final = 68


class Coordinating:
    """The group coordinators of one ioproc (`groups.Groups`).

    writers: the ring to each netproc, by index. new_id: 16 random bytes.
    """

    def __init__(
        self,
        core: Core,
        config: BrokerConfig,
        writers: Mapping[int, RingWriter],
        image: MetadataImage,
        wall_ms: Callable[[], int],
        new_id: Callable[[], bytes],
        events: EventLog,
    ) -> None:
        self.decided = False
        self.waiting = False
        self._core = core
        self._config = config
        self._image = image
        self._wall_ms = wall_ms
        self._new_id = new_id
        self._events = events
        self._answers = {index: Answers(writer) for index, writer in writers.items()}
        self._requests = GroupRequests()
        self._homes: dict[int, OffsetsPartition] = {}
        self._touched: dict[OffsetsPartition, None] = {}
        self._unsent: dict[OffsetsPartition, None] = {}
        self._loading: deque[OffsetsPartition] = deque()
        self._next_ms = NEVER
        self._nobody = Shard(0, Settings(partitions=1), image, new_id)

    # Requests -------------------------------------------------------------------------------------

    def take(self, asker: Asker, message: Message, now_ms: int) -> None:
        """A piece of a request for groups; decided when it was the last one."""
        try:
            asked = self._requests.take(asker.index, message)
        except MalformedRequest:
            self._answers[asker.index].put(message.token, errors.INVALID_REQUEST, b"")
            self.waiting = True
            return
        if asked is None:
            return
        call = asked.call
        home = self._homes.get(message.handle)
        if call.api_key not in HANDLERS:
            self._put(asked, errors.UNSUPPORTED_VERSION, b"")
        elif home is None:
            self._refuse(self._nobody, asked, errors.NOT_COORDINATOR)
        elif home.partition.log.held or (home.partition.space.tight and _grows(asked)):
            self._refuse(home.shard, asked, errors.COORDINATOR_NOT_AVAILABLE)
        else:
            if home.loading is not None and self._loading[0] is not home:
                self._loading.remove(home)  # what somebody asks for is loaded first
                self._loading.appendleft(home)
            shard, request = home.shard, asked.request
            if not self._decide(home, now_ms, lambda: shard.handle(call, request, now_ms)):
                self._put(asked, errors.UNKNOWN_SERVER_ERROR, b"")

    def _decide(self, home: OffsetsPartition, now_ms: int, decision: Callable[[], Outcome]) -> bool:
        """Carry out one decision of a shard. False: it failed by a bug, and the shard starts
        again from its log."""
        try:
            outcome = decision()
        except Exception:  # half of it may have been applied: what is in the log counts
            self._events.event_seldom(
                ERROR, "bug", partition=str(home.partition), cause=traceback.format_exc(limit=-4)
            )
            self._restart(home)
            return False
        home.add(outcome, now_ms)
        if home.records or home.responses:
            self._touched[home] = None
            self.decided = True
        self._next_ms = min(self._next_ms, home.shard.next_deadline_ms)
        return True

    def _refuse(self, shard: Shard, asked: Asked, code: int) -> None:
        (_, values), *_ = shard.refuse(asked.call, asked.request, code).responses
        self._send(asked.call.token, values)

    # The end of a turn ----------------------------------------------------------------------------

    def stage(self) -> None:
        """Append what was decided in this turn."""
        self.decided = False
        touched, self._touched = self._touched, {}
        for home in touched:
            self._append(home)

    def _append(self, home: OffsetsPartition) -> None:
        for batch in home.take_batches():
            view = memoryview(bytearray(batch))
            if not self._core.append_own(home.partition, view, home.now_ms):
                return  # `close` or `no_room` was called and told everybody
        home.staged()
        if home.waiting:
            self._unsent[home] = None
            self.waiting = True

    def release(self) -> bool:
        """Send the answers whose records are committed now; False when some wait for room."""
        for home in list(self._unsent):
            for token, values in home.due():
                self._send(token, values)
            if not home.waiting:
                del self._unsent[home]
        sent = True
        for answers in self._answers.values():
            sent = answers.push() and sent
        self.waiting = bool(self._unsent) or not sent
        return sent

    def _send(self, token: int, values: Mapping[str, Any]) -> None:
        asked = self._requests.asked.get(token)
        if asked is None:
            return  # its netproc died
        key, version = asked.call.api_key, asked.call.version
        try:
            body = encode(key, version, values)
        except Exception:
            cause = traceback.format_exc(limit=-4)
            self._events.event_seldom(ERROR, "bug", answer=f"{key} v{version}", cause=cause)
            self._put(asked, errors.UNKNOWN_SERVER_ERROR, b"")
        else:
            self._put(asked, errors.NONE, body)

    def _put(self, asked: Asked, code: int, body: bytes) -> None:
        self._requests.asked.pop(asked.call.token, None)
        self._answers[asked.peer].put(asked.token, code, body)
        self.waiting = True

    # Time, topics, metadata -----------------------------------------------------------------------

    def turn(self, now_ms: int) -> int:
        """Load and do what is due; for how many ms there is nothing to do then."""
        if self._loading:
            self._load(now_ms)
        if now_ms >= self._next_ms:
            for home in list(self._homes.values()):
                shard = home.shard
                if shard.state == ACTIVE and shard.next_deadline_ms <= now_ms:
                    self._decide(home, now_ms, lambda shard=shard: shard.tick(now_ms))  # type: ignore[misc]
            self._next_ms = min(
                (home.shard.next_deadline_ms for home in self._homes.values()), default=NEVER
            )
        return 0 if self._loading else max(0, self._next_ms - now_ms)

    def follow(self, image: MetadataImage) -> None:
        """The image of this process may be another one now."""
        self._image = image
        for home in self._homes.values():
            home.shard.image = image

    def topic_deleted(self, name: str, topic_id: bytes, now_ms: int) -> None:
        """Offsets of a topic that is gone are forgotten."""
        for home in list(self._homes.values()):
            if home.shard.state == LOADING:
                home.deleted.append((name, topic_id))
            else:
                self._forget_topic(home, name, topic_id, now_ms)

    def _forget_topic(
        self, home: OffsetsPartition, name: str, topic_id: bytes, now_ms: int
    ) -> None:
        shard = home.shard
        self._decide(home, now_ms, lambda: shard.on_topic_deleted(name, topic_id, now_ms))

    # Partitions and askers come and go ------------------------------------------------------------

    def open(self, partition: Partition) -> None:
        """Coordinate the groups of this partition, once it is loaded."""
        if partition.topic != OFFSETS_TOPIC:
            return
        home = OffsetsPartition(partition, self._shard(partition))
        self._homes[partition.handle] = home
        self._begin_loading(home)
        if partition.log.log_start_offset == partition.log.end_offset:
            self._load_some(home, self._wall_ms(), 0)  # a new one serves at once

    def close(self, partition: Partition) -> None:
        """Its log failed or is going away: who waits is told to look for the coordinator again."""
        home = self._homes.pop(partition.handle, None)
        if home is None:
            return
        self._stop_loading(home)
        self._touched.pop(home, None)
        self._unsent.pop(home, None)
        for token, values in home.shard.resign().responses:
            self._send(token, values)
        for token in home.take_unsent():
            asked = self._requests.asked.get(token)
            if asked is not None:
                self._refuse(home.shard, asked, errors.NOT_COORDINATOR)

    def no_room(self, partition: Partition, *, lost: bool) -> None:
        """Who waits for what found no room is told to ask again. What is held will be written
        before anything else, so the shard is right to go on from it; what is lost it must forget.
        """
        home = self._homes.get(partition.handle)
        if home is None:
            return
        for token in home.take_unsent():
            asked = self._requests.asked.get(token)
            if asked is not None:
                self._refuse(home.shard, asked, errors.COORDINATOR_NOT_AVAILABLE)
        if lost:
            self._restart(home)

    def drain(self) -> None:
        """The appliance ends: nobody is left waiting for others. A second call does nothing."""
        for home in self._homes.values():
            self._stop_loading(home)
            for token, values in home.shard.resign().responses:
                self._send(token, values)

    def drop(self, peer: int) -> None:
        """The netproc died: its members are gone when their sessions end."""
        self._requests.drop(peer)
        self._answers[peer].drop()

    def _shard(self, partition: Partition) -> Shard:
        topic = self._image.topics_by_id[partition.topic_id]
        rules = settings.from_config(self._config, len(topic.partitions))
        return Shard(partition.index, rules, self._image, self._new_id)

    def _restart(self, home: OffsetsPartition) -> None:
        """Begin again from what is in the log."""
        self._append(home)
        for token, values in home.shard.resign().responses:
            self._send(token, values)
        if home.partition.broken is None:
            home.shard = self._shard(home.partition)
            self._begin_loading(home)

    # Loading --------------------------------------------------------------------------------------

    def _begin_loading(self, home: OffsetsPartition) -> None:
        shard = home.shard

        def replay(key: bytes | None, value: bytes | None, offset: int) -> None:
            try:
                shard.replay(key, value, offset)
            except PeerError as error:
                where = str(home.partition)
                self._events.event_seldom(
                    ERROR, "group-record-skipped", partition=where, cause=error.message
                )

        home.loading = load(home.partition, replay)
        self._loading.append(home)

    def _stop_loading(self, home: OffsetsPartition) -> None:
        if home.loading is not None:
            home.loading = None
            self._loading.remove(home)

    def _load(self, now_ms: int) -> None:
        until_ns = monotonic_ns() + SLICE_NS
        while self._loading and monotonic_ns() < until_ns:
            self._load_some(self._loading[0], now_ms, until_ns)

    def _load_some(self, home: OffsetsPartition, now_ms: int, until_ns: int) -> None:
        """Go on loading until then; what is loaded serves."""
        assert home.loading is not None
        try:
            for _ in home.loading:
                if monotonic_ns() >= until_ns:
                    return
        except StorageFailed as failure:
            self._core.fail(home.partition, failure)
            return
        except PeerError as error:
            name = str(home.partition)
            self._events.event(ERROR, "groups-not-loaded", partition=name, cause=error.message)
            self.close(home.partition)
            return
        self._stop_loading(home)
        self._decide(home, now_ms, lambda: home.shard.activate(now_ms))
        if home.shard.groups or home.shard.offsets.by_group:
            count = max(len(home.shard.groups), len(home.shard.offsets.by_group))
            self._events.event(INFO, "groups-loaded", partition=home.partition, groups=count)
        for name, topic_id in home.deleted:
            self._forget_topic(home, name, topic_id, now_ms)
        home.deleted.clear()


def _grows(asked: Asked) -> bool:
    """Whether the request makes its partition grow."""
    key = asked.call.api_key
    return key in GROWING and (key != _HEARTBEAT or asked.request.member_epoch <= 0)
