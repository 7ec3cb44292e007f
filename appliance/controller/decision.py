"""Input and output of every decision of the controller.

A decision reads the image and gives (records, one result per thing asked for). It never changes the
image: replaying its records does, live and at start-up alike. Chance comes in as `new_id`.
"""

from collections.abc import Callable, Collection, Hashable
from dataclasses import field
from typing import Final, Protocol, TypeVar

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.errors import PeerError
from appliance.config.broker import BrokerConfig
from appliance.controller.node_rows import NodeRows
from appliance.metadata.image import MetadataImage

Record = object
Name = TypeVar("Name", bound=Hashable)


class MutationPermit(Protocol):
    """A client's right to change the metadata. pause_ms: what its answer has to tell."""

    @property
    def pause_ms(self) -> int: ...

    def __call__(self, partitions: int) -> None:
        """Asked before so many partitions are created or deleted. Raises PeerError."""
        ...


class _NoLimit:
    pause_ms = 0

    def __call__(self, partitions: int) -> None:
        """Permits everything: the client has no controller_mutation_rate quota."""


NO_LIMIT: Final[MutationPermit] = _NoLimit()


@dataclass(slots=True)
class Situation:
    """Input of a decision.

    permit: how much of it the client may change now.
    new_id: 16 fresh bytes, a topic's id. directory_id: of the folder of the metadata log.
    free_rows: how many more partitions fit into this node's own partition table. node_rows: what
    is left on each node, None: to be counted. directories: ids of this node's folders that take new
    partitions, when it has several. counts: how many partitions each of them has, what was decided
    in this turn included; None: to be counted. no_room: what to tell who wants new partitions while
    the disks are nearly full. kraft_version: the finalized one, which stands among the quorum's own
    records. listening: why this node cannot listen at (host, port), "" when it can. here: who asks
    came over the loopback interface of a node. showing: whether this node's listeners, or only
    some (in lower case), could speak TLS with these settings, as files are now; raises ConfigError.
    """

    permit: MutationPermit = field(default=NO_LIMIT, kw_only=True)
    image: MetadataImage
    config: BrokerConfig
    node_id: int
    directory_id: bytes
    new_id: Callable[[], bytes]
    free_rows: int
    directories: tuple[bytes, ...] = ()
    counts: dict[bytes, int] | None = None
    node_rows: NodeRows | None = field(default=None, kw_only=True)
    no_room: str = ""
    kraft_version: int = 0
    here: bool = field(default=True, kw_only=True)
    listening: Callable[[str, int], str] = field(default=lambda host, port: "", kw_only=True)
    showing: Callable[[BrokerConfig, Collection[str] | None], None] = field(
        default=lambda config, only: None, kw_only=True
    )

    @property
    def alone(self) -> bool:
        """True if no other broker is registered: then `free_rows` bounds new partitions; with
        several nodes `rows` does."""
        return self.image.brokers.keys() <= {self.node_id}

    @property
    def rows(self) -> NodeRows:
        """Those of every node, what was decided in this turn included."""
        if self.node_rows is None:
            self.node_rows = NodeRows(self.image, self.node_id, self.free_rows)
        return self.node_rows

    def check_disk(self) -> None:
        """Asked before partitions are made. Raises PeerError while there is no room for them."""
        if self.no_room:
            raise PeerError(errors.KAFKA_STORAGE_ERROR, self.no_room)


@dataclass(slots=True, frozen=True)
class Result:
    """How one thing went: Kafka's error code and, when it is not NONE, a text for people."""

    code: int = errors.NONE
    message: str | None = None


OK = Result()


def failed(error: PeerError) -> Result:
    """The result that tells the client of this error."""
    return Result(error.code, error.message)


def duplicates(names: list[Name]) -> dict[Name, None]:
    """Names that come more than once, in the order of their second coming."""
    seen: dict[Name, None] = {}
    twice: dict[Name, None] = {}
    for name in names:
        (twice if name in seen else seen)[name] = None
    return twice
