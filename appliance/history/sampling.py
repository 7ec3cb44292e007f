"""What an appliance did since the last look, out of its tables: a Step each second, and one for
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
from appliance.history.samples import Api, Client, Disk, Process, Step, Traffic, Use, Whole
from appliance.ring import histogram
from appliance.ring import partition_table as columns
from appliance.ring.client_table import ClientTable
from appliance.ring.counters import API_KEYS, Counters
from appliance.ring.lag_table import LagTable
from appliance.ring.partition_table import PartitionTable
from appliance.ring.process_table import ProcessTable

_MINUTE_MS: Final = MINUTE * 1000
_NOTHING: Final = (0,) * histogram.BUCKETS

Counts = tuple[int, ...]


class Tables(NamedTuple):
    """What is looked at."""

    processes: ProcessTable
    partitions: PartitionTable
    counters: Counters
    clients: ClientTable
    lags: LagTable


class Outside(NamedTuple):
    """What the tables do not say. name_of: a topic's, "" when it is no more. used: (CPU seconds
    since it began, KiB of its own memory) of a process id. disks: (total, free) bytes of each log
    folder, (0, 0) for one that does not answer."""

    name_of: Callable[[TopicId], str]
    used: Callable[[int], tuple[float, int]]
    disks: Callable[[], Sequence[tuple[int, int]]]


class Flow(NamedTuple):
    """What went through a topic, or through all."""

    bytes_in: int = 0
    bytes_out: int = 0
    records_in: int = 0
    batches_in: int = 0
    fetches: int = 0

    def plus(self, other: "Flow") -> "Flow":
        """Both together."""
        return Flow(*(here + there for here, there in zip(self, other, strict=True)))


class Flows:
    """What went through each topic since the look before."""

    def __init__(self, table: PartitionTable) -> None:
        self._table = table
        self._holders: list[int] = []
        self._topics: list[TopicId] = []
        self._before: list[list[int]] = [[] for _ in Flow._fields]
        self.look()

    def look(self) -> dict[TopicId, Flow]:
        """Those with any traffic."""
        table = self._table
        self._follow(table.holders())
        now = [
            table.column(columns.BYTES_IN),
            table.served_column(columns.BYTES_OUT),
            table.column(columns.RECORDS_IN),
            table.column(columns.BATCHES_IN),
            table.served_column(columns.FETCHES),
        ]
        before, self._before = self._before, now
        found: dict[TopicId, Flow] = {}
        if now == before:
            return found
        moved = {row for old, new in zip(before, now, strict=True) for row in _differ(old, new)}
        for row in moved:
            flow = Flow(*(new[row] - old[row] for old, new in zip(before, now, strict=True)))
            topic_id = self._topics[row]
            known = found.get(topic_id)
            found[topic_id] = flow if known is None else known.plus(flow)
        return found

    def _follow(self, holders: list[int]) -> None:
        """Rows that were given to other partitions count from zero on."""
        if holders == self._holders:
            return
        known = len(self._holders)
        fresh = _differ(self._holders, holders[:known])
        fresh += range(known, len(holders))
        for column in self._before:
            column += [0] * (len(holders) - known)
        self._topics += [TopicId(b"")] * (len(holders) - known)
        for row in fresh:
            self._topics[row] = self._table.topic_of(row)
            for column in self._before:
                column[row] = 0
        self._holders = holders


class Answers:
    """What was asked and answered by API key, since a look before."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._traffic: dict[int, Counts] = {}
        self._latencies: dict[int, list[int]] = {}
        self._errors: dict[int, int] = {}
        self.received = self.sent = 0
        self.look()

    def look(self) -> list[Api]:
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

    def _api(self, key: int) -> Api:
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
        return Api(key, sum(counts), fresh, p50, p99, longest)


