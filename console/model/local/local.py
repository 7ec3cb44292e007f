"""The appliance behind an address, when it is one of this host: what it counts, looked at again and
again, with the last minutes as it wrote them down itself.

Its data folder is found by asking it for its log folders; the folder must belong to the same
cluster, so that another host's folder of the same name is not taken for it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from appliance.base.errors import ConfigError
from console.model.access.certificates import Secured
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.cluster import cluster
from console.model.local.client_metrics import Pushes, Pushing
from console.model.local.clients import Connection, Connections
from console.model.local.history import Recent
from console.model.local.stats import ApiRate, Meter, ProcessRate, TopicRate
from console.model.storage.disk import log_folders

_SSL: Final = (1, 3)  # SSL and SASL_SSL, as BrokerRegistration has them
_API_WINDOW_S: Final = 10.0
NOT_LOCAL: Final = "NOT_LOCAL"


@dataclass(slots=True, frozen=True)
class Sample:
    """One second: what all topics took in and gave out in MB/s, and requests that were answered."""

    in_mb_s: float
    out_mb_s: float
    requests_s: float


@dataclass(slots=True, frozen=True)
class Facts:
    """Figures of an appliance. since_start: `apis` cover all the time since its start, because this
    was the first read; else the last ten seconds. topics: in the order of their names. history: the
    last ten minutes by the second, the oldest first; of_topics: the last two minutes of each topic
    with traffic, as (in, out) in MB/s, second by second up to past_s. replaced_s: process →
    seconds since its last replacement, of those seen. clients: the connections, the fastest first;
    clients_left_out: the number not shown because they are too many. readers: topic → (groups that
    committed there, records that the last of them is behind), where known. held: topics with
    records that wait for an open transaction. lags: (group, topic) → records behind. listeners:
    advertised addresses, NAME://HOST:PORT; secured: those of them with TLS. pushing: the clients
    that push metrics of their own (KIP-714).
    """

    data_dir: str
    started_ms: int
    since_start: bool
    apis: list[ApiRate]
    processes: list[ProcessRate]
    topics: dict[str, TopicRate]
    history: tuple[Sample, ...]
    of_topics: Mapping[str, tuple[tuple[float, float], ...]]
    replaced_s: dict[str, float]
    clients: tuple[Connection, ...] = ()
    clients_left_out: int = 0
    readers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    lags: Mapping[tuple[str, str], int] = field(default_factory=dict)
    listeners: tuple[str, ...] = ()
    pushing: tuple[Pushing, ...] = ()
    secured: tuple[Secured, ...] = ()
    past_s: int = 0


class Local:
    """Looks at the appliance of a Link. One thread at a time."""

    def __init__(
        self, link: Link, breathe: Callable[[], None] = lambda: None, data_dir: str = ""
    ) -> None:
        """breathe: called now and then while much is read. data_dir: of the appliance, where that
        is known."""
        self._link = link
        self._named = data_dir
        self._breathe = breathe
        self._meter: Meter | None = None
        self._data_dir = ""
        self._looked = False
        self._recent: Recent | None = None
        self._clients: Connections | None = None
        self._pushes: Pushes | None = None
        self._pids: dict[str, int] = {}
        self._replaced: dict[str, float] = {}

    def read_facts(self) -> Facts:
        """Raises Failure: it has ended, or the broker is not of this host."""
        if self._meter is None:
            self._find()
        meter, recent, clients = self._meter, self._recent, self._clients
        pushes = self._pushes
        assert meter is not None and recent is not None
        assert clients is not None and pushes is not None
        again = self._looked
        if again:
            try:
                meter.read_counters()
            except Failure:
                self._meter = None
                raise
        topics = meter.topics_by_name()
        recent.read_samples()
        self._looked = True
        processes, lags = meter.processes(), meter.lags()
        return Facts(
            data_dir=self._data_dir,
            started_ms=meter.started_ms,
            since_start=not again,
            apis=meter.apis(_API_WINDOW_S),
            processes=processes,
            topics=topics,
            history=tuple(Sample(*one) for one in recent.whole),
            of_topics={
                name: tuple(past) for name, past in recent.of_topics.items() if name in topics
            },
            replaced_s=self._watch(processes),
            clients=clients.read_connections(),
            clients_left_out=clients.left_out,
            readers=_readers(lags),
            held=tuple(name for name, one in topics.items() if one.held),
            lags=lags,
            listeners=meter.listeners,
            secured=tuple(
                Secured(one.name, one.host, one.port)
                for one in meter.endpoints
                if one.security_protocol in _SSL
            ),
            pushing=pushes.read_pushes(),
            past_s=recent.seen_s,
        )

    def _find(self) -> None:
        self._data_dir = folder = self._folder()
        self._meter = meter = Meter(folder, self._breathe)
        self._recent = Recent(folder)
        self._clients = Connections(meter.clients)
        self._pushes = Pushes(meter.pushes)
        self._looked = False
        self._pids = {}
        self._replaced = {}

    def _folder(self) -> str:
        if self._named:
            return self._named
        try:
            return data_folder(self._link)
        except Failure as why:
            if why.name == NOT_LOCAL:
                why.message = f"rates, latencies and processes are unavailable: {why.message}"
            raise

    def _watch(self, processes: list[ProcessRate]) -> dict[str, float]:
        now = time.monotonic()
        for one in processes:
            if self._pids.setdefault(one.process, one.pid) != one.pid:
                self._replaced[one.process] = now
                self._pids[one.process] = one.pid
        return {name: now - at for name, at in self._replaced.items()}


def _readers(lags: Mapping[tuple[str, str], int]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for (_, topic), behind in lags.items():
        groups, most = found.get(topic, (0, 0))
        found[topic] = groups + 1, max(most, behind)
    return found


def _is_ours(folder: str) -> bool:
    """Apache Kafka locks its folders with a file of the same name, and says nothing in it."""
    try:
        return (Path(folder) / ".lock").read_text().strip().isdecimal()
    except (OSError, UnicodeDecodeError):
        return False


def data_folder(link: Link) -> str:
    """The data folder of the appliance behind the link. Raises Failure, NOT_LOCAL with the reason
    when it cannot be looked into."""
    from appliance.base.os_disk import OsDisk
    from appliance.metadata.identity import read_identity

    why = "no appliance of this host answers there"
    cluster_id = cluster.read_cluster(link).id
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
        why, "they are read from the appliance's shared memory, on its host and by its user",
        name=NOT_LOCAL,
    )  # fmt: skip
