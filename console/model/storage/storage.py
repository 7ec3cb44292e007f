"""Reading data folders through for damage: which partitions there are, what is known of each, what
a damage means and what helps. The reading itself is `appliance/logstore/scrub.py`.
"""

import json
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from appliance.base.disk import Disk, read_file
from appliance.base.errors import ConfigError, PeerError, StorageFailed
from appliance.base.idle import give_way
from appliance.base.ids import METADATA_TOPIC
from appliance.config.broker import BrokerConfig
from appliance.control.quorum import log_repair as repair
from appliance.control.quorum import state_file as quorum_state
from appliance.ioproc.durability import checkpoints
from appliance.logstore import files, scrub
from appliance.logstore.partition_metadata import read_topic_id
from appliance.logstore.scrub import ANY, DERIVED, HOLE, TAIL, Damage, ScrubbedLog
from appliance.metadata import checkpoint
from appliance.metadata.effective import log_config
from appliance.metadata.follower import LOG_FOLDER, Follower, MetadataUnreadable, skip_silently
from appliance.metadata.identity import META_PROPERTIES, read_identity
from appliance.metadata.image import MetadataImage
from appliance.observer.door import NotThere, Observer
from appliance.ring.partition_table import LOG_END
from appliance.supervisor.folder import CLEAN_NAME
from console.model.asking.failure import Failure, usage

_PARTITION: Final = re.compile(r"(.+)-(\d+)(\.[0-9a-f]{32}-future)?")
_CHECKPOINTS: Final = (
    checkpoints.RECOVERY_POINT, checkpoints.HIGH_WATERMARK, checkpoints.LOG_START,
    checkpoints.CLEANER,
)  # fmt: skip
_TRIES: Final = 2
LOST_NAME: Final = "penstock.lost"
"""In the folder of a partition: the offsets that repairs have set aside, which are known to be gone
and no news."""
UNREADABLE: Final = "unreadable"


@dataclass(slots=True, frozen=True)
class Finding:
    """A damage. partition: "" of what belongs to none. position: in bytes. first_offset,
    last_offset: that it is about, -1 where there are none or nobody knows. means: for whoever reads
    there. remedy: what helps. harmless: nothing is lost by it, and nothing has to be done."""

    partition: str
    file: str
    position: int
    first_offset: int
    last_offset: int
    problem: str
    means: str
    remedy: str
    harmless: bool = False


@dataclass(slots=True, frozen=True)
class Place:
    """A partition's folder. bytes: of its segments. elsewhere: other nodes have what is in it."""

    folder: str
    topic: str
    partition: int
    bytes: int
    known: ScrubbedLog
    elsewhere: bool = False

    @property
    def root(self) -> str:
        """The data folder that it is in."""
        return os.path.dirname(self.folder)


@dataclass(slots=True, frozen=True)
class Step:
    """So many bytes more were read; or something was found."""

    bytes: int = 0
    finding: Finding | None = None


class Scrub:
    """The extent of a scrub. places: partitions. bytes: of all of them. running: an appliance works
    there. metadata: the cluster's in these folders, None without one.
    """

    def __init__(self, disk: Disk, folders: list[str], topic: str = "") -> None:
        """folders: data folders, or single partitions' ones. topic: only this one's. Raises
        Failure."""
        self._disk = disk
        self._roots: list[str] = []
        self.places: list[Place] = []
        self.running = False
        self.metadata: MetadataImage | None = None
        for folder in folders:
            self._look_into(folder, topic)
        if topic and not self.places:
            raise usage(f"there is no partition of {topic} in {', '.join(folders)}")
        self.bytes = sum(place.bytes for place in self.places)

    def _look_into(self, folder: str, topic: str) -> None:
        try:
            names = self._disk.listdir(folder)
        except StorageFailed as why:
            raise Failure(str(why), "DIR is a data folder", name="NO_FOLDER") from None
        if any(files.offset_of(name, files.LOG) >= 0 for name in names):
            root, name = os.path.split(folder)
            self._add(root, [name], "")
        elif META_PROPERTIES not in names:
            raise usage(f"{folder} is no data folder: it has no {META_PROPERTIES}")
        else:
            if not topic:
                self._roots.append(folder)
            self._add(folder, names, topic)

    def _add(self, root: str, names: list[str], topic: str) -> None:
        facts = _Facts(self._disk, root, self.metadata)
        self.metadata = facts.image
        self.running = self.running or facts.running
        for name in names:
            match = _PARTITION.fullmatch(name)
            folder = f"{root}/{name}"
            if match is None or not os.path.isdir(folder) or topic not in ("", match[1]):
                continue
            with suppress(StorageFailed):  # it went meanwhile
                size = sum(size for _, size in scrub.segments_of(self._disk, folder))
                known = facts.of(folder, match[1], int(match[2]), future=bool(match[3]))
                elsewhere = facts.elsewhere(match[1], int(match[2]))
                place = Place(folder, match[1], int(match[2]), size, known, elsewhere)
                self.places.append(place)

    def run(self, read: Callable[[], bool]) -> Iterator[Step]:
        """Read everything. read: whether to go on. Raises StorageFailed."""
        for root in self._roots:
            for finding in _of_root(self._disk, root):
                yield Step(finding=finding)
        for place in self.places:
            if not read():
                return
            yield from self._place(place, read)

    def _place(self, place: Place, read: Callable[[], bool]) -> Iterator[Step]:
        """A damage counts when it is seen twice: what writes or compacts meanwhile looks like one,
        once."""
        found: list[Damage] = []
        for number in range(_TRIES):
            before, found = found, []
            try:
                for one in scrub.scrub(self._disk, place.folder, place.known):
                    if not read():
                        return
                    if isinstance(one, Damage):
                        found.append(one)
                    elif not number:
                        yield Step(bytes=one.bytes)
            except StorageFailed as why:
                if not os.path.exists(why.path):
                    continue  # retention or a deletion took it
                found.append(Damage(why.path, 0, UNREADABLE, str(why)))
            if number:
                found = [one for one in found if one in before]
            if not found:
                return
        lost = lost_of(self._disk, place.folder)
        for one in found:
            yield Step(finding=_finding(one, place, lost))


