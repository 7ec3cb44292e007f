"""How an appliance of this host is doing: rates and latencies, read from its shared memory without
asking it (`appliance/observer`).

A Meter remembers its last looks. The first picture is about all the time since the appliance
started, each later one about the time since the one before.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from appliance.base import proc
from appliance.base.ids import TopicId
from appliance.base.os_disk import OsDisk
from appliance.config.listeners import in_url
from appliance.metadata.changes import PartitionChanged
from appliance.metadata.follower import Follower, skip_silently
from appliance.metadata.parts import Endpoint
from appliance.observer.door import Observer
from appliance.observer.names import api_name, error_name
from appliance.observer.snapshot import ApiCounters, Snapshot
from appliance.observer.traffic import NOTHING, Sums
from appliance.ring.client_table import ClientTable
from appliance.ring.push_table import PushTable
from console.model.asking.failure import UNREACHABLE, Failure
from console.model.local.observed import observed

_MB: Final = 1_000_000
_BREATH: Final = 50
"""Topics: 0.5 ms."""
_NS: Final = 1e9
_MEMORY_NS: Final = 10 * 10**9
_LONGEST_NS: Final = 10 * 10**9  # how far back requests are remembered


@dataclass(slots=True, frozen=True)
class ApiRate:
    """One API: requests that were answered and how fast, in MB (10^6 bytes) per second and ms.
    errors: how many answers, or parts of answers, told of which error."""

    api: str
    requests: int
    requests_s: float
    in_mb_s: float
    out_mb_s: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    errors: dict[str, int]


@dataclass(slots=True, frozen=True)
class ProcessRate:
    """One process. cpu_percent: of one core. longest_turn_ms: since the process began. memory_mb:
    its own and its part of what it shares (PSS), 0 when it is gone. restarts: since the appliance
    started."""

    process: str
    pid: int
    state: str
    turns_s: float
    longest_turn_ms: float
    cpu_percent: float
    memory_mb: float
    restarts: int = 0


@dataclass(slots=True, frozen=True)
class TopicRate:
    """One topic: batches and records that were written, fetches that were answered with records.
    records: those that a consumer can read. offline: how many partitions cannot be used. held:
    records that wait for an open transaction, so that read_committed does not get them. replicas:
    of its first partition."""

    topic: str
    partitions: int
    batches_in_s: float
    records_in_s: float
    in_mb_s: float
    fetches_s: float
    out_mb_s: float
    size_mb: float
    records: int
    offline: int
    held: int = 0
    replicas: int = 1


class Meter:
    """Rates of the appliance in a data folder, since its start or since the last look."""

    def __init__(self, data_dir: str, breathe: Callable[[], None] = lambda: None) -> None:
        """breathe: called now and then while much is read. Raises Failure."""
        self._breathe = breathe
        self._observer, self._follower = self._open(data_dir)
        self._now: Snapshot = self._observer.snapshot()
        self._before: Snapshot | None = None
        self._seconds = max(time.time() - self.started_ms / 1000, 1e-3)
        self._asked: deque[tuple[int, dict[int, ApiCounters]]] = deque(
            [(self._now.at_ns, self._now.apis)]
        )
        self._topics: dict[TopicId, TopicRate] = {}
        self._by_name: dict[str, TopicRate] = {}
        self._past: dict[TopicId, Sums] = {}  # at the look before
        self._moved = self._observer.traffic.find_changed(breathe)
        self._stale = set(self._moved)  # to be worked out anew
        self._memory: dict[int, tuple[int, float]] = {}

    def _open(self, data_dir: str) -> tuple[Observer, Follower]:
        """Its tables and its metadata. Raises Failure."""
        observer = observed(data_dir)
        return observer, Follower(OsDisk(), data_dir, observer.tables.partitions, skip_silently)

    @property
    def clients(self) -> ClientTable:
        """The table of connections."""
        return self._observer.tables.clients

    @property
    def pushes(self) -> PushTable:
        """The metrics that clients pushed."""
        return self._observer.tables.pushes

    def lags(self) -> dict[tuple[str, str], int]:
        """(group, topic) → records behind, as the coordinators counted some seconds ago."""
        return self._observer.tables.lags.read()[0]

    @property
    def unvoted(self) -> bool:
        """True if it waits for voters of the metadata quorum."""
        return self._observer.tables.processes.unvoted

    @property
    def listeners(self) -> tuple[str, ...]:
        """Where clients are sent, NAME://HOST:PORT, as far as `topics_by_name` has read."""
        return tuple(f"{one.name}://{in_url(one.host)}:{one.port}" for one in self.endpoints)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The same with their protocols, as this node has registered them."""
        me = self._follower.image.brokers.get(self._follower.identity.node_id)
        return me.endpoints if me else ()

    @property
    def started_ms(self) -> int:
        """When the appliance started, by the wall clock."""
        return self._observer.head.started_ms

    def read_counters(self) -> None:
        """From now on it is about the time since the last look. Raises Failure: it has ended."""
        if not self._observer.alive:
            raise Failure("the appliance has ended", code=UNREACHABLE, name="NOT_RUNNING")
        self._before, self._now = self._now, self._observer.snapshot()
        self._seconds = max((self._now.at_ns - self._before.at_ns) / _NS, 1e-3)
        traffic = self._observer.traffic
        self._past = dict(traffic.topics)
        before, self._moved = self._moved, traffic.find_changed(self._breathe)
        self._stale |= before | self._moved  # also what rests since
        self._asked.append((self._now.at_ns, self._now.apis))
        while len(self._asked) > 2 and self._now.at_ns - self._asked[1][0] >= _LONGEST_NS:
            self._asked.popleft()

    def apis(self, over_s: float = 0.0) -> list[ApiRate]:
        """Those that were asked, the busiest first. over_s: of so many seconds, 10 at most, when as
        much was looked at; else since the look before."""
        found, seconds = self._now.apis, self._seconds
        if self._before is not None:
            at_ns, apis = self._before.at_ns, self._before.apis
            if over_s:
                oldest = self._now.at_ns - over_s * _NS
                at_ns, apis = next(
                    one for one in self._asked if one[0] >= oldest or one[0] == at_ns
                )
            nothing = ApiCounters()
            found = {key: api.since(apis.get(key, nothing)) for key, api in found.items()}
            seconds = max((self._now.at_ns - at_ns) / _NS, 1e-3)
        asked = [(key, api) for key, api in found.items() if api.requests or api.errors]
        asked.sort(key=lambda one: -one[1].requests)
        return [_api(key, api, seconds) for key, api in asked]

    def processes(self) -> list[ProcessRate]:
        """Every process, the dead ones too."""
        before = {} if self._before is None else {one.name: one for one in self._before.processes}
        told = []
        for one in self._now.processes:
            past = before.get(one.name)
            same = past is not None and past.pid == one.pid
            cpu_s = one.cpu_s - past.cpu_s if past is not None and same else one.cpu_s
            turns = one.turns - past.turns if past is not None else one.turns
            told.append(
                ProcessRate(
                    one.name,
                    one.pid,
                    one.state,
                    _short(turns / self._seconds),
                    round(one.longest_turn_ns / 1e6, 3),
                    _short(cpu_s / self._seconds * 100),
                    self._memory_of(one.pid),
                    one.restarts,
                )
            )
        return told

    def _memory_of(self, pid: int) -> float:
        """MB of a process, ten seconds old at most: the kernel walks through its pages for it."""
        at_ns, memory_mb = self._memory.get(pid, (0, 0.0))
        if not at_ns or self._now.at_ns - at_ns >= _MEMORY_NS:
            memory_mb = _memory_mb(pid)
            self._memory[pid] = self._now.at_ns, memory_mb
        return memory_mb

    def topics(self) -> list[TopicRate]:
        """Every topic, the one with most traffic first."""
        found = self.topics_by_name().values()
        return sorted(found, key=lambda one: (-one.in_mb_s - one.out_mb_s, one.topic))

    def topics_by_name(self) -> dict[str, TopicRate]:
        """Every topic, in the order of their names. What rests costs nothing: of 10,000 topics only
        those are worked out anew that have changed since the look before."""
        committed = self._observer.tables.processes.metadata_offset
        for change in self._follower.catch_up(committed, self._breathe):
            if isinstance(change, PartitionChanged):
                self._stale.add(TopicId(change.topic_id))
        named, traffic = self._follower.image.topics_by_id, self._observer.traffic
        grew = False
        stale, self._stale = self._stale, set()
        for number, topic_id in enumerate(stale):
            if not number % _BREATH:
                self._breathe()
            sums = traffic.topics.get(topic_id)
            before = self._topics.pop(topic_id, None)
            is_gone = sums is None or topic_id not in named
            if before is not None and is_gone and self._by_name.get(before.topic) is before:
                del self._by_name[before.topic]
            if sums is not None and topic_id not in named:
                self._stale.add(topic_id)  # it is just being made, or deleted
            elif sums is not None:
                name = named[topic_id].name
                one = _topic(name, sums, self._past.get(topic_id, NOTHING), self._seconds)
                if (kept := len(named[topic_id].partitions[0].replicas)) != one.replicas:
                    one = replace(one, replicas=kept)
                grew |= name not in self._by_name
                self._topics[topic_id] = self._by_name[name] = one
        if grew:
            self._by_name = dict(sorted(self._by_name.items()))
        return dict(self._by_name)


def _api(key: int, api: ApiCounters, seconds: float) -> ApiRate:
    return ApiRate(
        api_name(key),
        api.requests,
        _short(api.requests / seconds),
        _short(api.bytes_in / seconds / _MB),
        _short(api.bytes_out / seconds / _MB),
        round(api.percentile_us(0.5) / 1000, 3),
        round(api.percentile_us(0.99) / 1000, 3),
        round(api.percentile_us(1) / 1000, 3),
        {error_name(code): count for code, count in sorted(api.errors.items())},
    )


def _short(rate: float) -> float:
    """Three digits at least: over days, what came now and then is not nothing."""
    return float(f"{rate:.3g}") if rate < 100 else round(rate, 1)


def _memory_mb(pid: int) -> float:
    return round(proc.pss_kib(pid) * 1024 / _MB, 1)


def _topic(name: str, now: Sums, before: Sums, seconds: float) -> TopicRate:
    """before: what was counted when those seconds began."""

    def rate(is_: int, was: int, unit: int = 1) -> float:
        return _short((is_ - was) / seconds / unit)

    return TopicRate(
        name,
        now.partitions,
        rate(now.batches_in, before.batches_in),
        rate(now.records_in, before.records_in),
        rate(now.bytes_in, before.bytes_in, _MB),
        rate(now.fetches, before.fetches),
        rate(now.bytes_out, before.bytes_out, _MB),
        round(now.size_bytes / _MB, 6),  # every byte: a topic with one record is not empty
        now.records,
        now.offline,
        now.held,
    )
