"""A core whose partitions have the head of their log in a remote store, in memory, and a way to it
that a test holds, breaks and releases."""

from collections import deque

from core_world import NOW_MS, World, batch

from appliance.ioproc.remote_reads.checked_files import fetch_chunk, fetch_index
from appliance.ioproc.remote_reads.file_cache import RemoteCache
from appliance.ioproc.remote_reads.remote_files import FileArrival, RemoteFiles
from appliance.ioproc.remote_reads.remote_read_rules import RemoteReads
from appliance.logstore import lookup, removal
from appliance.remotelog import objects, states
from appliance.remotelog.objects import RemoteObjects
from appliance.remotelog.records import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemoteSegmentId,
    RemoteTopicPartition,
    SegmentLeaderEpoch,
)
from appliance.remotelog.segments import RemoteSegments
from appliance.ring.messages import MARK, MARK_COMMIT

SUFFIXES = {
    objects.LOG: ".log",
    objects.OFFSET_INDEX: ".index",
    objects.TIME_INDEX: ".timeindex",
    objects.TRANSACTION_INDEX: ".txnindex",
}


class MemoryStore:
    """`objects.ObjectStore` in a dict."""

    def __init__(self):
        self.kept = {}

    def names(self, prefix):
        found = self.kept.items()
        return {name: len(data) for name, data in found if name.startswith(prefix + "/")}

    def read_object(self, name):
        yield self.kept[name]

    def read_range(self, name, at, length):
        return self.kept[name][at : at + length]

    def write_object(self, name, pieces):
        self.kept[name] = b"".join(pieces)

    def delete(self, name):
        self.kept.pop(name, None)


class HeldFetcher:
    """`files.FileFetcher`: what is asked for waits in `asked` until the test lets it come."""

    def __init__(self, store, disk):
        self.objects = RemoteObjects(store)
        self.disk = disk
        self.asked = deque()
        self.every = []  # (kind, span) of all that was ever asked for
        self.removed = []
        self.came = []

    def fetch_file(self, number, one, kind, span, path):
        self.asked.append((number, one, kind, span, path))
        self.every.append((kind, span))

    def take_arrivals(self):
        came, self.came = self.came, []
        return came

    def remove_file(self, path):
        if self.disk.exists(path):
            self.disk.unlink(path)
        self.removed.append(path)


