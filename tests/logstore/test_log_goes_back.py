"""A log that appended, rolled, followed and was cut equals one that never had what was cut: in what
it answers, in what it decides, and in its files."""

from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sim.disk import SimDisk
from twin import (
    TOPIC_ID,
    aborted,
    marker,
    producer_view,
    small_batch,
    stage,
    stored,
    transactional,
)

from appliance.base.errors import PeerError
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from appliance.wire.batch import read_header

PATH = "/t-0"
TIMES = (0, 1, 50, 99, 100, 500, 10_000)


def config(**settings) -> LogConfig:
    given = {"segment_bytes": 2500, "index_interval_bytes": 300, "segment_ms": 5000} | settings
    return LogConfig(retention_ms=-1, compact=True, **given)


def new_log(**settings) -> PartitionLog:
    return PartitionLog.create(SimDisk(), PATH, TOPIC_ID, config(**settings), now_ms=0)


def reopened(log: PartitionLog, *, clean: bool) -> PartitionLog:
    """An end and a start: an orderly one, or the death of the process."""
    if clean:
        log.close()
    else:
        log.let_go()
        log.disk.process_death()
    return PartitionLog.open_folder(
        log.disk,
        PATH,
        log.config,
        recovery_point=log.recovery_point,
        log_start_offset=log.log_start_offset,
        clean=clean,
        machine_lived=True,
        now_ms=0,
    )


def answers(log: PartitionLog) -> dict:
    """Everything that can be asked of a log."""
    end = log.end_offset
    offsets = range(log.log_start_offset, end + 1)
    return {
        "ends": (log.log_start_offset, end, log.written_end, log.size, log.active_base),
        "batches": stored(log),
        "segments": [(segment.base, segment.size) for segment in log.segments],
        "epochs": (log.epochs.epochs, log.epochs.starts, log.latest_epoch),
        "epoch ends": [log.epoch_end(epoch) for epoch in range(8)],
        "producers": producer_view(log.producers),
        "open transactions": log.producers.open,
        "aborted": aborted(log),
        "coordinators": {i: p.coordinator_epoch for i, p in log.producers.producers.items()},
        "places": [log.locate(at, most, end) for at in offsets for most in (1, 1 << 20)],
        "some": [some_of(log, at) for at in offsets],
        "limited": [log.locate(at, 1 << 20, high) for high in offsets for at in offsets],
        "times": [log.offset_for_timestamp(time, end) for time in TIMES],
        "newest": log.max_timestamp(),
        "newest of each": [newest(log, n) for n in range(len(log.segments))],
    }


def some_of(log: PartitionLog, offset: int, most: int = 1200) -> tuple[int, int, int] | None:
    """Where a fetch of some bytes begins. It ends with any batch that fits: which one, depends on
    what of the log is in memory."""
    found = log.locate(offset, most, log.end_offset)
    if found is None:
        return None
    base, position, length, first = found
    batches = [log.locate(at, 1, log.end_offset) for at in range(offset, log.end_offset)]
    ends = {at + size for segment, at, size, _ in batches if segment == base}
    assert position + length in ends
    assert length == first or length <= most
    return base, position, first


def newest(log: PartitionLog, number: int) -> int:
    return log.segments[number].newest if log.segments[number].newest != -2 else -3


def decisions(log: PartitionLog, batches: list[bytes]) -> list:
    """What becomes of each of these batches when it is sent (again)."""
    found = []
    for batch in batches:
        header = read_header(batch)
        for moved in (0, 1, 3):
            try:
                asked = header._replace(base_sequence=header.base_sequence + moved)
                found.append(log.producers.check(asked))
            except PeerError as refused:
                found.append(refused.code)
    return found


def files(log: PartitionLog) -> dict[str, bytes]:
    """The bytes of the files that are a function of the batches alone. A time index has an entry
    more for each orderly end, snapshots are written when a segment is full. A log that had records
    once may say that it has no leader epochs."""
    return {
        name: bytes(node.data)
        for name, node in log.disk.root.names["t-0"].names.items()
        if not name.endswith((".timeindex", ".snapshot"))
        and (node.data or not name.endswith(".txnindex"))
        and node.data != b"0\n0\n"
    }


# A life and its twin ------------------------------------------------------------------------------

