"""The interface of a handler: one request in flight (Exchange) and its network process (Host).

A handler is plain functions over these two. It plans by asking the homes of partitions through the
rings, is told about each completion, and hands back the answer as pieces: bytes and file ranges. It
never blocks and keeps nothing between requests but what it puts into `Exchange.state`.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from appliance.authorization.rights import Rights
from appliance.base.compiled import mypyc_attr
from appliance.base.errors import ILLEGAL_SASL_STATE
from appliance.config.broker import BrokerConfig
from appliance.handlers.client_metrics import ClientMetricsPushes
from appliance.handlers.sequence_gap_guard import SequenceGapGuard
from appliance.metadata.image import MetadataImage
from appliance.ring.messages import Message
from appliance.ring.partition_table import PartitionTable
from appliance.ring.process_table import ProcessTable
from appliance.ring.slots import make_message
from appliance.wire.fetch import FetchPartition


class Route(NamedTuple):
    """Where a partition lives: its row in the partition table and the ioproc that owns it."""

    handle: int
    home: int
    topic: str
    topic_id: bytes
    partition: int
    leader_epoch: int


class SegmentFile(Protocol):
    """A segment opened for reading; stays open while anyone refers to it."""

    fd: int


class FileRange(NamedTuple):
    """`length` bytes of a segment file, to be sent with sendfile."""

    file: SegmentFile
    position: int
    length: int


Piece = bytes | FileRange

Partitions = Collection[FetchPartition] | Collection[tuple[bytes, int]]
"""The topic of each comes first: its name, or its id."""

Place = tuple[SegmentFile, int, int, int]
"""(file, position, length, length of the first batch), in bytes."""


class Exchange:
    """One request on its way. `position` and `end` bound its body in the netproc's arena."""

    __slots__ = (
        "answer",
        "connection",
        "correlation_id",
        "deadline_ns",
        "decoded",
        "end",
        "handler",
        "number",
        "pending",
        "position",
        "received",
        "rights",
        "sent",
        "silent",
        "slab",
        "stage_row",
        "started_ns",
        "state",
        "taken_ns",
        "version",
        "waits_ns",
    )

    def __init__(
        self,
        number: int,
        handler: "Handler",
        version: int,
        correlation_id: int,
        rights: Rights,
        position: int,
        end: int,
        connection: Any,
    ) -> None:
        self.number = number  # identifies it in tokens: token >> 32; -1: it is not in flight
        self.handler = handler
        self.version = version
        self.correlation_id = correlation_id
        self.rights = rights  # of the caller, and so who that is
        self.position = position
        self.end = end
        self.connection = connection  # the netproc's own; handlers do not look inside
        self.slab: Any = None  # what keeps the body's memory, dropped with the last thing pending
        self.pending: dict[int, int] = {}  # index of what was asked → home asked
        self.state: Any = None  # the handler's own
        self.decoded: Any = None  # the request, where that took several turns (`intake`)
        self.answer: list[Piece] | None = None
        self.deadline_ns = 0
        self.started_ns = 0  # when its bytes were seen
        self.taken_ns = 0  # when the last of its batches left a queue, 0: it was in none
        self.waits_ns = 0  # since when it has waited for others, 0: not yet
        self.stage_row = handler.key  # by which its stages are counted
        self.received = self.sent = 0  # bytes of the request and of the answer, frames and all
        self.silent = False  # acks=0: nothing is sent


class Login(NamedTuple):
    """The answer to a message of a login. code: NONE, or why it is refused, which `text` says.
    message: the mechanism's. lifetime_ms: how long the login holds, 0: for ever. principal: who it
    is, "" while its mechanism wants more. by_token: it is proved by a delegation token."""

    code: int
    text: str | None
    message: bytes = b""
    lifetime_ms: int = 0
    principal: str = ""
    by_token: bool = False


LATE: Final = "SaslAuthenticate request received after successful authentication"
"""Of a message that comes when nobody asks for one."""


