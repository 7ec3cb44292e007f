"""How tiered storage is put together in an I/O process; nothing of it where it is off."""

import os
from collections.abc import Callable
from typing import Final

from appliance.base.clock import OsClock
from appliance.base.disk import Disk
from appliance.base.retention_clock import RetentionClock
from appliance.config.broker import BrokerConfig
from appliance.ioproc.durability.log_start_checkpoint import LogStartCheckpoint
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.remote.link import AnswerRoutes
from appliance.ioproc.remote.remote_reading import make_reads
from appliance.ioproc.remote.remote_storage import (
    PartitionNews,
    RemoteStorage,
    cache_room,
    open_link,
    threads_of,
)
from appliance.ioproc.remote.removing import RemoteRemovals
from appliance.ioproc.remote.tiered_starts import TieredStarts
from appliance.ioproc.remote.tiering import Tiering
from appliance.ioproc.remote_reads.remote_files import RemoteFiles
from appliance.ioproc.remote_reads.remote_read_rules import RemoteReads
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.ioproc.turn.job_context import JobContext
from appliance.metadata.effective import broker_config
from appliance.metadata.follower import Follower
from appliance.remotelog.manifests import CHANCE_BYTES
from appliance.remotelog.segments import RemoteSegments
from appliance.ring.process_table import RemoteFigures
from appliance.shell.bugs import Bugs
from appliance.shell.flusher import Threads
from appliance.shell.log import Log
from appliance.shell.seat import Seat


class RemoteAssembly:
    """link: the way to the store, None without one. news: hears of partitions. starts: of logs that
    begin behind remote segments, when the storage is made."""

    def __init__(self, seat: Seat, disk: Disk, events: Log, follower: Follower) -> None:
        self._seat = seat
        self._disk = disk
        self._events = events
        self._follower = follower
        self._tiering: Tiering | None = None
        self.starts: TieredStarts | None = None
        self.news: Final = PartitionNews()
        self.link: Final = open_link(seat.config, seat.ioprocs)
        self._routes: Final = (
            None if self.link is None else AnswerRoutes(self.link, Bugs(events).guard)
        )

    def make_reads(self, served: ServedPartitions, clock: OsClock) -> RemoteReads | None:
        """Returns the reader below the local log start."""
        seat, routes = self._seat, self._routes
        if routes is None:
            return None
        place = seat.data_dir, seat.index, seat.ioprocs
        return make_reads(
            self._disk, seat.config, place, routes, self._segments_of, self._events,
            lambda: served.now_ms or clock.wall_ms(), self._config,
        )  # fmt: skip

    def _config(self) -> BrokerConfig:
        return broker_config(self._follower.image, self._seat.config)

    def _segments_of(self, partition: Partition) -> RemoteSegments | None:
        return None if self._tiering is None else self._tiering.segments_of(partition)

    def make_storage(
        self, ground: JobContext, threads: Threads, trims: LogStartCheckpoint, time: RetentionClock
    ) -> tuple[RemoteStorage | None, RemoteRemovals | None]:
        """Returns the part that copies and deletes, and that of removals. threads: one, for
        records."""
        link, routes, seat = self.link, self._routes, self._seat
        if link is None or routes is None:
            return None, None
        image, questions = self._follower.image, ground.core.questions

        def configure() -> None:
            config = self._config()
            link.set_threads(*threads_of(config, seat.ioprocs))
            if questions.remote is not None:
                questions.remote.files.cache.room = cache_room(config, seat.ioprocs)

        tiering = self._tiering = Tiering(
            self._config, ground, threads, routes, trims.add, time.at, seat.ioprocs,
            lambda: os.urandom(CHANCE_BYTES), seat.config.int("node.id"),
        )  # fmt: skip
        removals = RemoteRemovals(
            self._disk,
            self._events,
            routes,
            lambda topic_id: topic_id in image.topics_by_id,
            seat.config.int("node.id"),
        )
        self.starts = TieredStarts(routes, tiering, self._events)
        tell = questions.complete_remote_reads
        made = RemoteStorage(
            link, routes, self.news, tiering, removals, tell, configure,
            self._figures(tiering, questions.remote),
        )  # fmt: skip
        return made, removals

    def _figures(self, tiering: Tiering, reads: RemoteReads | None) -> Callable[[], None]:
        """Shows counters, which go on where those of the process before in this place ended."""
        table, me = self._seat.processes, self._seat.me
        before = table.remote_figures(me)._replace(lag_bytes=0, lag_segments=0)

        def tell_figures() -> None:
            files = None if reads is None else reads.files
            now = RemoteFigures(
                tiering.copied_bytes,
                tiering.copies_failed,
                tiering.deletes_failed,
                *tiering.measure_lags(),
                *((0, 0, 0) if files is None else _counts_of(files)),
            )
            summed = (one + other for one, other in zip(before, now, strict=True))
            table.set_remote_figures(me, RemoteFigures(*summed))

        return tell_figures


def _counts_of(files: RemoteFiles) -> tuple[int, int, int]:
    return files.fetched_bytes, files.fetches, files.failed_fetches