appends = st.tuples(st.just("append"), st.integers(0, 3), st.integers(1, 3))
follows = st.tuples(st.just("follow"), st.integers(0, 2), st.integers(1, 3))
transactions = st.tuples(st.just("transact"), st.integers(4, 6), st.integers(0, 2))
ends = st.tuples(st.just("end"), st.integers(4, 6), st.booleans())
act = st.one_of(
    appends,
    appends,
    transactions,
    ends,
    follows,
    st.tuples(st.just("begin_epoch")),
    st.tuples(st.just("roll")),
    st.tuples(st.just("sync")),
    st.tuples(st.just("reopen"), st.booleans()),
)


class Life:
    """Does the same to every log that it has. sent: every batch that was ever made."""

    def __init__(self, *logs: PartitionLog) -> None:
        self.logs = list(logs)
        self.rng = Random(1)
        self.sent: list[bytes] = []
        self.epoch = 0

    def batch(self, producer: int) -> bytearray:
        log = self.logs[0]
        time = self.rng.choice((-1, 0, 40, 99, 100, 3000, 9000))
        if producer in (0, 3):
            return small_batch(self.rng, time)
        known = log.producers.producers.get(producer)
        sequence = known.next_sequence if known else 0
        return small_batch(self.rng, time, (producer, 0, sequence))

    def append(self, producer: int, count: int) -> None:
        for _ in range(count):
            self._put(self.batch(producer))

    def transact(self, producer: int, count: int) -> None:
        for _ in range(count + 1):
            self._put(transactional(self.batch(producer)))

    def end(self, producer: int, committed: bool) -> None:
        self._put(marker(producer, 0, committed=committed, coordinator_epoch=self.epoch))

    def _put(self, batch: bytearray) -> None:
        self.sent.append(bytes(batch))
        for log in self.logs:
            stage(log, bytearray(batch), self.epoch, 0)
            log.commit()

    def follow(self, gap: int, count: int) -> None:
        """From a leader, which compacted some offsets away, perhaps with a newer epoch."""
        data, at = b"", self.logs[0].end_offset
        for n in range(count):
            batch = self.batch(3)
            at += gap * n
            batch[0:8] = at.to_bytes(8, "big")
            batch[12:16] = self.epoch.to_bytes(4, "big", signed=True)
            at = read_header(batch).last_offset + 1
            data += batch
        cut_off = data + bytes(batch)[:60]  # the leader cuts its answer anywhere
        for log in self.logs:
            assert log.follow(memoryview(cut_off), 0, self.epoch) == len(data)
            log.commit()

    def roll(self) -> None:
        for log in self.logs:
            log.roll(0)
        self.append(0, 1)  # a segment that was begun for nothing is not cut

    def begin_epoch(self) -> None:
        self.epoch += 1

    def sync(self) -> None:
        for log in self.logs:
            log.sync_now()

    def reopen(self, clean: bool) -> None:
        self.logs = [reopened(log, clean=clean) for log in self.logs]

    def parted(self) -> "Life":
        """One of its two logs, with a life of its own from here on."""
        other = Life(self.logs.pop())
        other.rng.setstate(self.rng.getstate())
        other.epoch = self.epoch
        return other


def run(life: Life, what: list[tuple]) -> None:
    for name, *rest in what:
        getattr(life, name)(*rest)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(act, max_size=12),
    st.lists(act, min_size=1, max_size=12),
    st.lists(act, max_size=6),
    st.booleans(),
)
def test_what_was_cut_was_never_there(before, cut, after, staged):
    life = Life(new_log(), new_log())
    run(life, before)
    end = life.logs[0].end_offset
    other = life.parted()
    run(other, cut)
    log = other.logs[0]
    layout, had = log.layout, log.end_offset
    if staged:
        segments = len(log.segments)
        stage(log, other.batch(1), other.epoch, 0)
        assume(len(log.segments) == segments)  # one that was begun for nothing stays
    log.recovery_point = min(log.recovery_point, end)
    assert log.truncate_to(end, 0) == end
    assert (log.layout > layout) == (had > end)
    twin = life.logs[0]
    assert answers(log) == answers(twin)
    sent = life.sent + other.sent
    assert decisions(log, sent) == decisions(twin, sent)
    both = Life(log, twin)
    both.epoch = max(life.epoch, other.epoch)
    run(both, after)
    log, twin = both.logs
    assert answers(log) == answers(twin)
    assert decisions(log, sent + both.sent) == decisions(twin, sent + both.sent)
    both.reopen(clean=True)
    log, twin = both.logs
    assert answers(log) == answers(twin)
    log.close(), twin.close()
    assert files(log) == files(twin)
    assert log.disk.open_files == twin.disk.open_files