class _Facts:
    """Facts of the logs in a data folder. other: the metadata in another folder of the same
    appliance.
    """

    def __init__(self, disk: Disk, root: str, other: MetadataImage | None) -> None:
        self._disk = disk
        self._points = {}
        with suppress(StorageFailed):
            self._points = checkpoints.read(disk, root, checkpoints.RECOVERY_POINT)
        self._compacted = {}
        with suppress(StorageFailed):
            self._compacted = checkpoints.read(disk, root, checkpoints.CLEANER)
        self._orderly = disk.exists(f"{root}/{CLEAN_NAME}")
        image, self._ends = metadata_of(disk, root)
        self.image = image if image is not None else other
        self.running = self._ends is not None
        self._node_id = -1
        with suppress(ConfigError, StorageFailed):
            self._node_id = read_identity(disk, root).node_id

    def elsewhere(self, topic: str, partition: int) -> bool:
        """True if another node was in sync by this folder's latest metadata."""
        found = None if self.image is None else self.image.partition(topic, partition)
        return found is not None and any(node != self._node_id for node in found.isr)

    def of(self, folder: str, topic: str, partition: int, *, future: bool) -> ScrubbedLog:
        """The facts of one log."""
        if topic == METADATA_TOPIC:
            return ScrubbedLog(gaps=False)
        gaps = True
        if self.image is not None and topic in self.image.topics_by_name:
            gaps = log_config(self.image, BrokerConfig(), topic).compact
            gaps = gaps or (topic, partition) in self._compacted  # once, or by the node's settings
        if future:  # a copy that grows: nothing says how far it is
            return ScrubbedLog(gaps=gaps)
        end = ANY
        topic_id = read_topic_id(self._disk, folder)
        if self._ends is not None and topic_id is not None:
            end = self._ends.get((topic_id, partition), ANY)
        point = self._points.get((topic, partition), 0)
        return ScrubbedLog(end, point, self._orderly and self._ends is None, gaps)


def metadata_of(
    disk: Disk, root: str
) -> tuple[MetadataImage | None, Mapping[tuple[bytes, int], int] | None]:
    """The cluster's metadata where it can be read; and of a running appliance where its logs
    end."""
    ends: dict[tuple[bytes, int], int] | None = None
    try:
        observer = Observer(root)
        table = observer.tables.partitions
        ends = {
            (row.topic_id, row.partition): table.read_row(row.handle)[LOG_END]
            for row in table.live_rows()
        }
        follower = Follower(disk, root, table, skip_silently)
        follower.catch_up(observer.tables.processes.metadata_offset)
        return follower.image, ends
    except (NotThere, OSError):
        pass
    except (MetadataUnreadable, StorageFailed):
        return None, ends
    try:
        made = repair.plan(disk, root, (), read_identity(disk, root).node_id)
    except (ConfigError, StorageFailed):
        return None, ends
    return (made.image if made.lossless else None), ends


def lost_of(disk: Disk, folder: str) -> list[tuple[int, int]]:
    """First and last of the offsets that repairs of this partition have set aside."""
    with suppress(StorageFailed, ValueError, TypeError):
        found = json.loads(read_file(disk, f"{folder}/{LOST_NAME}"))
        return [(int(first), int(last)) for first, last in found]
    return []