class TieredWorld(World):
    """chunk: bytes of a chunk. room: of the cache. segments: by partition."""

    def __init__(self, folder, chunk=300, room=1 << 20, **rest):
        super().__init__(folder, **rest)
        self.store, self.segments, self.told = MemoryStore(), {}, []
        self.disk.mkdir(f"{self.folder}/cache")
        self.fetcher = HeldFetcher(self.store, self.disk)
        cache = RemoteCache(f"{self.folder}/cache", 100, room)
        report = lambda partition, why: self.told.append((partition, why))  # noqa: E731
        clock = lambda: self.served.now_ms  # noqa: E731
        files = RemoteFiles(self.disk, cache, self.fetcher, report, clock, chunk)
        self.questions.remote = RemoteReads(files, self.segments.get)
        self.copies = 0

    def come(self, failure="", most=1 << 30, lost=False):
        """What was asked for comes, or fails; how many files did."""
        count = 0
        while self.fetcher.asked and count < most:
            number, one, kind, span, path = self.fetcher.asked.popleft()
            count += 1
            got, why = None, failure
            if not failure:
                try:
                    if kind == objects.LOG:
                        got = fetch_chunk(self.fetcher.objects, self.disk, one, *span, path)
                    else:
                        got = fetch_index(self.fetcher.objects, self.disk, one, kind, path)
                except Exception as refused:
                    why = str(refused) or repr(refused)
            size, end = (got.size, got.end_offset) if got else (0, -1)
            self.fetcher.came.append(FileArrival(number, size, end, why, lost))
            self.questions.complete_remote_reads(self.served.now_ms)
        return count

    def all_come(self):
        """The completions of everybody who waits, after as many files as that takes."""
        got = self.turn()
        while self.come():
            got += self.turn()
        return got

    def tier(self, partition, count, keep=0):
        """The oldest `count` closed segments are copied, and all but the last `keep` of them leave
        this host; the log start stays where it is."""
        log = partition.log
        known = self.segments.setdefault(partition, RemoteSegments(partition.topic_id, 0))
        every = log.segments
        count = min(count, len(every) - 1)
        self.settle()
        log.sync_now()
        while count and every[count].base > partition.last_stable_offset:
            count -= 1
        for number in range(count):
            self.copy_one(partition, known, every[number], every[number + 1].base - 1)
        for _ in range(count - keep):
            segment = log.order.drop_oldest()
            for path in removal.rename_away(self.disk, segment):
                self.disk.unlink(path)
        log.layout += 1
        partition.aborted = None
        self.served.rows.changed[partition] = None
        return count

    def copy_one(self, partition, known, segment, end):
        log, data = partition.log, {}
        for kind, suffix in SUFFIXES.items():
            path = segment.stem + suffix
            if self.disk.exists(path):
                file = self.disk.open_file(path)
                data[kind] = [file.pread(file.size(), 0)]
                file.close()
        data[objects.PRODUCER_SNAPSHOT] = data[objects.LEADER_EPOCHS] = [b""]
        owner = RemoteTopicPartition(name=partition.topic, id=partition.topic_id, partition=0)
        self.copies += 1
        segment_id = RemoteSegmentId(topic_id_partition=owner, id=self.copies.to_bytes(16, "big"))
        epochs = log.epochs
        told = [(epochs.epoch_of(segment.base), segment.base)] + [
            (epoch, start)
            for epoch, start in zip(epochs.epochs, epochs.starts, strict=True)
            if segment.base < start <= end
        ]
        one = RemoteLogSegmentMetadataRecord(
            remote_log_segment_id=segment_id,
            start_offset=segment.base,
            end_offset=end,
            broker_id=1,
            max_timestamp_ms=lookup.newest_of(log.order, segment),
            event_timestamp_ms=NOW_MS,
            segment_leader_epochs=tuple(
                SegmentLeaderEpoch(leader_epoch=e, offset=o) for e, o in told
            ),
            segment_size_in_bytes=segment.size,
            custom_metadata=None,
            remote_log_segment_state=states.COPY_SEGMENT_STARTED,
            txn_index_empty=objects.TRANSACTION_INDEX not in data,
        )
        self.fetcher.objects.copy_segment(one, data)
        known.replay(one)
        known.replay(
            RemoteLogSegmentMetadataUpdateRecord(
                remote_log_segment_id=segment_id,
                broker_id=1,
                event_timestamp_ms=NOW_MS,
                custom_metadata=None,
                remote_log_segment_state=states.COPY_SEGMENT_FINISHED,
            )
        )

    def bytes_of(self, answer, partition):
        """As in World, of whatever file the answer names."""
        if answer.i >= 0:
            return super().bytes_of(answer, partition)
        file = self.disk.open_file(self.questions.remote.files.cache.path(-answer.i))
        try:
            return file.pread(answer.e, answer.g)
        finally:
            file.close()

    def write(self, partition, *values, timestamp=NOW_MS, producer=None):
        """A batch; producer: id and sequence, of a transaction."""
        if producer is None:
            data = batch(*values, timestamp=timestamp)
        else:
            who = (producer[0], 0, producer[1])
            data = batch(*values, timestamp=timestamp, producer=who, transactional=True)
        assert self.core.appends.append_own(partition, memoryview(bytearray(data)), NOW_MS)
        self.settle()

    def end(self, partition, producer, commit):
        """A marker."""
        flags = MARK_COMMIT if commit else 0
        self.ask(MARK, partition.handle, 9, producer, 0, e=0, f=1, flags=flags)
        self.settle()
