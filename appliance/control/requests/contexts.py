"""The context of control's answers, made anew for each batch of requests over the same parts.

Called by `shell.py` and by whoever decides something for it.
"""

from collections.abc import Callable

from appliance.base.errors import StorageFailed
from appliance.control.broker.dynamic_listeners import DynamicListeners
from appliance.control.deletion.topic_trash import TopicTrash
from appliance.control.folder.startup import Started
from appliance.control.partitions.folder_room import Room
from appliance.controller.decision import Situation
from appliance.controller.heartbeats import Heartbeats
from appliance.controller.producer_ids import ProducerIdBlocks
from appliance.handlers.admin import AdminContext, Quorum
from appliance.handlers.answer_cache import AnswerCache
from appliance.handlers.voter_changes import VoterChanges
from appliance.metadata.identity import META_PROPERTIES, new_uuid
from appliance.quotas.meters import MeterUsage
from appliance.shell.seat import Seat
from appliance.shell.version import current


class Contexts:
    """usage: of quotas. heartbeats: those of the moment, None while this node does not lead.
    described: the quorum at a wall clock time in ms. electing: who votes, at a monotonic one."""

    __slots__ = ("_answers", "_described", "_doors", "_electing", "_heartbeats", "_producer_ids",
                 "_room", "_seat", "_started", "_trash", "_usage")  # fmt: skip

    def __init__(
        self,
        seat: Seat,
        started: Started,
        room: Room,
        trash: TopicTrash,
        producer_ids: ProducerIdBlocks,
        usage: Callable[[], list[MeterUsage]],
        heartbeats: Callable[[], Heartbeats | None],
        described: Callable[[int], Quorum],
        electing: Callable[[int], VoterChanges | None],
        doors: DynamicListeners,
    ) -> None:
        self._seat = seat
        self._started = started
        self._room = room
        self._trash = trash
        self._producer_ids = producer_ids
        self._usage = usage
        self._heartbeats = heartbeats
        self._described = described
        self._electing = electing
        self._doors = doors
        self._answers = AnswerCache()

    def situation(self) -> Situation:
        """For one decision of the controller."""
        started = self._started
        return Situation(
            image=started.quorum.image,
            config=self._seat.config,
            node_id=started.identity.node_id,
            directory_id=started.identity.directory_id,
            new_id=lambda: new_uuid(started.random),
            free_rows=0,
            directories=self._directories(),
            kraft_version=started.quorum.kraft_version,
            listening=self._doors.why_not,
            showing=self._doors.check_shown,
        )

    def context(self) -> AdminContext:
        """For requests, one after the other: `refresh` between them."""
        started = self._started
        context = AdminContext(
            situation=self.situation(),
            producer_ids=self._producer_ids,
            partitions=self._seat.partitions,
            handles=started.rows.handles,
            quorum=Quorum(-1, 0, 0),
            dirs=started.dirs,
            volume=self._volume,
            trash=self._trash.view,
            kept=lambda name: {started.identity.node_id: self._trash.kept(name)},
            settled=self._trash.settled,
            now_ms=0,
            usage=self._usage,
            cluster_id=started.identity.cluster_id,
            loggers=self._seat.processes.log_levels,
            described=self._answers,
            version=current(),
        )
        self.refresh(context)
        return context

    def refresh(self, context: AdminContext) -> None:
        """Refreshes the values that the previous request may have changed."""
        started = self._started
        context.situation.free_rows = started.rows.free_rows - started.quorum.images.partitions
        context.situation.counts = context.situation.node_rows = None
        context.situation.no_room = self._room.lacking()
        context.now_ms = started.clock.wall_ms()
        context.monotonic_ms = started.clock.monotonic_ns() // 1_000_000
        context.heartbeats = self._heartbeats()
        context.quorum = self._described(context.now_ms)
        context.electing = self._electing(context.monotonic_ms)
        context.situation.kraft_version = started.quorum.kraft_version

    def _directories(self) -> tuple[bytes, ...]:
        """Ids of the folders that take new partitions: those that are there."""
        dirs, disk = self._started.dirs, self._started.disk
        found = [(dirs.ids[n], path) for n, path in dirs.online()]
        if len(found) > 1:
            found = [one for one in found if disk.exists(f"{one[1]}/{META_PROPERTIES}")]
            roomy = [one for one in found if not self._room.low(one[1])]
            found = roomy or found
        return tuple(one for one, _ in found if one is not None)

    def _volume(self, path: str) -> tuple[int, int] | None:
        try:
            space = self._started.disk.space(path)
        except StorageFailed:
            return None
        return space.total, space.free
