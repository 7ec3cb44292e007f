"""How an appliance stands, all of it in one value: whether it serves, what is wrong, who works, how
much goes through, who is behind, what is held back and how much room there is.

Most of it is read from the memory of an appliance of this host; what only a request can tell is
asked of a broker, a few requests whatever there is. What cannot be told is missing and named in
`unknown`: one part that fails hides no other.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from appliance.base.errors import ConfigError, StorageFailed
from appliance.config.listeners import in_url
from appliance.metadata.follower import MetadataUnreadable
from appliance.observer.health import NOBODY_VOTES
from console.model.access.certificates import Secured
from console.model.access.certificates import Watch as Certificates
from console.model.asking.failure import UNREACHABLE, USAGE, Failure
from console.model.asking.link import DEFAULT_BOOTSTRAP, Link, asking
from console.model.cluster import cluster
from console.model.cluster.cluster import Seen
from console.model.cluster.cluster_watch import ClusterSeen
from console.model.cluster.cluster_watch import Watch as ClusterWatch
from console.model.local.attention import NOTE, Notice, attention
from console.model.local.events import Event, EventsSeen, Feeds, Wanted
from console.model.local.history import MINUTES, read
from console.model.local.local import Facts, Local
from console.model.local.stats import Meter
from console.model.local.waiting import Waiting
from console.model.storage.disk import LogFolder, log_folders
from console.model.storage.forecast import Forecast, forecast
from console.model.transactions.open_transactions import Open
from console.model.transactions.open_transactions import Watch as TransactionWatch
from penstock.reach import address_of

WELL: Final = 0
DEGRADED: Final = 1
NOT_SERVING: Final = 2
STATES: Final = ("well", "degraded", "not serving")
_PATIENCE_S: Final = 5.0
"""Who serves says who it is within that: nobody waits half a minute, again and again, for the
answer of one that stands still."""
_LARGEST: Final = 50
"""Topics of which the room in each folder is asked: the largest ones of all folders together."""
_UNREADABLE: Final = (FileNotFoundError, ConfigError, StorageFailed, MetadataUnreadable)
"""What comes of a folder without its files, or with damaged ones."""
T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Standing:
    """asked: whom, HOST:PORT. at_s: wall clock. lost: why no broker answers. missing: why it is not
    ready, by its own memory. notices: what is wrong, worst first. facts, forecasts and warnings (of
    its events, the oldest first): of an appliance of this host. transactions: those that hold
    records back. unknown: what could not be told, and why."""

    asked: str
    at_s: float
    lost: Failure | None = None
    missing: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    facts: Facts | None = None
    cluster: ClusterSeen | None = None
    folders: tuple[LogFolder, ...] = ()
    forecasts: Mapping[int, Forecast] = field(default_factory=dict)
    transactions: tuple[Open, ...] = ()
    warnings: tuple[Event, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """WELL, DEGRADED: it serves, and something is wrong or soon will be; or NOT_SERVING."""
        if self.lost is not None or self.missing:
            return NOT_SERVING
        return DEGRADED if any(one.level != NOTE for one in self.notices) else WELL

    @property
    def lags(self) -> dict[str, int]:
        """Group → records behind in all its topics, the furthest behind first."""
        found: Counter[str] = Counter()
        for (group, _), behind in (self.facts.lags if self.facts else {}).items():
            found[group] += behind
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def at_folder(data_dir: str, link: Link) -> Link:
    """To the appliance in a folder, with another Link's properties: by its first listener that is
    spoken to so, else by its first one. Raises Failure: it does not run, or serves no clients."""
    try:
        meter = Meter(data_dir)
        meter.topics_by_name()
    except _UNREADABLE as why:
        raise Failure(str(why), where=data_dir, code=UNREACHABLE, name="NOT_RUNNING") from None
    if meter.unvoted:
        raise Failure(NOBODY_VOTES, where=data_dir, code=UNREACHABLE, name="NOT_RUNNING")
    if not meter.endpoints:
        raise Failure(
            f"the appliance in {data_dir} has no listener for clients",
            "-b names a broker of its cluster", where=data_dir, code=UNREACHABLE,
            name="UNREACHABLE",
        )  # fmt: skip
    rest = {key: value for key, value in link.properties.items() if key != "bootstrap.servers"}
    tls = link.door.uses_tls
    first = min(meter.endpoints, key=lambda one: bool(one.security_protocol) is not tls)
    return Link(f"{in_url(first.host)}:{first.port}", rest, link.timeout_s)


class Watch:
    """Looks again and again. data_dir: of the appliance, "" where its broker shall tell. usual: its
    folder when nobody answers at the usual address."""

    def __init__(self, link: Link, data_dir: str = "", usual: str = "") -> None:
        self._link = link
        self._data_dir = data_dir
        self._usual = usual
        self._local: Local | None = None
        self._waiting: Waiting | None = None
        self._cluster = ClusterWatch(link)
        self._opened = TransactionWatch(link)
        self._feeds = Feeds()
        self._certificates = Certificates()
        self._lost: Failure | None = None
        self._began = False  # just now: what was lost then is lost
        self._unknown: list[str] = []

    def read_counters(self) -> bool:
        """Look at the counters alone, so that the next look tells rates since then. Whether there
        are any."""
        self._lost = self._reached()
        self._began = True
        return self._facts() is not None

    def read_standing(self) -> Standing:
        """Everything, as it is now. Raises nothing but usage."""
        self._unknown = []
        if self._lost is None or not self._began:
            self._lost = self._reached()
        self._began = False
        facts = self._facts()
        seen = self._ask(None, lambda: self._cluster.read_cluster(time.monotonic()))
        largest = self._largest(facts)
        none: list[LogFolder] = []
        folders = self._ask(none, lambda: log_folders(self._link, topics=largest))
        nothing: dict[str, Seen] = {}
        topics = (
            self._ask(nothing, cluster.Topics(self._link).read_topics) if facts is None else nothing
        )
        opened = self._transactions(facts)
        forecasts = self._forecasts(facts)
        shown = self._certificates.read_certificates(self._secured(facts))
        notices = attention(
            None, facts, folders, topics, forecasts=forecasts, transactions=opened, nodes=seen,
            certificates=shown, now_s=time.time(),
        )  # fmt: skip
        return Standing(
            self._link.bootstrap, time.time(), self._lost, self._missing(facts), tuple(notices),
            facts, seen, tuple(folders), forecasts,
            tuple(one for one in opened if one.records), self._warnings(facts),
            tuple(self._unknown),
        )  # fmt: skip

    def _reached(self) -> Failure | None:
        link = self._link
        given, link.timeout_s = link.timeout_s, min(link.timeout_s, _PATIENCE_S)
        try:
            with asking(link):
                cluster.read_cluster(link)
        except Failure as why:
            if why.code == USAGE:
                raise
            return why
        finally:
            link.timeout_s = given
        return None

    def _ask(self, nothing: T, ask: Callable[[], T]) -> T:
        """The broker's answer; `nothing` when it cannot be reached or cannot answer."""
        if self._lost is not None:
            return nothing
        try:
            with asking(self._link):
                return ask()
        except Failure as why:
            self._unknown.append(why.message)
            return nothing

    def _facts(self) -> Facts | None:
        """The facts of an appliance of this host, also of one that does not answer."""
        folder = self._data_dir
        if not folder and self._lost is not None:
            if self._link.bootstrap != DEFAULT_BOOTSTRAP or not self._usual:
                return None
            folder = self._usual
        if self._local is None:
            self._local = Local(self._link, data_dir=folder)
        try:
            return self._local.read_facts()
        except (Failure, *_UNREADABLE) as why:
            self._local = None
            if self._lost is None:
                self._unknown.append(str(why))
            return None

    def _missing(self, facts: Facts | None) -> tuple[str, ...]:
        if facts is None:
            return ()
        if self._waiting is None:
            self._waiting = Waiting(facts.data_dir)
        return self._waiting.read_verdict().missing

    def _secured(self, facts: Facts | None) -> tuple[Secured, ...]:
        """Listeners with TLS: of an appliance of this host all, of any other the one that is
        asked."""
        if facts is not None:
            return facts.secured
        if self._lost is not None or not self._link.door.uses_tls:
            return ()
        return tuple(Secured("", *address_of(one)) for one in self._link.bootstrap.split(","))

    @staticmethod
    def _largest(facts: Facts | None) -> dict[str, int] | None:
        """Topic → its number of partitions; None: nobody knows which are large."""
        if facts is None:
            return None
        first = sorted(facts.topics.values(), key=lambda one: -one.size_mb)[:_LARGEST]
        return {one.topic: one.partitions for one in first}

    def _transactions(self, facts: Facts | None) -> tuple[Open, ...]:
        """An appliance of this host tells without being asked whether anything is held back."""
        if not (facts.held if facts is not None else self._link.is_asked):
            return ()
        held = facts.held if facts is not None else ()
        return self._ask((), lambda: self._opened.read_transactions(time.time(), held))

    def _forecasts(self, facts: Facts | None) -> dict[int, Forecast]:
        if facts is None:
            return {}
        try:
            past = read(facts.data_dir)
        except Failure as why:
            self._unknown.append(why.message)
            return {}
        try:
            return {number: forecast(one) for number, one in past.disks(MINUTES).items()}
        finally:
            past.close()

    def _warnings(self, facts: Facts | None) -> tuple[Event, ...]:
        if facts is None:
            return ()
        keeps = Wanted("warning").keeps
        seen = EventsSeen()
        try:
            seen = self._feeds.read_events(facts.data_dir)
        except Failure as why:
            self._unknown.append(why.message)
        return tuple(one for one in seen.events if keeps(one))
