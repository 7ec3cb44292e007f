"""Activity of an appliance since the last sample, from its tables: a Step each second, and one for
each minute that is over.

A value machine: whoever drives it says what time it is, how much CPU and memory a process has used
and how full the disks are. Nothing is asked of anybody and nothing is written. A look costs what
has changed since the one before: columns of tables are copied whole and compared, only rows that
differ are walked through. The tables' rows must not be given to others meanwhile, so it runs in the
process that gives them.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import sub
from typing import Final, NamedTuple

from appliance.base.ids import TopicId
from appliance.history.clients import ClientWatch
from appliance.history.format import CLIENTS, LAGS, MINUTE, SECOND
from appliance.history.samples import (
    ApiSample,
    ClientIdentity,
    ClientSample,
    FolderSample,
    HistorySample,
    ProcessSample,
    TopicSample,
    Whole,
)
from appliance.ring import histogram
from appliance.ring import partition_table as columns
from appliance.ring.client_table import ClientTable
from appliance.ring.counters import API_KEYS, Counters
from appliance.ring.lag_table import LagTable
from appliance.ring.partition_table import PartitionTable
from appliance.ring.process_table import ProcessTable

_MINUTE_MS: Final = MINUTE * 1000
_NOTHING: Final = (0,) * histogram.BUCKETS
_NEVER: Final = -1
_BLOCK: Final = 32  # rows that are compared at once
_FEW: Final = 4096
"""Of so many partitions sizes are summed up with each second in which one has changed, of more with
each minute."""

Counts = tuple[int, ...]


class SampledTables(NamedTuple):
    """The sampled tables."""

    processes: ProcessTable
    partitions: PartitionTable
    counters: Counters
    clients: ClientTable
    lags: LagTable


class Outside(NamedTuple):
    """Facts from outside of the tables. name_of: a topic's, "" when it is no more. cpu_s,
    memory_kib: of a process id, seconds since it began and PSS. disks: (total, free) bytes of each
    log folder, (0, 0) for one that does not answer."""

    name_of: Callable[[TopicId], str]
    cpu_s: Callable[[int], float]
    memory_kib: Callable[[int], int]
    disks: Callable[[], Sequence[tuple[int, int]]]


class Flow(NamedTuple):
    """Traffic of one topic, or of all."""

    bytes_in: int = 0
    bytes_out: int = 0
    records_in: int = 0
    batches_in: int = 0
    fetches: int = 0

    def plus(self, other: "Flow") -> "Flow":
        """Both together."""
        return Flow(*(here + there for here, there in zip(self, other, strict=True)))


class Flows:
    """Traffic of each topic since the previous sample. moved: whether any row was written."""

    def __init__(self, table: PartitionTable) -> None:
        self._table = table
        self._given = -1
        self._topics: list[TopicId] = []
        self._holders: list[int] = []
        self._versions: list[int] = []
        self._served = [b"" for _ in table.served]
        self._before: dict[int, Flow] = {}  # rows that ever had any
        self.moved = False
        self.read_flows()

    def read_flows(self) -> dict[TopicId, Flow]:
        """Those with any traffic. A row's version moves with each write of its home, so the others
        are not read."""
        table = self._table
        if table.given != self._given:
            self._follow()
        versions = table.column(columns.VERSION)
        written = _differ(self._versions, versions)
        self._versions, self.moved = versions, bool(written)
        found: dict[TopicId, Flow] = {}
        for row in set(written).union(self._read()):
            now = self._row(row)
            before = self._before.get(row, Flow())
            if now != before:
                self._before[row] = now
                flow = Flow(*(new - old for new, old in zip(now, before, strict=True)))
                topic_id = self._topics[row]
                known = found.get(topic_id)
                found[topic_id] = flow if known is None else known.plus(flow)
        return found

    def _row(self, row: int) -> Flow:
        table = self._table
        at = row * columns.COLUMNS
        state = table.state
        fetches, bytes_out = table.served_of(row)
        return Flow(
            state[at + columns.BYTES_IN],
            bytes_out,
            state[at + columns.RECORDS_IN],
            state[at + columns.BATCHES_IN],
            fetches,
        )

    def _read(self) -> set[int]:
        """Rows of which somebody was given something, and perhaps their neighbours."""
        found: set[int] = set()
        rows, width = len(self._versions), columns.SERVED_COLUMNS * 8
        for netproc, part in enumerate(self._table.served):
            old, new = self._served[netproc], part[: rows * columns.SERVED_COLUMNS].tobytes()
            self._served[netproc] = new
            if old != new:
                for first in range(0, rows, _BLOCK):
                    last = min(first + _BLOCK, rows)
                    if old[first * width : last * width] != new[first * width : last * width]:
                        found.update(range(first, last))
        return found

    def _follow(self) -> None:
        """Rows that were given to other partitions count from zero on."""
        table = self._table
        self._given = table.given
        holders = table.holders()
        known = len(self._holders)
        same = zip(self._holders, holders[:known], strict=True)
        fresh = [row for row, (old, new) in enumerate(same) if old | 1 != new | 1]
        fresh += range(known, len(holders))
        self._topics += [TopicId(b"")] * (len(holders) - known)
        self._versions += [_NEVER] * (len(holders) - known)
        for row in fresh:
            self._topics[row] = table.topic_of(row)
            self._versions[row] = _NEVER
            self._before.pop(row, None)
        self._holders = holders


class AnswerTotals:
    """Requests and responses by API key since a previous sample."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._traffic: dict[int, Counts] = {}
        self._latencies: dict[int, list[int]] = {}
        self._errors: dict[int, int] = {}
        self.received = self.sent = 0
        self.read_totals()

    def read_totals(self) -> list[ApiSample]:
        """Those that were asked since the last call; `received` and `sent` are about the same."""
        regions = self._counters.answers
        self.received = self.sent = 0
        found = []
        for key in range(API_KEYS):
            traffic = [region.traffic(key) for region in regions]
            told = tuple(count for pair in traffic for count in pair)
            before = self._traffic.get(key)
            if before is None:
                if not any(told):
                    continue
                before = (0,) * len(told)
            if told != before:
                moved = tuple(map(sub, told, before))
                self.received += sum(moved[::2])
                self.sent += sum(moved[1::2])
                self._traffic[key] = told
                found.append(self._api(key))
        return found

    def _api(self, key: int) -> ApiSample:
        latencies = [0] * histogram.BUCKETS
        for region in self._counters.answers:
            if region.traffic(key) != (0, 0):
                latencies = [a + b for a, b in zip(latencies, region.latencies(key), strict=True)]
        before = self._latencies.get(key, _NOTHING)
        self._latencies[key] = latencies
        counts = list(map(sub, latencies, before))
        errors = sum(sum(one.of(key).values()) for one in self._counters.errors)
        fresh = errors - self._errors.get(key, 0)
        self._errors[key] = errors
        p50, p99, longest = (round(histogram.percentile_us(counts, q)) for q in (0.5, 0.99, 1))
        return ApiSample(key, sum(counts), fresh, p50, p99, longest)


