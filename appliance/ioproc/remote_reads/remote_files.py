"""The files of remote segments that readers need: here in the cache, on their way, or refused.

Whoever needs a file that is not here gets FileOnItsWay and is woken when it has come or was
refused. Invariant: a file is asked for once at a time; nothing here waits for the store. A file
that was refused is not asked for again before RETRY_MS, and whoever asks meanwhile is told: that
is one request to a store that is away, whatever readers do.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from appliance.base.disk import Disk, File, read_file
from appliance.base.errors import KAFKA_STORAGE_ERROR, StorageFailed
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.remote_reads.file_cache import CachedFile, FileKey, RemoteCache
from appliance.ioproc.remote_reads.segment_chunks import CHUNK_BYTES, SegmentChunks
from appliance.remotelog.objects import LOG, OFFSET_INDEX
from appliance.remotelog.records import RemoteLogSegmentMetadataRecord

RETRY_MS: Final = 1000
MOST_INDEXES: Final = 64
"""Segments whose offset index is kept in memory; one of a GiB takes 2 MiB."""
MOST_UNDER_WAY: Final = 64
"""So many files are asked for before nothing more is fetched ahead."""
MOST_LOST: Final = 2
AHEAD: Final = 2
"""Chunks that are fetched before a sequential reader asks for them."""


class FileOnItsWay(Exception):
    """A file is needed that is not here yet; the partition is woken when it is."""


class RemoteReadFailed(Exception):
    """A remote read is answered with an error of Kafka's, `code`."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class FileArrival(NamedTuple):
    """A file that has come, or with a failure has not. lost: the process ended that should have
    brought it."""

    number: int
    size: int
    end_offset: int
    failure: str = ""
    lost: bool = False


class FileFetcher(Protocol):
    """The way to the store. No call waits."""

    def fetch_file(
        self,
        number: int,
        one: RemoteLogSegmentMetadataRecord,
        kind: str,
        span: tuple[int, int],
        path: str,
    ) -> None:
        """Bring a file. span: begin and end of a chunk of the log."""
        ...

    def take_arrivals(self) -> list[FileArrival]:
        """Those of `fetch_file` since the last call."""
        ...

    def remove_file(self, path: str) -> None:
        """Remove a file of the cache."""
        ...


class _Asked(NamedTuple):
    """name: of the partition that was the first to ask. lost: how often the process ended that
    should have brought it."""

    name: str
    one: RemoteLogSegmentMetadataRecord
    kind: str
    span: tuple[int, int]
    lost: int = 0


Report = Callable[[str, str], None]
"""Told of a partition whose remote segment could not be read, and why."""


