"""The appliance behind an address, when it is one of this host: what it counts, looked at again and
again, with the last minutes remembered.

Its data folder is found by asking it for its log folders; the folder must belong to the same
cluster, so that another host's folder of the same name is not taken for it.
"""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.base.errors import ConfigError
from console.model import cluster
from console.model.disk import log_folders
from console.model.failure import Failure
from console.model.link import Link
from console.model.stats import ApiRate, Meter, ProcessRate, TopicRate

REMEMBERED: Final = 600
"""How many looks of the whole appliance are remembered."""
TOPIC_REMEMBERED: Final = 120
"""And of each topic that somebody writes or reads."""
_API_WINDOW_S: Final = 10.0


@dataclass(slots=True, frozen=True)
class Sample:
    """One look: what all topics took in and gave out in MB/s, and requests that were answered."""

    in_mb_s: float
    out_mb_s: float
    requests_s: float


@dataclass(slots=True, frozen=True)
class Facts:
    """What an appliance counts. since_start: `apis` are about all the time since its start, because
    this was the first look; else about the last ten seconds. topics: in the order of their names.
    history: the oldest look first; of_topics: the same of each topic with traffic, as (in, out) in
    MB/s. replaced_s: process → seconds since another one took its place, of those that were
    seen."""

    data_dir: str
    started_ms: int
    since_start: bool
    apis: list[ApiRate]
    processes: list[ProcessRate]
    topics: dict[str, TopicRate]
    history: tuple[Sample, ...]
    of_topics: Mapping[str, tuple[tuple[float, float], ...]]
    replaced_s: dict[str, float]


class Local:
    """Looks at the appliance of a Link. One thread at a time."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._meter: Meter | None = None
        self._data_dir = ""
        self._looked = False
        self._history: deque[Sample] = deque(maxlen=REMEMBERED)
        self._of_topics: dict[str, deque[tuple[float, float]]] = {}
        self._pids: dict[str, int] = {}
        self._replaced: dict[str, float] = {}

    def look(self) -> Facts:
        """Raises Failure: it has ended, or the broker is not of this host."""
        if self._meter is None:
            self._find()
        meter = self._meter
        assert meter is not None
        again = self._looked
        if again:
            try:
                meter.look()
            except Failure:
                self._meter = None
                raise
        topics = {one.topic: one for one in sorted(meter.topics(), key=lambda one: one.topic)}
        if again:
            self._remember(topics, sum(one.requests_s for one in meter.apis()))
        self._looked = True
        processes = meter.processes()
        return Facts(
            data_dir=self._data_dir,
            started_ms=meter.started_ms,
            since_start=not again,
            apis=meter.apis(_API_WINDOW_S),
            processes=processes,
            topics=topics,
            history=tuple(self._history),
            of_topics={name: tuple(past) for name, past in self._of_topics.items()},
            replaced_s=self._watch(processes),
        )

    def _find(self) -> None:
        self._data_dir = folder = _folder(self._link, cluster.look(self._link).id)
        self._meter = Meter(folder)
        self._looked = False
        self._pids = {}
        self._replaced = {}

    def _remember(self, topics: dict[str, TopicRate], requests_s: float) -> None:
        read = sum(one.out_mb_s for one in topics.values())
        written = sum(one.in_mb_s for one in topics.values())
        self._history.append(Sample(written, read, requests_s))
        for name in self._of_topics.keys() - topics.keys():
            del self._of_topics[name]
        for name, one in topics.items():
            past = self._of_topics.get(name)
            if past is None and (one.in_mb_s or one.out_mb_s):
                past = self._of_topics[name] = deque(maxlen=TOPIC_REMEMBERED)
            if past is not None:
                past.append((one.in_mb_s, one.out_mb_s))

    def _watch(self, processes: list[ProcessRate]) -> dict[str, float]:
        now = time.monotonic()
        for one in processes:
            if self._pids.setdefault(one.process, one.pid) != one.pid:
                self._replaced[one.process] = now
                self._pids[one.process] = one.pid
        return {name: now - at for name, at in self._replaced.items()}


def _is_ours(folder: str) -> bool:
    """Apache Kafka locks its folders with a file of the same name, and says nothing in it."""
    try:
        return (Path(folder) / ".lock").read_text().strip().isdecimal()
    except (OSError, UnicodeDecodeError):
        return False


def _folder(link: Link, cluster_id: str) -> str:
    """The data folder of the appliance behind the link. Raises Failure with the reason when it
    cannot be looked into."""
    from appliance.base.os_disk import OsDisk
    from appliance.metadata.identity import read_identity

    why = "no appliance of this host answers there"
    disk = OsDisk()
    for one in log_folders(link, used=False):
        try:
            if read_identity(disk, one.path).cluster_id != cluster_id or not _is_ours(one.path):
                continue
            Meter(one.path)
        except (ConfigError, OSError):
            continue
        except Failure as no:
            why = no.message
        else:
            return one.path
    raise Failure(
        f"rates, latencies and processes are not known: {why}",
        "they are read from an appliance's memory, on its host and as the user that runs it",
        name="NOT_LOCAL",
    )
