"""One sample as values: totals, APIs, processes, disks, topics, clients, lags.

Amounts are of the sample's span; whoever wants a rate divides. A value machine between `sampling`,
which makes them, `recorder`, which packs them, and `reading`, which gives them back.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from appliance.base.dataclass import dataclass


class Whole(NamedTuple):
    """All of the appliance. bytes_in, records_in, batches_in: appended to partitions; bytes_out,
    fetches: answered with records. received, sent: bytes on the wire, of all requests. connections,
    throttled: at the end of the span. size_bytes: of all logs."""

    bytes_in: int = 0
    bytes_out: int = 0
    records_in: int = 0
    batches_in: int = 0
    fetches: int = 0
    requests: int = 0
    received: int = 0
    sent: int = 0
    errors: int = 0
    connections: int = 0
    throttled: int = 0
    size_bytes: int = 0


class ApiSample(NamedTuple):
    """One API key: requests that were answered, errors told, and latencies in µs."""

    key: int
    requests: int
    errors: int
    p50_us: int
    p99_us: int
    longest_us: int


class ProcessSample(NamedTuple):
    """One place for a process. state: as the process table numbers it. cpu: percent of one core.
    memory: KiB, with its part of what it shares (PSS), as of the last minute. longest_turn: µs,
    since it began."""

    kind: int
    index: int  # type: ignore[assignment]  # nobody searches in it as in a tuple
    state: int
    pid: int
    cpu: float
    memory_kib: int
    longest_turn_us: int


class FolderSample(NamedTuple):
    """One log folder, by its number in the settings: bytes of its file system, and of the logs that
    lie there. total 0: it does not answer."""

    folder: int
    total: int
    free: int
    logs: int


class TopicSample(NamedTuple):
    """Traffic of one topic: bytes and records appended, bytes of records fetched."""

    bytes_in: int = 0
    bytes_out: int = 0
    records_in: int = 0


class ClientSample(NamedTuple):
    """Usage of one client. produced: bytes of its Produce requests; fetched: of the answers to its
    fetches; throttled_ms: pauses that it was told, at most 65,535."""

    produced: int = 0
    fetched: int = 0
    requests: int = 0
    throttled_ms: int = 0


class ClientIdentity(NamedTuple):
    """Identity that is counted as one client: principal by its name, client id, and what kind of
    address it came from (`local`, `private`, `public`)."""

    user: str
    client_id: str
    address: str


@dataclass(slots=True, frozen=True)
class HistorySample:
    """One sample of everything. step: SECOND or MINUTE. at_ms: wall clock at its end. span_ms: what
    it is about. lags: (group, topic) → records committed offsets are behind; they and clients may
    have been cut before, by as many as `left_out` says of the kind."""

    step: int
    at_ms: int
    span_ms: int
    whole: Whole
    apis: Sequence[ApiSample] = ()
    processes: Sequence[ProcessSample] = ()
    disks: Sequence[FolderSample] = ()
    topics: Mapping[str, TopicSample] | None = None
    clients: Mapping[ClientIdentity, ClientSample] | None = None
    lags: Mapping[tuple[str, str], int] | None = None
    left_out: Mapping[str, int] | None = None