class RemoteFiles:
    """fetched_bytes, fetches, failed_fetches: counted since the start. now_ms: the time of this
    turn. bugs: see `take_bugs`."""

    __slots__ = (
        "_chunk_bytes",
        "_disk",
        "_failed",
        "_fetcher",
        "_indexes",
        "_report",
        "_under_way",
        "bugs",
        "cache",
        "failed_fetches",
        "fetched_bytes",
        "fetches",
        "now_ms",
    )

    def __init__(
        self,
        disk: Disk,
        cache: RemoteCache,
        fetcher: FileFetcher,
        report: Report,
        now_ms: Callable[[], int],
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        self._disk = disk
        self.cache = cache
        self._fetcher = fetcher
        self._report = report
        self.now_ms = now_ms
        self._chunk_bytes = chunk_bytes
        self._failed: dict[FileKey, tuple[int, str]] = {}  # until when, and why
        self._indexes: OrderedDict[bytes, SegmentChunks] = OrderedDict()
        self._under_way: dict[int, _Asked] = {}
        self.bugs: list[Exception] = []
        self.fetches = self.failed_fetches = self.fetched_bytes = 0

    # Asked by readers -----------------------------------------------------------------------------

    def chunks_of(self, partition: Partition, one: RemoteLogSegmentMetadataRecord) -> SegmentChunks:
        """The chunks of a segment. Raises FileOnItsWay, RemoteReadFailed."""
        segment_id = one.remote_log_segment_id.id
        known = self._indexes.get(segment_id)
        if known is None:
            data = self.index_bytes(partition, one, OFFSET_INDEX)
            size = one.segment_size_in_bytes
            known = SegmentChunks(one.start_offset, size, data, self._chunk_bytes)
            self._indexes[segment_id] = known
            if len(self._indexes) > MOST_INDEXES:
                self._indexes.popitem(last=False)
        self._indexes.move_to_end(segment_id)
        return known

    def chunk(
        self,
        partition: Partition,
        one: RemoteLogSegmentMetadataRecord,
        chunks: SegmentChunks,
        number: int,
    ) -> CachedFile:
        """A chunk of a segment's log. Raises FileOnItsWay, RemoteReadFailed."""
        span = chunks.bounds(number)
        key = (one.remote_log_segment_id.id, LOG, span[0])
        file = self._needed(partition, one, key, span)
        chunks.ends[number] = file.end_offset
        return file

    def index_bytes(
        self, partition: Partition, one: RemoteLogSegmentMetadataRecord, kind: str
    ) -> bytes:
        """A file beside a segment's log. Raises FileOnItsWay, RemoteReadFailed."""
        key = (one.remote_log_segment_id.id, kind, 0)
        file = self._needed(partition, one, key, (0, 0))
        try:
            return read_file(self._disk, self.cache.path(file.number))
        except StorageFailed:  # somebody removed it
            self.discard(file)
            self._needed(partition, one, key, (0, 0))
            raise AssertionError("it was forgotten just now") from None

    def fetch_ahead(
        self, partition: Partition, one: RemoteLogSegmentMetadataRecord, number: int
    ) -> bool:
        """Bring the chunks from this number on that a sequential reader wants next; False when
        this segment has too few of them."""
        key = (one.remote_log_segment_id.id, OFFSET_INDEX, 0)
        index = self.cache.find_file(key)
        if index is None or not index.here:
            self._wanted(partition, one, key, (0, 0))
            return True
        chunks = self.chunks_of(partition, one)
        for each in range(number, number + AHEAD):
            if each >= len(chunks):
                return False
            span = chunks.bounds(each)
            self._wanted(partition, one, (one.remote_log_segment_id.id, LOG, span[0]), span)
        return True

    def open_file(self, file: CachedFile) -> File:
        """Open a file of the cache for reading. Raises StorageFailed."""
        return self._disk.open_file(self.cache.path(file.number))

    def discard(self, file: CachedFile) -> None:
        """A file of the cache is gone or damaged: it is fetched anew when it is needed."""
        self.cache.forget_file(file)
        self._fetcher.remove_file(self.cache.path(file.number))

    def _needed(
        self,
        partition: Partition,
        one: RemoteLogSegmentMetadataRecord,
        key: FileKey,
        span: tuple[int, int],
    ) -> CachedFile:
        file = self.cache.find_file(key)
        if file is not None and file.here:
            return file
        if file is None:
            failed = self._failed.get(key)
            if failed is not None:
                if self.now_ms() < failed[0]:
                    raise RemoteReadFailed(KAFKA_STORAGE_ERROR, failed[1])
                del self._failed[key]
            file = self._ask(partition, one, key, span)
        file.waiting[partition.handle] = None
        raise FileOnItsWay

    def _wanted(
        self,
        partition: Partition,
        one: RemoteLogSegmentMetadataRecord,
        key: FileKey,
        span: tuple[int, int],
    ) -> None:
        """Ask for a file that no reader waits for, so none is told when it does not come."""
        free = len(self._under_way) < MOST_UNDER_WAY and key not in self._failed
        if free and self.cache.find_file(key) is None:
            self._ask(partition, one, key, span)

    def _ask(
        self,
        partition: Partition,
        one: RemoteLogSegmentMetadataRecord,
        key: FileKey,
        span: tuple[int, int],
    ) -> CachedFile:
        file = self.cache.begin_file(key)
        self.fetches += 1
        try:
            self._fetch(file.number, _Asked(str(partition), one, key[1], span))
        except Exception:
            self._give_up(file.number)  # or it would be on its way for ever
            raise
        return file

    def _fetch(self, number: int, asked: _Asked) -> None:
        self._under_way[number] = asked
        path = self.cache.path(number)
        self._fetcher.fetch_file(number, asked.one, asked.kind, asked.span, path)

    # Told by the way to the store -----------------------------------------------------------------

    def take_arrivals(self) -> list[int]:
        """Take what has come; the rows of the partitions that wait no longer."""
        woken: dict[int, None] = {}
        for arrival in self._fetcher.take_arrivals():
            asked = self._under_way.get(arrival.number)
            try:
                if asked is not None and arrival.lost and asked.lost < MOST_LOST:
                    self._fetch(arrival.number, asked._replace(lost=asked.lost + 1))
                elif asked is not None:
                    woken.update(self._arrived(arrival, asked))
            except Exception as bug:
                self.bugs.append(bug)
                woken.update(self._give_up(arrival.number))
        return list(woken)

    def take_bugs(self) -> list[Exception]:
        """Returns what nobody expected of arrivals since the last call: each cost one file, which
        is asked for anew."""
        found, self.bugs = self.bugs, []
        return found

    def _give_up(self, number: int) -> dict[int, None]:
        """Forget a file that is half asked for, or half here; who waits for it."""
        self._under_way.pop(number, None)
        file = self.cache.numbered(number)
        if file is None:
            return {}
        self.cache.forget_file(file)
        return file.waiting

    def _arrived(self, arrival: FileArrival, asked: _Asked) -> dict[int, None]:
        number, size, end_offset, failure, _ = arrival
        del self._under_way[number]
        file = self.cache.numbered(number)
        if file is None or file.here:
            return {}
        waiting = file.waiting
        if failure:
            self.cache.forget_file(file)
            self.failed_fetches += 1
            self._forget_old_failures()
            self._failed[file.key] = (self.now_ms() + RETRY_MS, failure)
            self._report(asked.name, failure)
            return waiting
        self.fetched_bytes += size
        for gone in self.cache.landed(file, size, end_offset):
            self._fetcher.remove_file(self.cache.path(gone))
        file.waiting = {}
        return waiting

    def _forget_old_failures(self) -> None:
        now_ms = self.now_ms()
        for key in [key for key, failed in self._failed.items() if failed[0] <= now_ms]:
            del self._failed[key]