class Line:
    """The requests of one connection that wait for one another's question to a coordinator. asking:
    the one whose question is under way."""

    __slots__ = ("asking", "under_way")

    def __init__(self) -> None:
        self.under_way: deque[Exchange] = deque()  # the oldest first
        self.asking: Exchange | None = None


WORK: Final = 0xFFFFFFFF
"""The index by which an exchange has its own work pending (`Host.work`)."""

Steps = Iterator[None]
"""Work in pieces of some hundred µs each."""

WAITED: Final = make_message(0)
"""The completion of a wait (`Host.later`)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Host(ABC):
    """The services of a network process for its handlers: one subclass serves, another one
    tests.

    A class and no Protocol, because compiled handlers call it several times per request.
    """

    memory: memoryview  # the receive arena
    image: MetadataImage
    kraft_version: int
    config: BrokerConfig
    cluster_id: str
    node_id: int
    rack: bytes | None  # where this node stands, None: consumers read from leaders alone
    processes: ProcessTable  # who lives, and who leads the metadata log
    left: dict[int, int]  # brokers that were fenced here → until when (ns) clients are told of them
    fetch_max_bytes: int  # of records in one answer
    remote_wait_ms: int  # for records of a remote store
    log_dirs: tuple[str, ...]  # absolute paths of the log folders
    now_ns: int  # monotonic, read once per turn
    served: memoryview  # this process's part of `PartitionTable.served`
    verifies: bool  # transaction.partition.verification.enable
    partitions: PartitionTable  # as published by their homes
    client_metrics: ClientMetricsPushes  # who pushes which of them
    routing: int  # another one as soon as a route may be another
    overtaking: SequenceGapGuard  # batches behind what a dead home refused

    @abstractmethod
    def route(self, topic: bytes, partition: int, by_id: bool) -> Route | None:
        """The home of a partition that this node leads; None: `gather.absent` says why."""
        ...

    @abstractmethod
    def replica(self, topic: bytes, partition: int, by_id: bool) -> Route | None:
        """The home of this node's replica, whoever leads; None when it has none."""
        ...

    @abstractmethod
    def glance(
        self, x: Exchange, route: Route, row: list[int], offset: int, limit: int, max_bytes: int
    ) -> Place | None:
        """Where the bytes from `offset` on are, when that can be told without asking the
        partition's home. row: as read just now. limit: its high watermark or last stable
        offset."""
        ...

    @abstractmethod
    def remember(self, x: Exchange, route: Route, place: tuple[int, int, int, int]) -> None:
        """The home said where whole batches lie: what `glance` goes on from for this connection.
        place: base offset of the segment, position in its file, length in bytes, layout."""
        ...

    @abstractmethod
    def ask_home(
        self,
        x: Exchange,
        index: int,
        route: Route,
        op: int,
        flags: int,
        asked: int,
        epoch: int,
        length: int,
        limit: int,
    ) -> None:
        """Put one operation on the ring to route.home; its completion comes to `complete` with
        `index`. asked, epoch, length, limit: an APPEND's position, guard, length and acks; a READ's
        offset, leader epoch, max bytes and min bytes; a value and an epoch of another one."""
        ...

    @abstractmethod
    def ask_as_replica(
        self,
        x: Exchange,
        index: int,
        route: Route,
        flags: int,
        partition: FetchPartition,
        replica: tuple[int, int, int],
        limits: tuple[int, int],
    ) -> None:
        """`ask` for another replica's READ. replica: its node id, broker epoch, and the high
        watermark that it knows. limits: max bytes, and what must be there before a parked read is
        answered."""
        ...

    @abstractmethod
    def ask_nearest(
        self,
        x: Exchange,
        index: int,
        route: Route,
        flags: int,
        partition: FetchPartition,
        nodes: tuple[int, int, int, int],
        limits: tuple[int, int],
    ) -> None:
        """`ask` for a consumer's READ that one of these nodes, -1: no more, should rather answer.
        limits: as for `ask_as_replica`."""
        ...

    @abstractmethod
    def watch_rows(self, x: Exchange, index: int, home: int, flags: int, rows: list[int]) -> None:
        """Put WATCH for these rows, as it names them, on the ring to a home; NEWS comes to
        `complete` with `index`."""
        ...

    @abstractmethod
    def cancel(self, x: Exchange) -> None:
        """Forget what is still pending, parked reads included."""
        ...

    @abstractmethod
    def forward(self, x: Exchange) -> None:
        """Let control answer this request; `complete` is called with each piece."""
        ...

    @abstractmethod
    def coordinate(self, x: Exchange, index: int, route: Route, body: bytes) -> None:
        """Let the home of a partition of `__consumer_offsets` answer this request for its groups;
        `complete` is called with each piece of the answer."""
        ...

    @abstractmethod
    def coordinate_within(
        self, x: Exchange, index: int, route: Route, body: bytes, code: int, guard: int
    ) -> None:
        """`coordinate` for a request that writes within a transaction, when it is known whether it
        may: the error code of the transaction's coordinator, and the home's guard."""
        ...

    @abstractmethod
    def question(
        self, x: Exchange, index: int, route: Route, key: int, version: int, body: bytes
    ) -> None:
        """Ask a coordinator in the appliance's own name, with a request of any API; `complete` is
        called with each piece of the answer."""
        ...

    @abstractmethod
    def question_node(
        self, x: Exchange, index: int, node: int, key: int, version: int, body: bytes
    ) -> None:
        """`question` for a coordinator on another node: over the network, in this version."""
        ...

    @abstractmethod
    def later(self, x: Exchange, index: int, delay_ns: int) -> None:
        """`index` is pending for so long, and then completed with WAITED."""
        ...

    # Logins: none, where no listener asks for one -------------------------------------------------

    def greet(self, x: Exchange, mechanism: str) -> tuple[int, tuple[str, ...]]:
        """The client chooses this mechanism: an error code, and those that are offered."""
        return ILLEGAL_SASL_STATE, ()

    def authenticate(self, x: Exchange, message: bytes) -> Login | None:
        """The mechanism's answer to this message; None: `complete` is called with index 0 when
        `x.state` has it."""
        return Login(ILLEGAL_SASL_STATE, LATE)

    def hold_back(self, x: Exchange) -> bool:
        """A refusal that is told when `complete` is called with index 0; False: at once."""
        return False

    def settle_login(self, x: Exchange, login: Login) -> None:
        """Lets a client in that is known, and hangs up on one that is refused, once it is told."""
        assert login.code, "nobody logs in here"

    def finish_bare(self, x: Exchange, message: bytes) -> None:
        """Answer with this alone behind its length, without a header (SaslHandshake version 0)."""
        raise AssertionError("nobody logs in here")

    def audit_change(self, x: Exchange, things: list[dict[str, str]]) -> None:
        """The request has changed these things (`shell/audit.py`)."""
        return

    @abstractmethod
    def hold_pending(self, x: Exchange, index: int) -> None:
        """`index` is pending until its handler takes it out of `x.pending`."""
        ...

    def work(self, x: Exchange, steps: Steps, then: Callable[[], None]) -> None:
        """Does `steps` a few in each turn, while others are served, and then calls `then`; WORK is
        pending until that. Who has no turns does all of them at once."""
        for _ in steps:
            pass
        then()

    def work_in_line(self, x: Exchange, steps: Steps, then: Callable[[], None]) -> None:
        """The same for a request that goes on to ask for long after `then`: some are under way at a
        time, the others wait in the order in which they came."""
        self.work(x, steps, then)

    def leave_line(self, x: Exchange) -> None:  # noqa: B027 - where nobody waits in line
        """It asks no more: the next one of `work_in_line` may begin."""

    def pause(self, x: Exchange) -> None:  # noqa: B027 - where requests are not read there is nothing to do
        """Reads no request behind this one from its connection until `unpause`."""

    def unpause(self, x: Exchange) -> None:  # noqa: B027
        """Undoes `pause`."""

    @abstractmethod
    def line(self, x: Exchange) -> Line:
        """The one of its connection."""
        ...

    @abstractmethod
    def ensure_topic(self, x: Exchange, index: int, name: str) -> None:
        """Ask control to create a topic with the defaults; completes with `index`."""
        ...

    @abstractmethod
    def asks_for(self, x: Exchange, name: str) -> None:
        """The client has asked for a topic that exists, and would have it created if it did not."""
        ...

    @abstractmethod
    def reads(self, x: Exchange, partitions: Partitions) -> None:
        """The client is fetching from these."""
        ...

    @abstractmethod
    def fetch_room(self, x: Exchange) -> int | None:
        """The most bytes that an answer to this client should have, None for no limit of its
        own."""
        ...

    @abstractmethod
    def segment(self, route: Route, base_offset: int, layout: int) -> SegmentFile | None:
        """The segment file in the layout that a place was told for, or None when it is gone. Raises
        OSError when it cannot be opened."""
        ...

    def read_file(
        self, file: SegmentFile, position: int, length: int, *, at_once: bool
    ) -> bytes | None:
        """These bytes of a segment, fewer at its end. at_once: None when the disk must be waited
        for, which then fetches them. Raises OSError."""
        raise AssertionError("segments are not read here")

    @abstractmethod
    def schedule(self, x: Exchange) -> None:
        """Call `expire` at x.deadline_ns, to the millisecond; without this it is looked at once a
        second."""
        ...

    @abstractmethod
    def software(self, x: Exchange, name: str, version: str) -> None:
        """Takes the client's software name and version (KIP-511)."""
        ...

    @abstractmethod
    def client(self, x: Exchange) -> Mapping[str, str]:
        """The client's attributes, by the selectors of KIP-714, except its instance id."""
        ...

    @abstractmethod
    def reached(self, x: Exchange) -> tuple[str, int]:
        """(host, port) to advertise: the one configured, else the address that the client's own
        socket reached."""
        ...

    @abstractmethod
    def hang_up(self, x: Exchange, why: str) -> None:
        """Close the connection: there is no honest answer."""
        ...

    @abstractmethod
    def failed(self, x: Exchange, code: int, times: int = 1) -> None:
        """The answer tells of this error so many times: once for each partition, group, … ."""
        ...

    @abstractmethod
    def finish(self, x: Exchange, pieces: list[Piece]) -> None:
        """The response body (no header, no frame length) is complete."""
        ...

    @abstractmethod
    def finish_silently(self, x: Exchange, close: bool) -> None:
        """Ends a request without a response (acks=0); `close` closes the connection, which is how
        Kafka reports an error then.
        """
        ...