def _finding(one: Damage, place: Place, lost: list[tuple[int, int]]) -> Finding:
    at = one.path, one.position, one.first, one.last, one.problem
    name = f"{place.topic}-{place.partition}"
    repair = f"stop the appliance, penstock storage repair {place.root}, start"
    if one.kind == DERIVED:
        means = "lookups may go wrong; the records themselves are whole"
        if place.topic == METADATA_TOPIC:
            repair = "stop the appliance, remove it, start"
        return Finding(name, *at, means, f"{repair}: it is rebuilt from the records")
    if one.kind == TAIL:
        means = (
            "it was being written when the appliance died, and was never acknowledged as durable"
        )
        return Finding(name, *at, means, "the next start cuts it off", True)
    if one.kind == UNREADABLE:
        return Finding(name, *at, "no consumer can read it", "look at the disk and its rights")
    if place.topic == METADATA_TOPIC:
        remedy = f"penstock metadata repair {place.root} --dry-run shows what can be saved"
        return Finding(name, *at, "topics or settings may be lost", remedy)
    if one.kind == HOLE and any(a <= one.first and one.last <= b for a, b in lost):
        means = "consumers continue behind them; a repair has set them aside"
        return Finding(name, *at, means, f"what was damaged is in {place.folder}.*-stray", True)
    means = f"{_offsets(one)} cannot be read"
    if one.first < 0:
        means = "no offset is lost"
    if place.elsewhere:
        remedy = f"{repair}: the log is set aside and fetched from another node"
    elif one.kind == HOLE:
        means += "; consumers continue behind"
        remedy = "restore the segment from a copy, if there is one"
    else:
        remedy = f"{repair}: it is set aside, and consumers continue behind it"
    return Finding(name, *at, means, remedy)


def _offsets(one: Damage) -> str:
    if one.last < one.first:
        return f"offset {one.first} and what follows"
    return f"offset {one.first}" if one.last == one.first else f"offsets {one.first} to {one.last}"


def _of_root(disk: Disk, root: str) -> Iterator[Finding]:
    """Findings about files beside the partitions: identity, checkpoints, the metadata's snapshots
    and quorum.
    """
    try:
        read_identity(disk, root)
    except (ConfigError, StorageFailed) as why:
        yield _beside(
            f"{root}/{META_PROPERTIES}", str(why), "the appliance does not start",
            "restore it from a copy, or write it again as in the other log folders",
        )  # fmt: skip
    for name in _CHECKPOINTS:
        path = f"{root}/{name}"
        if disk.exists(path) and (problem := checkpoints.problem(read_file(disk, path))):
            yield _beside(
                path, problem, "the next start checks every log from its beginning",
                "none is needed: it is written again",
            )  # fmt: skip
    folder = f"{root}/{LOG_FOLDER}"
    if not disk.exists(folder):
        return
    remedy = f"penstock metadata repair {root} --dry-run shows what can be saved"
    for name in disk.listdir(folder):
        if checkpoint.parse_name(name) is None:
            continue
        try:
            checkpoint.read(read_file(disk, f"{folder}/{name}"))
        except (checkpoint.CheckpointBroken, PeerError) as why:
            yield _beside(f"{folder}/{name}", str(why), "this snapshot is of no use", remedy)
    try:
        quorum_state.read(disk, folder)
    except ConfigError as why:
        path = f"{folder}/{quorum_state.NAME}"
        yield _beside(path, str(why), "the appliance does not start", remedy)


def _beside(file: str, problem: str, means: str, remedy: str) -> Finding:
    """A finding that belongs to no partition."""
    return Finding("", file, 0, -1, -1, problem, means, remedy)


class Reading:
    """A Scrub on a thread that gives way to everybody else. steps: as they come; it ends with None
    or with what went wrong."""

    def __init__(self, what: Scrub) -> None:
        self._what = what
        self._goes_on = True
        self._steps: queue.SimpleQueue[Step | Exception | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def next(self, timeout_s: float) -> Step | None:
        """The next one; one without anything when none came in time; None at the end. Raises what
        went wrong."""
        try:
            one = self._steps.get(timeout=timeout_s)
        except queue.Empty:
            return Step()
        if isinstance(one, Exception):
            raise one
        return one

    def stop(self) -> None:
        """Go no further."""
        self._goes_on = False

    def _run(self) -> None:
        give_way()
        count = 0
        try:
            for step in self._what.run(lambda: self._goes_on):
                count += step.bytes
                if step.finding is not None or count >= 1 << 20:
                    self._steps.put(Step(count, step.finding))
                    count = 0
            self._steps.put(Step(count))
            self._steps.put(None)
        except Exception as why:  # whoever waits hears of it
            self._steps.put(why)
