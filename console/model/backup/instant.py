"""One instant of a running appliance: where each of its logs ended, and its files as they were.

High watermarks are read from its memory in an order that makes them one: those of
`__consumer_offsets` before those of the records that offsets speak of, and no transaction may be
decided meanwhile, or all are read again. What a node of a cluster follows it knows a little later
than who leads it: there the other ones are read when it has heard of them. Then every segment gets
a second name in a folder of ours, so that retention and compaction take none of it while it is
copied. A log that was compacted between the two is seen by its layout, and all begins again.
"""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import ConfigError, StorageFailed
from appliance.base.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from appliance.logstore.scrub import segments_of
from appliance.metadata import checkpoint
from appliance.metadata.checkpoint import SnapshotId
from appliance.metadata.follower import Follower, MetadataUnreadable
from appliance.metadata.identity import META_PROPERTIES, read_identity
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import PartitionImage
from appliance.observer.door import NotThere, Observer
from appliance.ring import partition_table as columns
from appliance.ring.partition_table import PartitionTable
from console.model.asking.failure import Failure, usage

LINKS: Final = "penstock.backup"
_TRIES: Final = 5
_PATIENCE_S: Final = 10.0
_POLL_S: Final = 0.02
_HEARD_S: Final = 1.5
"""In that time a replica in sync has heard what its leader knew: three times as long as a fetch
waits (replica.fetch.wait.max.ms)."""
_HERE: Final = (columns.ONLINE, columns.FOLLOWING)


@dataclass(slots=True)
class Log:
    """A partition at the instant. links: folder with its segments, (base offset, bytes) each."""

    topic: str
    topic_id: bytes
    partition: int
    handle: int
    end: int = 0
    log_start: int = 0
    layout: int = 0
    folder: int = 0
    links: str = ""
    segments: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Instant:
    """metadata: a snapshot of it, as a file; metadata_end: where that log ended. elsewhere: of
    which partitions this node of a cluster has no replica. torn: transactions
    were decided all the time, so some of them may be whole in one log and not in another."""

    ms: int
    cluster_id: str
    node_id: int
    identities: tuple[str, ...]
    metadata: bytes
    metadata_end: int
    logs: list[Log]
    left_out: list[str]
    elsewhere: list[str]
    torn: bool


