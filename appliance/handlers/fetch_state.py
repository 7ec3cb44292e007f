"""One Fetch request on its way, and what was found out for each of its partitions so far.

Made and changed by `k01_fetch.py` alone.
"""

from dataclasses import dataclass, field

from appliance.handlers.down_converted import Conversion
from appliance.handlers.exchange import FileRange, SegmentFile
from appliance.handlers.fetch_sessions import UNSETTLED, Session, SessionPartition
from appliance.wire.fetch import FetchRequest, PartitionData

Row = tuple[int, PartitionData, FileRange | bytes | None]
"""(index of the partition, its answer, its records)."""


@dataclass(slots=True)
class FetchedPartition:
    """The data of one partition for the client. `first` is the length of the first batch, in bytes
    like `length`. settled: the version of its row while there is nothing behind its offset.
    diverging: the epoch from which on a replica has something else, and where that ends here.
    nearest: the node that a consumer should read from instead, -1: none.
    """

    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    segment: int = 0
    position: int = 0
    length: int = 0
    first: int = 0
    layout: int = 0
    file: SegmentFile | None = None  # it was found without asking
    aborted: bytes = b""  # transactions, as `wire/aborted.py` says
    settled: int = UNSETTLED
    diverging: tuple[int, int] | None = None
    nearest: int = -1


@dataclass(slots=True)
class FetchState:
    """found: by index in `asked`; what was settled and still is, is not there. untold: at whose end
    a replica is, of which its home has not heard yet. rack: where the consumer stands, when that
    may make a difference. watches: partitions (indices) by the number under which they are watched;
    watched: how many such numbers there were; begun: how often it was begun. looking: which of them
    moved and are asked for now. rules: the generation by which its rights were looked at.
    rows: of the answer, so far. left: bytes of records that it has room for. comes: some
    are on their way from a remote store. has_records: some are
    in it. asks_again: homes are asked for files that are gone. responding: it is made in turns.
    conversion: of its records to message sets."""

    request: FetchRequest
    session: Session | None
    incremental: bool
    asked: list[SessionPartition]
    found: dict[int, FetchedPartition] = field(default_factory=dict)
    aborted: dict[int, bytes] = field(default_factory=dict)  # that go with what comes next
    total: int = 0  # bytes found so far
    failed: bool = False  # some partition has an error, or news: answer at once, as Kafka does
    parked: bool = False
    untold: list[int] = field(default_factory=list)
    asked_again: bool = False  # about files that are not where a home had said
    rack: bytes = b""
    watches: dict[int, list[int]] = field(default_factory=dict)
    watched: int = 0
    begun: int = 0
    looking: set[int] = field(default_factory=set)
    rules: int = 0
    rows: list[Row] = field(default_factory=list)
    left: int = 0
    comes: bool = False
    has_records: bool = False
    asks_again: bool = False
    responding: bool = False
    conversion: Conversion | None = None
