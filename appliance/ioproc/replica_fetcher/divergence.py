"""Logs that part from their leader's go back to where both agree, or begin anew where the leader's
log starts (docs/decisions/0047).

A follower truncates to what the leader's epochs say and to nothing else (KIP-101, KIP-279): its
high watermark may be behind what was acknowledged, so it decides nothing. Invariant: no sync, no
cleaning and no copy of the log is under way while it goes back, and the checkpoints and the row say
before it that it may be as short as it is then (docs/decisions/0023).
"""

from typing import NamedTuple, Protocol

from appliance.base.errors import StorageFailed
from appliance.ioproc.log_folders.alter_log_dirs import LogDirMoves
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ioproc.turn.job_context import JobContext
from appliance.replication.follower import NEVER, SOON_MS, parts_at
from appliance.shell.log import NOTICE, WARNING


class DivergencePoint(NamedTuple):
    """leader_epoch: the one in which the leader said so. diverging: its largest epoch up to ours,
    and where that ends there. start: where its log starts, when ours lies outside of it; with
    tiered its local log, and what lies before that is in a remote store alone."""

    leader_epoch: int
    diverging: tuple[int, int] | None
    start: int = -1
    tiered: bool = False


class LogStarts(Protocol):
    """`remote.tiered_starts.TieredStarts`: logs that begin behind remote segments."""

    def is_ready(self, partition: Partition, offset: int, now_ns: int) -> bool: ...

    def begin_log(self, partition: Partition, now_ms: int) -> None: ...


class CleaningControl(Protocol):
    """`cleaning.Cleaning`, which nobody waits for long."""

    def cancel(self, partition: Partition) -> None: ...

    def lower(self, partition: Partition, end: int) -> None: ...


class DivergenceTruncation:
    """parted: whose logs are to go back, each until it has. starts: None without a remote store."""

    def __init__(
        self,
        ground: JobContext,
        housekeeping: Housekeeping,
        moves: LogDirMoves,
        cleaner: CleaningControl,
        parted: dict[Partition, DivergencePoint],
        starts: LogStarts | None = None,
    ) -> None:
        self._disk, self._dirs, self._core, self._events = ground
        self._housekeeping = housekeeping
        self._moves = moves
        self._cleaner = cleaner
        self._parted = parted
        self._starts = starts

    def truncate_one(self, now_ns: int, now_ms: int) -> int:
        """One of them: it takes some writes and syncs. In how many ms to come again for the others,
        which may have to wait for something that is under way."""
        due, done = NEVER, False
        for partition, cut in list(self._parted.items()):
            try:
                if self._is_over(partition, cut):
                    del self._parted[partition]
                elif done:
                    return 0
                elif cut.tiered and not self._has_start(partition, cut, now_ns):
                    due = SOON_MS
                elif self._is_free(partition, now_ms):
                    del self._parted[partition]
                    self._go_back(partition, cut, now_ns, now_ms)
                    done = True
                else:
                    due = SOON_MS
            except Exception as bug:  # its log may have gone back in part
                self._parted.pop(partition, None)
                self._core.barrier.confine_bug("a log that parts", partition, bug)
                self._core.tell_observers()
        return due

    def _has_start(self, partition: Partition, cut: DivergencePoint, now_ns: int) -> bool:
        if self._starts is not None:
            return self._starts.is_ready(partition, cut.start, now_ns)
        self._events.event_seldom(WARNING, "no-remote-store", partition=partition)
        return False

    def _is_over(self, partition: Partition, cut: DivergencePoint) -> bool:
        """True if another epoch has begun, or the partition is no longer served here."""
        return (
            partition.leads
            or partition.broken is not None
            or partition.leader_epoch != cut.leader_epoch
            or self._core.partitions.get(partition.handle) is not partition
        )

    def _is_free(self, partition: Partition, now_ms: int) -> bool:
        if partition.log.cleaning:
            self._cleaner.cancel(partition)
        if partition.syncing or partition.log.cleaning:
            return False
        if self._housekeeping.writing:  # it may be about to say what holds no more
            self._core.served.stirred = True
            return False
        self._moves.begin_again(partition, now_ms)
        return True

    def _go_back(
        self, partition: Partition, cut: DivergencePoint, now_ns: int, now_ms: int
    ) -> None:
        log = partition.log
        had, visible = log.end_offset, partition.high_watermark
        try:
            if cut.diverging is None:
                if log.log_start_offset <= cut.start <= had and not is_unconfirmed(
                    partition, cut.start
                ):
                    return  # it moved meanwhile
                self._may_end_at(partition, -1)
                if cut.tiered and self._starts is not None:
                    self._starts.begin_log(partition, now_ms)
                else:
                    log.begin_anew(cut.start)
            else:
                end = parts_at(cut.diverging, log.epoch_end(cut.diverging[0]), had)
                if end < had:
                    self._may_end_at(partition, end)
                log.truncate_to(end, now_ms)
        except StorageFailed as failure:
            self._core.fail(partition, failure)
            return
        _went_back(partition, anew=cut.diverging is None)
        self._core.publish(partition)
        self._core.syncing.wrote(partition, now_ns)
        if log.end_offset != had:
            self._say(partition, had, visible)

    def _may_end_at(self, partition: Partition, end: int) -> None:
        """An opening may find that the log ends there: it is cut short from now on. Raises
        StorageFailed."""
        log = partition.log
        self._cleaner.lower(partition, end)
        inside = end >= log.log_start_offset
        before = [segment.base for segment in log.segments if segment.base < end]
        point = before[-1] if before and before[-1] >= log.log_start_offset else 0
        if log.recovery_point > point or not inside:
            self._housekeeping.lower(partition, point, end)
            log.recovery_point = min(log.recovery_point, point)
            self._core.served.rows.publish(partition)

    def _say(self, partition: Partition, had: int, visible: int) -> None:
        end = partition.log.end_offset
        below = end < visible
        self._events.event(
            WARNING if below else NOTICE,
            "log-truncated",
            partition=partition,
            end=had,
            to=end,
            leader=partition.role.leader,
            epoch=partition.leader_epoch,
            **({"high_watermark": visible} if below else {}),
        )


def is_unconfirmed(partition: Partition, leader_start: int) -> bool:
    """True if the leader's log starts where ours ends, and no leader has confirmed the end of ours.

    The leader's epochs begin at its log start, so they cannot say whether our records below it are
    its own (KIP-101). Other records below it would do harm though nobody reads them: what is known
    of their producers answers for batches that nobody has."""
    log = partition.log
    return (
        leader_start == log.end_offset > partition.progress.high_watermark
        and log.latest_epoch < partition.leader_epoch
    )


def _went_back(partition: Partition, *, anew: bool) -> None:
    """The log was truncated, or begins anew without anything."""
    log, progress = partition.log, partition.progress
    if anew or log.log_start_offset != progress.log_start:
        partition.serve_log(log, log.end_offset)
        partition.progress.follow(partition.leader_epoch)
    else:
        progress.truncated(log.end_offset, log.producers.open)
        partition.synced = min(partition.synced, log.end_offset)
    partition.places.unknown((log.end_offset, log.active_base, log.active_size))
