"""Cleans a log as the I/O process and its cleaner do together, here in one thread."""

from appliance.logstore import cleanable, swap
from appliance.logstore.compaction import Compactor, Work
from appliance.logstore.log import PartitionLog
from appliance.wire.batch import iter_records, read_header

MEMORY = 1 << 20


def begin(log: PartitionLog, cleaned_to: int, now_ms: int, memory: int = MEMORY) -> Work:
    found = cleanable.measure_dirty(log, cleaned_to, log.end_offset, now_ms)
    return cleanable.work(log, found, now_ms, memory, 0.9, 2000)


def clean(log: PartitionLog, cleaned_to: int, now_ms: int, memory: int = MEMORY) -> int:
    """One whole cleaning; what is cleaned up to."""
    job = Compactor(log.disk, begin(log, cleaned_to, now_ms, memory), lambda _: None)
    job.read_keys()
    for group in job.groups():
        cleaned = job.clean(group)
        swap.decide(log.disk, log.path, cleaned.base, cleaned.size)
        log.layout += 1
        swap.replace(log, [base for base, _ in group], cleaned, now_ms).run(log.disk)
    return job.end_offset


def survivors(records, first_dirty: int, end: int, horizons: dict, now_ms: int):
    """The dumb twin of a cleaning. records: (offset, key, value), all of the log. horizons: offset
    of a tombstone → when it may go."""
    newest = {key: offset for offset, key, _ in records if first_dirty <= offset < end}
    kept = []
    for offset, key, value in records:
        gone = newest.get(key, -1) > offset or (
            value is None and offset in horizons and horizons[offset] <= now_ms
        )
        if offset >= end or not gone:
            kept.append((offset, key, value))
    return kept


def read(batches):
    return [
        (record.offset, record.key, record.value, record.timestamp)
        for batch in batches
        if read_header(batch).record_count
        for record in iter_records(batch)
    ]