class _Since:
    """Sums for one step."""

    def __init__(self, step: int, tables: SampledTables, now_ms: int) -> None:
        self.step = step
        self.began_ms = now_ms
        self.answers = AnswerTotals(tables.counters)
        self.flows: dict[TopicId, Flow] = {}
        self.names: dict[TopicId, str] = {}
        self.cpu: dict[tuple[int, int], tuple[int, float]] = {}


class Sampler:
    """tables: of the running appliance. at_ms: wall clock; now_ms: monotonic. Nothing is told of
    what was before."""

    def __init__(self, tables: SampledTables, outside: Outside, at_ms: int, now_ms: int) -> None:
        self._tables = tables
        self._outside = outside
        self._flows = Flows(tables.partitions)
        self._clients = ClientWatch(tables.clients)
        self._second = _Since(SECOND, tables, now_ms)
        self._minute = _Since(MINUTE, tables, now_ms)
        self._memory: dict[int, int] = {}  # KiB of a process, as of the last minute
        self._logs: list[int] = []  # bytes of those in each folder
        self._summed = False
        self._in_minute = at_ms // _MINUTE_MS
        for since in (self._second, self._minute):
            self._processes(since, 1000)

    def take_samples(self, at_ms: int, now_ms: int, *, last: bool = False) -> list[HistorySample]:
        """Returns the activity since the last call: a Step, and one more when a minute is over, or
        when this is the last look. at_ms: wall clock. now_ms: monotonic."""
        flows = self._flows.read_flows()
        for topic_id, flow in flows.items():
            name = self._outside.name_of(topic_id)
            for since in (self._second, self._minute):
                known = since.flows.get(topic_id)
                since.flows[topic_id] = flow if known is None else known.plus(flow)
                if name:
                    since.names[topic_id] = name
        clients = self._clients.read_clients(now_ms)
        left_out = {CLIENTS: self._clients.left_out}
        found = [self._step(self._second, at_ms, now_ms, clients, {}, left_out)]
        if last or at_ms // _MINUTE_MS != self._in_minute:
            self._in_minute = at_ms // _MINUTE_MS
            lags, missing = self._tables.lags.read()
            found.append(self._step(self._minute, at_ms, now_ms, {}, lags, {LAGS: missing}))
        return found

    def _step(
        self,
        since: _Since,
        at_ms: int,
        now_ms: int,
        clients: dict[ClientIdentity, ClientSample],
        lags: dict[tuple[str, str], int],
        left_out: dict[str, int],
    ) -> HistorySample:
        span_ms = max(now_ms - since.began_ms, 1)
        apis = since.answers.read_totals()
        size_bytes, disks = self._disks(since.step == MINUTE)
        whole = Flow()
        topics: defaultdict[str, TopicSample] = defaultdict(TopicSample)
        for topic_id, flow in since.flows.items():
            whole = whole.plus(flow)
            name = since.names.get(topic_id)
            if name is not None:  # or it was deleted before anybody knew what it is called
                topics[name] = TopicSample(*map(sum, zip(topics[name], flow[:3], strict=True)))
        step = HistorySample(
            since.step,
            at_ms,
            span_ms,
            Whole(
                *whole,
                requests=sum(one.requests for one in apis),
                received=since.answers.received,
                sent=since.answers.sent,
                errors=sum(one.errors for one in apis),
                connections=self._clients.connections,
                throttled=self._clients.throttled,
                size_bytes=size_bytes,
            ),
            apis,
            self._processes(since, span_ms),
            disks,
            topics,
            clients,
            lags,
            left_out,
        )
        since.began_ms = now_ms
        since.flows.clear()
        since.names.clear()
        return step

    def _processes(self, since: _Since, span_ms: int) -> list[ProcessSample]:
        table, found = self._tables.processes, []
        if since.step == MINUTE:
            self._memory.clear()
        for peer in table.peers:
            pid = table.pid(peer)
            cpu_s = self._outside.cpu_s(pid) if pid else 0.0
            if pid and pid not in self._memory:
                self._memory[pid] = self._outside.memory_kib(pid)  # which takes the kernel long
            place = (peer.kind, peer.index)
            before_pid, before_s = since.cpu.get(place, (0, 0.0))
            since.cpu[place] = pid, cpu_s
            spent_s = max(cpu_s - (before_s if pid == before_pid else 0.0), 0.0)
            found.append(
                ProcessSample(
                    *place,
                    table.state(peer),
                    pid,
                    spent_s / span_ms * 100_000,
                    self._memory.get(pid, 0),
                    min(table.longest_turn(peer) // 1000, 2**32 - 1),
                )
            )
        return found

    def _disks(self, minute: bool) -> tuple[int, list[FolderSample]]:
        """(bytes of all logs, each folder)."""
        table = self._tables.partitions
        outside = self._outside.disks()
        if self._flows.moved:
            self._summed = False
        few = minute or table.row_count <= _FEW
        if (few and not self._summed) or len(outside) != len(self._logs):
            logs = [0] * len(outside)
            sizes, folders = table.column(columns.SIZE_BYTES), table.column(columns.DIRECTORY)
            for size, folder, used in zip(sizes, folders, table.holders(), strict=True):
                if size and used & 1 and folder < len(logs):
                    logs[folder] += size
            self._logs, self._summed = logs, True
        logs = self._logs
        found = [
            FolderSample(n, total, free, used)
            for n, ((total, free), used) in enumerate(zip(outside, logs, strict=True))
        ]
        return sum(logs), found


def _differ(old: Sequence[int], new: Sequence[int]) -> list[int]:
    """Where two columns of the same length differ."""
    if old == new:
        return []
    return [row for row, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
