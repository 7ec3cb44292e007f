"""One partition: its log, its high watermark, and who waits for either to move.

Invariant: log start ≤ high watermark ≤ log end, and the high watermark never goes back. With
`flush.policy=group` it rises with syncs alone: the disk is the replica that must have a record
before anybody sees it. What is staged in a turn is committed or failed in the same turn, so nothing
here holds arena memory between turns. With one replica the last stable offset is the high
watermark. The core is the only caller; `append` is the hot function of this room.
"""

from collections import deque
from typing import Final

from appliance.base.errors import KAFKA_STORAGE_ERROR, StorageFailed
from appliance.base.space import SpaceGuard
from appliance.config.log_config import LogConfig
from appliance.ioproc.asker import Asker, Nobody, refusal
from appliance.ioproc.purgatory import ParkedRead
from appliance.logstore.log import Log
from appliance.ring.messages import APPENDED, Message
from appliance.wire.batch import recompress, validate
from appliance.wire.batch_header import CODEC_MASK, read_header
from appliance.wire.compression import IDS as CODECS

Waiting = tuple[Asker | Nobody, int, int, int, int, bool]
"""asker, token, base offset, append time (ms or -1), end offset, whether it waits for a
sync."""


_UNGUARDED: Final = SpaceGuard(0, 0)


