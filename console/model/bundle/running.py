"""Facts of a running appliance, read without a request: the tables in its memory, and how it was
started. Raises NotThere where none runs.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from appliance.base.clock import OsClock
from appliance.base.os_disk import OsDisk
from appliance.config.broker import BrokerConfig
from appliance.config.load import examine
from appliance.config.properties import parse_properties
from appliance.exporter.post import Address, Post
from appliance.exporter.scrape import Exporter
from appliance.metadata.follower import Follower, skip_silently
from appliance.metadata.image import MetadataImage
from appliance.observer.door import Observer
from appliance.ring import partition_table as columns
from appliance.ring.process_table import STATE_NAMES
from appliance.shell.log import Log
from console.model.bundle.secrets import Secrets
from console.model.local.events import Feed

Row = dict[str, Any]
_COLUMNS: Final = {
    "log_start": columns.LOG_START,
    "high_watermark": columns.HIGH_WATERMARK,
    "last_stable": columns.LAST_STABLE,
    "log_end": columns.LOG_END,
    "recovery_point": columns.RECOVERY_POINT,
    "size_bytes": columns.SIZE_BYTES,
    "leader_epoch": columns.LEADER_EPOCH,
    "status": columns.STATUS,
    "directory": columns.DIRECTORY,
    "layout": columns.LAYOUT,
    "batches_in": columns.BATCHES_IN,
    "records_in": columns.RECORDS_IN,
    "bytes_in": columns.BYTES_IN,
}
_STATUS: Final = ("not open", "online", "offline", "following")
_EVENTS: Final = 5000


@dataclass(slots=True, frozen=True)
class Started:
    """How somebody called `penstock up`. text: of the settings file, None: there is none, or it
    cannot be read. overrides: settings of the command line. words: what else was said."""

    text: str | None = None
    overrides: tuple[tuple[str, str], ...] = ()
    words: Row = field(default_factory=dict)

    @property
    def config(self) -> BrokerConfig:
        """As far as it makes sense."""
        return examine(self.text, dict(self.overrides))[0]


def started(pid: int, file: str | None, parse: Callable[[list[str]], Row]) -> Started:
    """How process `pid` (0: none runs) was started. parse: what `penstock up` takes the words
    behind it for. file: settings to be taken in place of those
    that it was started with. Raises OSError for a file that somebody named and that cannot be
    read."""
    words: Row = {}
    settings: list[tuple[str, str]] = []
    if pid:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        arguments = command.rstrip("\0").split("\0")
        if "up" in arguments:
            words = parse(arguments[arguments.index("up") + 1 :])
            for item in words.pop("settings", None) or ():
                key, _, value = item.partition("=")
                settings.append((key.strip(), value))
        if file is None and words.get("config"):
            file = os.path.join(os.readlink(f"/proc/{pid}/cwd"), words["config"])
    text = None if file is None else Path(file).read_text(errors="replace")
    return Started(text, tuple(settings), words)


def settings(how: Started, secrets: Secrets) -> Row:
    """The settings in their order, secrets blanked, with remarks."""
    rows = [
        {"key": key, "value": secrets.setting(key, value), "line": line}
        for key, value, line in parse_properties(how.text or "")
    ]
    rows += [
        {"key": key, "value": secrets.setting(key, value), "line": "command line"}
        for key, value in how.overrides
    ]
    remarks = examine(how.text, dict(how.overrides))[1]
    return {
        "called_with": how.words,
        "settings": rows,
        "remarks": [secrets.text(one.text) for one in remarks],
    }


def image_of(observer: Observer, data_dir: str) -> MetadataImage:
    """The metadata as it is committed. Raises MetadataUnreadable, StorageFailed."""
    follower = Follower(OsDisk(), data_dir, observer.tables.partitions, skip_silently)
    follower.catch_up(observer.tables.processes.metadata_offset)
    return follower.image


def metrics(observer: Observer, folders: list[str], config: BrokerConfig) -> str:
    """The page that Prometheus would get. Rates and what must stand still for a while are not on
    it, for it is the first look."""
    clock = OsClock()
    post = Post(
        config=config,
        folders=folders,
        tables=observer.tables,
        listener=None,
        target=None,
        addresses=[Address("", 0)],
        supervisor=observer.head.pid,
        started_ms=observer.head.started_ms,
    )
    exporter = Exporter(post, OsDisk(), Log("bundle"))
    exporter.sample_all(clock.monotonic_ns())
    return exporter.page(clock.monotonic_ns())


def partitions(observer: Observer, image: MetadataImage | None) -> Iterator[Row]:
    """A row of the partition table for each; the topic's name where the metadata is known."""
    table = observer.tables.partitions
    named = {} if image is None else image.topics_by_id
    for row in table.live_rows():
        state = table.read_row(row.handle)
        known = named.get(row.topic_id)
        told: Row = {
            "topic": known.name if known is not None else row.topic_id.hex(),
            "partition": row.partition,
        }
        told |= {name: state[column] for name, column in _COLUMNS.items()}
        told["status"] = _STATUS[told["status"]] if told["status"] < len(_STATUS) else None
        if known is not None and row.partition < len(known.partitions):
            part = known.partitions[row.partition]
            told |= {"leader": part.leader, "replicas": part.replicas, "isr": part.isr}
        yield told


def processes(observer: Observer) -> Row:
    """Every process with its state and how often another one took its place."""
    table, seen = observer.tables.processes, observer.snapshot()
    of = {one.name: one for one in seen.processes}
    leader, epoch = table.leader
    return {
        "started_ms": observer.head.started_ms,
        "supervisor": observer.head.pid,
        "alive": observer.alive,
        "cluster_ready": table.cluster_ready,
        "draining": table.drain,
        "was_clean": table.was_clean,
        "metadata_offset": table.metadata_offset,
        "metadata_leader": leader,
        "metadata_epoch": epoch,
        "processes": [
            {
                "process": str(peer),
                "pid": table.pid(peer),
                "state": STATE_NAMES[table.state(peer)],
                "restarts": max(table.generation(peer) - 1, 0),
                "turns": table.heartbeat(peer),
                "longest_turn_ms": table.longest_turn(peer) / 1e6,
                "applied": table.applied(peer),
                "cpu_s": of[str(peer)].cpu_s,
                "memory": _status(table.pid(peer)),
            }
            for peer in table.peers
        ],
    }


def _status(pid: int) -> Row:
    """The kernel's figures of its memory and threads."""
    told = {}
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("VmRSS", "VmSwap", "Threads", "voluntary_ctxt_switches"):
                told[name] = value.strip()
    return told


def events(data_dir: str) -> list[Row]:
    """The last that its processes said of themselves. Raises Failure."""
    return [
        {
            "at_ms": one.at_ms,
            "level": one.level,
            "process": one.process,
            "event": one.event,
            "fields": dict(one.fields),
        }
        for one in Feed(data_dir, _EVENTS).read_new()
    ]
