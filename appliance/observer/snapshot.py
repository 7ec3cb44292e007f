"""Counters of an appliance as values: a snapshot of its tables, and the difference of two
snapshots.

Nobody is asked and nothing is locked. All counts begin at the start of the appliance and never go
back, so what happened between two snapshots is their difference.
"""

from collections.abc import Callable
from dataclasses import field
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.ring import histogram
from appliance.ring.counters import API_KEYS, FOLLOWER_FETCH
from appliance.ring.process_table import STATE_NAMES, Peer
from appliance.ring.tables import Tables

_NONE: Final = (0,) * histogram.BUCKETS
FETCH: Final = 1
Stages = tuple[tuple[int, ...], ...]


@dataclass(slots=True, frozen=True)
class ApiCounters:
    """Counters of one API key. bytes: whole frames. latencies: a histogram (`ring/histogram`) of
    the time from the moment the loop saw the request's bytes to the turn that sends its answer, of
    those that were answered."""

    bytes_in: int = 0
    bytes_out: int = 0
    latencies: tuple[int, ...] = _NONE
    errors: dict[int, int] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """Those that were answered."""
        return sum(self.latencies)

    def percentile_us(self, share: float) -> float:
        """The latency that `share` (0 to 1) of the requests did not exceed, in µs."""
        return histogram.percentile_us(self.latencies, share)

    def since(self, before: "ApiCounters") -> "ApiCounters":
        """Returns the difference to an earlier snapshot."""
        pairs = zip(self.latencies, before.latencies, strict=True)
        errors = {code: n - before.errors.get(code, 0) for code, n in self.errors.items()}
        return ApiCounters(
            self.bytes_in - before.bytes_in,
            self.bytes_out - before.bytes_out,
            tuple(now - then for now, then in pairs),
            {code: count for code, count in errors.items() if count},
        )


@dataclass(slots=True, frozen=True)
class ProcessCounters:
    """One place for a process. turns: of its loop, and of its predecessors'. longest_turn_ns: of
    its own, waiting left out. cpu_s: since the process began. restarts: how often another one took
    the place."""

    name: str
    pid: int
    state: str
    turns: int
    longest_turn_ns: int
    cpu_s: float
    restarts: int


@dataclass(slots=True, frozen=True)
class Snapshot:
    """at_ns: monotonic. apis: by API key, those that were ever asked. stages: a coarse histogram
    for each of `counters.STAGES` by API key or FOLLOWER_FETCH, of those that were answered."""

    at_ns: int
    apis: dict[int, ApiCounters]
    processes: tuple[ProcessCounters, ...]
    stages: dict[int, Stages] = field(default_factory=dict)

    def since(self, before: "Snapshot") -> dict[int, ApiCounters]:
        """Returns the requests since an earlier snapshot, by API key."""
        nothing = ApiCounters()
        return {key: api.since(before.apis.get(key, nothing)) for key, api in self.apis.items()}


def take_snapshot(tables: Tables, at_ns: int, cpu_s: Callable[[Peer], float]) -> Snapshot:
    """Everything there is at this moment. cpu_s: of the process in a place."""
    apis = {key: api for key in range(API_KEYS) if (api := _api(tables, key)) is not None}
    table = tables.processes
    processes = tuple(
        ProcessCounters(
            str(peer),
            table.pid(peer),
            STATE_NAMES[table.state(peer)],
            table.heartbeat(peer),
            table.longest_turn(peer),
            cpu_s(peer),
            max(table.generation(peer) - 1, 0),
        )
        for peer in table.peers
    )
    rows = [*apis, FOLLOWER_FETCH] if FETCH in apis else apis
    return Snapshot(at_ns, apis, processes, {row: _stages(tables, row) for row in rows})


def _stages(tables: Tables, row: int) -> Stages:
    regions = [region.stages(row) for region in tables.counters.answers]
    return tuple(
        tuple(map(sum, zip(*of_stage, strict=True))) for of_stage in zip(*regions, strict=True)
    )


def _api(tables: Tables, key: int) -> ApiCounters | None:
    bytes_in = bytes_out = 0
    latencies = [0] * histogram.BUCKETS
    errors: dict[int, int] = {}
    for region in tables.counters.answers:
        received, sent = region.traffic(key)
        if received:
            bytes_in += received
            bytes_out += sent
            pairs = zip(latencies, region.latencies(key), strict=True)
            latencies = [here + there for here, there in pairs]
    for counts in tables.counters.errors:
        for code, count in counts.of(key).items():
            errors[code] = errors.get(code, 0) + count
    if not bytes_in and not errors:
        return None
    return ApiCounters(bytes_in, bytes_out, tuple(latencies), errors)