def never(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    """For handlers that ask nobody."""
    raise AssertionError(f"{x.handler.name}: completion {index} for a request that asked nothing")


def _ignore(host: Host, x: Exchange) -> None:
    pass


@dataclass(slots=True, frozen=True)
class Handler:
    """One API key: its versions and the functions that serve it.

    begin(host, x): plan; raises MalformedRequest. complete(host, x, index, message, payload): one
    answer has come (message None: the process that was asked died). expire(host, x): the deadline
    set by `begin` has passed. keeps_body: its bytes stay in use until nothing is pending. slices: a
    long request is decoded in several turns before `begin`, which takes it by `gather.decode`.
    between_nodes: what other nodes ask of control, by what they have replayed: neither the request
    nor the answer waits until this process has, or a node that is elected many leaders at once
    would let all others wait for the same news. in_order: it waits for the transactional
    batches that its connection sent before it, and what comes behind it waits for its answer.
    """

    key: int
    name: str
    lowest: int
    highest: int
    begin: Callable[[Host, Exchange], None]
    complete: Callable[[Host, Exchange, int, Message | None, bytes], None]
    expire: Callable[[Host, Exchange], None] = _ignore
    keeps_body: bool = False
    between_nodes: bool = False
    in_order: bool = False
    slices: bool = False