class Running:
    """An appliance that runs in these log folders, the first one first."""

    def __init__(self, disk: Disk, folders: list[str]) -> None:
        """Raises Failure."""
        self._disk, self._folders = disk, folders
        try:
            self._observer = Observer(folders[0])
            identities = [read_identity(disk, folder) for folder in folders]
        except (NotThere, ConfigError, StorageFailed) as why:
            raise Failure(str(why), "penstock up starts one", name="NOT_RUNNING") from None
        if len({one.cluster_id for one in identities}) > 1:
            raise usage(f"{', '.join(folders)} do not belong to one appliance")
        self._identity = identities[0]
        self._lock = _locked(folders[0])
        if self._lock < 0:
            text = f"a backup of {folders[0]} is running"
            raise Failure(text, name="BACKUP_RUNS")

    def close(self) -> None:
        """Let go of everything."""
        self.let_go()
        os.close(self._lock)

    def instant(self) -> Instant:
        """Look, and give the files their second names. Raises Failure."""
        for _ in range(_TRIES):
            self.let_go()
            self._wait_until_open()
            found = self._look()
            if found is not None:
                return found
        raise Failure("topics are created and deleted too fast for a backup", name="NO_INSTANT")

    def _wait_until_open(self) -> None:
        """Partitions that were made just now, or whose process has a successor, come soon."""
        table = self._observer.tables.partitions
        give_up = time.monotonic() + _PATIENCE_S
        while time.monotonic() < give_up and any(
            table.read_column(row.handle, columns.STATUS) == columns.NOT_OPEN
            for row in table.live_rows()
        ):
            time.sleep(_POLL_S)

    def let_go(self) -> None:
        """The second names are not needed any more."""
        for folder in self._folders:
            shutil.rmtree(os.path.join(folder, LINKS), ignore_errors=True)

    def _look(self) -> Instant | None:
        table = self._observer.tables.partitions
        follower = Follower(self._disk, self._folders[0], table)
        try:
            follower.catch_up(self._observer.tables.processes.metadata_offset)
        except (MetadataUnreadable, StorageFailed) as why:
            raise Failure(str(why), name="METADATA_UNREADABLE") from None
        image = follower.image
        if image.brokers and self._identity.node_id not in image.brokers:
            text = f"node {self._identity.node_id} is a controller only and has no partitions"
            raise Failure(text, "back up the nodes that are brokers", name="NO_BROKER")
        logs, left_out = self._logs(image, table)
        follows = any(
            table.read_column(one.handle, columns.STATUS) == columns.FOLLOWING for one in logs
        )
        ms, torn = _read_marks(table, logs, _HEARD_S if follows else 0.0)
        if not self._link(logs) or any(
            table.read_column(one.handle, columns.LAYOUT) != one.layout for one in logs
        ):
            return None
        snapshot = SnapshotId(image.applied_offset + 1, max(image.epoch, 0))
        pieces = checkpoint.write_checkpoint(
            image, snapshot, follower.quorum, now_ms=ms, last_log_timestamp=ms
        )
        return Instant(
            ms,
            self._identity.cluster_id,
            self._identity.node_id,
            tuple(_text(f"{folder}/{META_PROPERTIES}") for folder in self._folders),
            b"".join(pieces),
            snapshot.offset,
            logs,
            left_out,
            [name for name, _ in self._partitions(image, here=False)],
            torn,
        )

    def _logs(self, image: MetadataImage, table: PartitionTable) -> tuple[list[Log], list[str]]:
        logs, left_out = [], []
        for name, one in self._partitions(image, here=True):
            if self._identity.node_id not in one.isr:
                left_out.append(f"{name}: its newest records; the replica here is not in sync")
        for row in table.live_rows():
            topic = image.topics_by_id.get(row.topic_id)
            found = topic and image.partition(topic.name, row.partition)
            if not topic or not found:
                continue  # it came or went just now
            if self._identity.node_id not in found.replicas:
                continue
            log = Log(topic.name, row.topic_id, row.partition, row.handle)
            if table.read_column(row.handle, columns.STATUS) in _HERE:
                logs.append(log)
            else:
                left_out.append(f"{topic.name}-{row.partition}: it is offline")
        order = {OFFSETS_TOPIC: 0}
        logs.sort(key=lambda one: (order.get(one.topic, 1), one.topic, one.partition))
        return logs, left_out

    def _partitions(
        self, image: MetadataImage, *, here: bool
    ) -> Iterator[tuple[str, PartitionImage]]:
        """Those of which this node has a replica, or those of which it has none."""
        for topic in image.topics_by_name.values():
            for one in topic.partitions:
                if (self._identity.node_id in one.replicas) is here:
                    yield f"{topic.name}-{one.index}", one

    def _link(self, logs: list[Log]) -> bool:
        """Links every log's files; True if all of them were there."""
        for folder in self._folders:
            os.mkdir(os.path.join(folder, LINKS), 0o700)
        for number, one in enumerate(logs):
            name = f"{one.topic}-{one.partition}"
            places = [n for n, f in enumerate(self._folders) if os.path.isdir(f"{f}/{name}")]
            if not places:
                if len(self._folders) == 1 and not one.end:
                    continue  # nothing was ever written
                raise usage(f"{name} is in none of the folders", "name all log folders (log.dirs)")
            one.folder = places[0]
            root = self._folders[one.folder]
            one.links = f"{root}/{LINKS}/{number}"
            os.mkdir(one.links)
            try:
                for base, _ in segments_of(self._disk, f"{root}/{name}"):
                    file = f"{base:020d}.log"
                    os.link(f"{root}/{name}/{file}", f"{one.links}/{file}")
            except (OSError, StorageFailed) as why:
                if isinstance(why, OSError) and why.errno == errno.ENOENT:
                    return False
                if isinstance(why, StorageFailed) and not os.path.exists(f"{root}/{name}"):
                    return False
                raise Failure(str(why), name="NOT_READABLE") from None
            one.segments = segments_of(self._disk, one.links)
        return True


def _locked(folder: str) -> int:
    """A descriptor whose lock says that a backup is being taken, -1 when another one has it."""
    fd = os.open(f"{folder}/{META_PROPERTIES}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return -1
    return fd


def taken_just_now(folder: str) -> bool:
    """True while a backup of the appliance with this first log folder is being taken."""
    fd = _locked(folder)
    if fd >= 0:
        os.close(fd)
    return fd < 0


def _read_marks(table: PartitionTable, logs: list[Log], heard_s: float) -> tuple[int, bool]:
    """High watermarks of one instant, when that was, and whether transactions were decided
    meanwhile. heard_s: so much later this node knows of what others lead; then these are whole
    only where none was decided for twice as long. Raises Failure."""
    decided = [one for one in logs if one.topic == TRANSACTIONS_TOPIC]
    offsets = [one for one in logs if one.topic == OFFSETS_TOPIC]
    records = [one for one in logs if one.topic not in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)]
    give_up, ms = time.monotonic() + _PATIENCE_S, 0
    while time.monotonic() < give_up:
        _mark(table, decided)
        before = [one.end for one in decided]
        ms = time.time_ns() // 1_000_000
        _mark(table, offsets)
        time.sleep(heard_s)
        _mark(table, records)
        time.sleep(heard_s if decided else 0.0)
        _mark(table, decided)
        if before == [one.end for one in decided]:
            return ms, False
    if heard_s:
        return ms, True
    raise Failure(
        f"for {_PATIENCE_S:.0f} s there was no instant without a transaction being decided",
        "retry when there are fewer of them",
        name="NO_INSTANT",
    )


def _mark(table: PartitionTable, logs: list[Log]) -> None:
    for one in logs:
        one.layout = table.read_column(one.handle, columns.LAYOUT)
        one.log_start = table.read_column(one.handle, columns.LOG_START)
        one.end = table.read_column(one.handle, columns.HIGH_WATERMARK)


def _text(path: str) -> str:
    with suppress(OSError), open(path) as file:
        return file.read()
    return ""