class _Since:
    """What is summed up for one step."""

    def __init__(self, step: int, tables: Tables, now_ms: int) -> None:
        self.step = step
        self.began_ms = now_ms
        self.answers = Answers(tables.counters)
        self.flows: dict[TopicId, Flow] = {}
        self.names: dict[TopicId, str] = {}
        self.cpu: dict[tuple[int, int], tuple[int, float]] = {}


class Sampler:
    """tables: of the running appliance. at_ms: wall clock; now_ms: monotonic. Nothing is told of
    what was before."""

    def __init__(self, tables: Tables, outside: Outside, at_ms: int, now_ms: int) -> None:
        self._tables = tables
        self._outside = outside
        self._flows = Flows(tables.partitions)
        self._clients = ClientWatch(tables.clients)
        self._second = _Since(SECOND, tables, now_ms)
        self._minute = _Since(MINUTE, tables, now_ms)
        self._sizes: list[list[int]] = []
        self._logs: list[int] = []  # bytes of those in each folder
        self._in_minute = at_ms // _MINUTE_MS
        for since in (self._second, self._minute):
            self._processes(since, 1000)

    def look(self, at_ms: int, now_ms: int, *, last: bool = False) -> list[Step]:
        """What happened since the last call: a Step, and one more when a minute is over, or when
        this is the last look. at_ms: wall clock. now_ms: monotonic."""
        flows = self._flows.look()
        for topic_id, flow in flows.items():
            name = self._outside.name_of(topic_id)
            for since in (self._second, self._minute):
                known = since.flows.get(topic_id)
                since.flows[topic_id] = flow if known is None else known.plus(flow)
                if name:
                    since.names[topic_id] = name
        clients = self._clients.look(now_ms)
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
        clients: dict[Client, Use],
        lags: dict[tuple[str, str], int],
        left_out: dict[str, int],
    ) -> Step:
        span_ms = max(now_ms - since.began_ms, 1)
        apis = since.answers.look()
        size_bytes, disks = self._disks()
        whole = Flow()
        topics: defaultdict[str, Traffic] = defaultdict(Traffic)
        for topic_id, flow in since.flows.items():
            whole = whole.plus(flow)
            name = since.names.get(topic_id)
            if name is not None:  # or it was deleted before anybody knew what it is called
                topics[name] = Traffic(*map(sum, zip(topics[name], flow[:3], strict=True)))
        step = Step(
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

    def _processes(self, since: _Since, span_ms: int) -> list[Process]:
        table, found = self._tables.processes, []
        for peer in table.peers:
            pid = table.pid(peer)
            cpu_s, memory_kib = self._outside.used(pid) if pid else (0.0, 0)
            place = (peer.kind, peer.index)
            before_pid, before_s = since.cpu.get(place, (0, 0.0))
            since.cpu[place] = pid, cpu_s
            spent_s = max(cpu_s - (before_s if pid == before_pid else 0.0), 0.0)
            found.append(
                Process(
                    *place,
                    table.state(peer),
                    pid,
                    spent_s / span_ms * 100_000,
                    memory_kib,
                    min(table.longest_turn(peer) // 1000, 2**32 - 1),
                )
            )
        return found

    def _disks(self) -> tuple[int, list[Disk]]:
        """(bytes of all logs, each folder)."""
        table = self._tables.partitions
        outside = self._outside.disks()
        sizes = [
            table.column(columns.SIZE_BYTES), table.column(columns.DIRECTORY), table.holders(),
        ]  # fmt: skip
        if sizes != self._sizes or len(outside) != len(self._logs):
            self._sizes, self._logs = sizes, [0] * len(outside)
            for size, folder, used in zip(*sizes, strict=True):
                if size and used & 1 and folder < len(outside):
                    self._logs[folder] += size
        logs = self._logs
        found = [
            Disk(n, total, free, used)
            for n, ((total, free), used) in enumerate(zip(outside, logs, strict=True))
        ]
        return sum(logs), found


def _differ(old: Sequence[int], new: Sequence[int]) -> list[int]:
    """Where two columns of the same length differ."""
    if old == new:
        return []
    return [row for row, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