class Partition:
    """The home of one partition. handle: its row in the partition table. directory: number of the
    log folder that it lies in, space: the guard of that. future: while it moves, number + 1 of the
    folder it moves to, log end of the copy, bytes of the copy. start_unsaved: DeleteRecords moved
    the log start, which could not be written down yet. unreadable: files that a read failed on.
    asking: who asked where the log ends, and the end that must be visible before the answer."""

    __slots__ = (
        "_codec",
        "_group",
        "_stamps",
        "asking",
        "broken",
        "bytes_in",
        "directory",
        "future",
        "handle",
        "high_watermark",
        "index",
        "leader_epoch",
        "log",
        "parked",
        "records_in",
        "rules",
        "space",
        "staged",
        "start_unsaved",
        "synced",
        "syncing",
        "topic",
        "topic_id",
        "unreadable",
        "waiting",
    )

    def __init__(
        self, handle: int, topic: str, index: int, topic_id: bytes, log: Log, leader_epoch: int
    ) -> None:
        self.handle = handle
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        assert log.recovery_point >= log.end_offset, "what is served from the start is on the disk"
        self.high_watermark = log.end_offset
        self.synced = log.recovery_point
        self.syncing = False
        self.bytes_in = 0
        self.records_in = 0
        self.directory = 0
        self.future = (0, 0, 0)
        self.space = _UNGUARDED
        self.broken: StorageFailed | None = None
        self.unreadable: set[str] = set()
        self.staged: list[Waiting] = []
        self.waiting: deque[Waiting] = deque()
        self.asking: deque[tuple[Asker, Message, int]] = deque()
        self.parked: dict[int, ParkedRead] = {}
        self.start_unsaved = False
        self.lead(leader_epoch)
        self.set_rules(log.config)

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def append(self, asker: Asker, token: int, batch: memoryview, acks: int, now_ms: int) -> None:
        """Check one produced batch and stage it; it is answered after `commit` or after a sync.

        Raises PeerError with the code to answer; then nothing was staged.
        """
        rules = self.rules
        header = validate(batch, rules, now_ms)
        codec = self._codec
        if codec >= 0 and header[5] & CODEC_MASK != codec:
            batch = memoryview(bytearray(recompress(batch, codec)))
            header = read_header(batch)
        log = self.log
        if header[9] >= 0:  # a producer id
            original = log.producers.check(header)
            if original >= 0:  # a duplicate: durable when the first one is, and answered as it was
                self._stage(asker, token, acks, original, -1, original + header[6] + 1)
                return
        base = log.stage(batch, header, self.leader_epoch, now_ms)
        self.bytes_in += len(batch)
        self.records_in += header[12]
        time = now_ms if self._stamps else -1
        self._stage(asker, token, acks, base, time, base + header[6] + 1)

    def append_own(self, nobody: Nobody, batch: memoryview, now_ms: int) -> None:
        """Stage a batch that the appliance made itself: it is right, however big, and it waits for
        a sync as acks=all does. Raises StorageFailed."""
        header = read_header(batch)
        base = self.log.stage(batch, header, self.leader_epoch, now_ms)
        self.bytes_in += len(batch)
        self.records_in += header[12]
        self._stage(nobody, 0, -1, base, -1, base + header[6] + 1)

    def _stage(
        self, asker: Asker | Nobody, token: int, acks: int, base: int, time: int, end: int
    ) -> None:
        waits = (acks == -1 and self._group) or end - self.synced >= self.rules.flush_messages
        self.staged.append((asker, token, base, time, end, waits and end > self.synced))

    @property
    def unseen(self) -> bool:
        """Whether there are records that nobody sees before a sync covers them."""
        return self._group and self.high_watermark < self.log.written_end

    def commit(self) -> bool:
        """Write what was staged and answer what need not wait. Returns whether the high watermark
        rose: without group commit what is written is visible.

        Raises StorageFailed when the log refused; the caller then calls `fail`, after DiskFull
        `no_room`.
        """
        log = self.log
        log.commit()
        before = high_watermark = self.high_watermark
        log_start = log.log_start_offset
        epoch = self.leader_epoch
        for waiting in self.staged:
            asker, token, base, time, end, waits = waiting
            if waits:
                self.waiting.append(waiting)
                continue
            if end > high_watermark:
                high_watermark = end
            asker.out.append((APPENDED, 1, self.handle, token, base, time, log_start, epoch))
        self.staged.clear()
        if self._group:
            return False
        self.high_watermark = high_watermark
        return high_watermark > before

    def on_synced(self, end: int) -> bool:
        """Everything below `end` is on the disk: answer who waited for that. Whether the high
        watermark rose."""
        if end > self.synced:
            self.synced = end
        waiting = self.waiting
        log_start = self.log.log_start_offset
        epoch = self.leader_epoch
        while waiting and waiting[0][4] <= end:
            asker, token, base, time, _, _ = waiting.popleft()
            asker.out.append((APPENDED, 1, self.handle, token, base, time, log_start, epoch))
        if end > self.high_watermark:
            self.high_watermark = end
            return True
        return False

    def fail(self, failure: StorageFailed) -> None:
        """The log refused a write or a sync: final. Everybody who waits is told, nothing is
        appended again."""
        self.broken = failure
        self.refuse_all(KAFKA_STORAGE_ERROR)

    def no_room(self) -> None:
        """What was staged is not written yet: whoever waits for that is told to try again. The log
        holds it, so that a retry of it is known for what it is."""
        for asker, token, *_ in self.staged:
            asker.out.append(refusal(APPENDED, KAFKA_STORAGE_ERROR, self.handle, token))
        self.staged.clear()

    def refuse_all(self, code: int) -> None:
        """Tell all whose appends are not acknowledged yet that they failed."""
        for asker, token, *_ in (*self.waiting, *self.staged):
            asker.out.append(refusal(APPENDED, code, self.handle, token))
        self.waiting.clear()
        self.staged.clear()

    def forget_asker(self, asker: Asker) -> None:
        """A netproc died; what it asked for is appended all the same, but nobody is told."""
        if self.waiting:
            self.waiting = deque(w for w in self.waiting if w[0] is not asker)
        if self.asking:
            self.asking = deque(a for a in self.asking if a[0] is not asker)

    def lead(self, leader_epoch: int) -> None:
        """The partition's leader epoch; a new one begins at the log end (KIP-101).

        Raises StorageFailed when where it begins cannot be written down.
        """
        self.leader_epoch = leader_epoch
        if leader_epoch > self.log.latest_epoch:
            self.log.begin_epoch(leader_epoch)

    def set_rules(self, rules: LogConfig) -> None:
        """The topic's settings changed."""
        self.rules = rules
        self.log.set_config(rules)
        self._group = rules.flush_policy == "group"
        self._stamps = rules.message_timestamp_type == "LogAppendTime"
        self._codec = CODECS.get(rules.compression_type, -1)
