"""The log of one partition. (Signatures first; bodies follow.)

stage* → commit → locate; flush_job → run (any thread) → flushed. All offsets are record offsets, sizes bytes, times ms.
"""

from collections.abc import Mapping

from appliance.base.disk import Disk
from appliance.config.log_config import LogConfig
from appliance.logstore.producer_state import ProducerStates
from appliance.wire.batch_header import BatchHeader

FileRange = tuple[int, int, int, int]
"""(base offset of the segment, position in its file, length, length of the first batch)."""


class FlushJob:
    """The syncs that make everything below `end_offset` durable."""

    end_offset: int

    def run(self) -> None:
        """Do them; touches only files, so any thread may. Raises StorageFailed, which is final for the log."""


class Log:
    path: str
    config: LogConfig
    log_start_offset: int
    end_offset: int  # log end offset: what the next record gets
    recovery_point: int  # everything below it is durable
    size: int  # bytes of all segments
    active_base: int  # base offset of the active segment …
    active_size: int  # … and the bytes of it that are committed: (active_base, active_size) is `known_end`
    unsynced_bytes: int
    producers: ProducerStates  # .check(header) → base offset of the original, -1 when it is no duplicate

    @classmethod
    def create(
        cls, disk: Disk, path: str, topic_id: bytes, config: LogConfig, *, now_ms: int, start_offset: int = 0
    ) -> "Log": ...

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: str,
        config: LogConfig,
        *,
        recovery_point: int,
        log_start_offset: int,
        clean: bool,
        known_end: tuple[int, int] | None,
        now_ms: int,
    ) -> "Log": ...

    def stage(self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> int: ...
    def commit(self) -> None: ...
    def locate(self, offset: int, max_bytes: int, limit_offset: int) -> FileRange | None: ...
    def flush_job(self) -> FlushJob | None: ...
    def flushed(self, job: FlushJob) -> None: ...
    def sync_now(self) -> None: ...
    def epoch_end(self, epoch: int) -> tuple[int, int]: ...
    def offset_for_timestamp(self, timestamp: int, limit_offset: int) -> tuple[int, int, int] | None: ...
    def max_timestamp(self) -> tuple[int, int, int] | None: ...
    def advance_log_start(self, offset: int) -> None: ...
    def retain(self, now_ms: int, high_watermark: int) -> "list[Removal]": ...
    def delete(self, unique: str, now_ms: int) -> "Removal": ...
    def close(self) -> None: ...
    def statistics(self) -> Mapping[str, int]: ...
