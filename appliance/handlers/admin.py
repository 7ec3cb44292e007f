"""The requests that control answers: one list of APIs, each with the function that decides it.

`answer` decodes nothing and sends nothing: it takes a decoded request and gives the records that
the answer depends on and the answer itself. Control replays and syncs the records, then sends.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from appliance.authorization.apis import APIS, CONTROLLERS
from appliance.authorization.needs import Need
from appliance.authorization.rights import NOBODY, Rights
from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.controller.decision import Record, Result, Situation
from appliance.controller.heartbeats import Heartbeats
from appliance.controller.producer_ids import ProducerIdBlocks
from appliance.controller.undelete import Everywhere
from appliance.handlers.answer_cache import AnswerCache
from appliance.handlers.voter_changes import VoterChanges, VoterProbe
from appliance.metadata.log_dirs import LogDirs
from appliance.metadata.trash import DeletedTopics
from appliance.quotas.meters import MeterUsage
from appliance.ring.log_levels import LogLevels
from appliance.ring.partition_table import PartitionTable

Values = dict[str, Any]
Message = Any
"""A decoded message: one of kio's classes, which one depends on the version."""


class QuorumReplica(NamedTuple):
    """One replica of the metadata log, as its leader sees it. log_end: -1 when it is not known.
    Times in ms since 1970, -1: never."""

    node_id: int
    directory_id: bytes
    log_end: int
    fetched_ms: int
    caught_up_ms: int


@dataclass(slots=True, frozen=True)
class Quorum:
    """The state of the metadata quorum for DescribeQuorum. Offsets are exclusive ends.

    leader_id: -1 when nobody is known to lead. reached: (host, port) of each voter by its id, where
    the settings name it.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...] = ()
    observers: tuple[QuorumReplica, ...] = ()
    reached: Mapping[int, tuple[str, int]] = field(default_factory=dict)


@dataclass(slots=True)
class AdminContext:
    """The inputs of a decision. Made anew for each request, over the same parts.

    rights: of who asks, put in for each request.
    usage: how much of each quota is used now, by all processes together.
    handles: (topic id, partition) → row of the partition table.
    heartbeats: when brokers were heard of; None while this node does not lead the metadata log.
    cluster_id: this one's. monotonic_ms: now, by a clock that never goes back.
    dirs: the log folders by absolute paths. volume: total and usable bytes of the volume that
    holds a folder, None when it does not answer. electing: who votes, while this node leads the
    quorum; probed: what who is to vote said. loggers: of this node's processes. trash: what this
    node keeps of deleted topics; kept: what nodes do of those with a name, this one's promised to
    stay; settled: whether it has noted all of them. asked: the other nodes were. described: what
    was told of the broker's settings before. version: of Penstock.
    """

    rights: Rights = field(default=NOBODY, kw_only=True)
    usage: Callable[[], list[MeterUsage]] = field(default=list, kw_only=True)
    situation: Situation
    producer_ids: ProducerIdBlocks
    partitions: PartitionTable
    handles: Mapping[tuple[bytes, int], int]
    quorum: Quorum
    dirs: LogDirs
    volume: Callable[[str], tuple[int, int] | None]
    now_ms: int
    trash: DeletedTopics = field(default_factory=DeletedTopics)
    kept: Callable[[str], Everywhere] = lambda _: {}
    settled: Callable[[str], bool] = lambda _: True
    asked: bool = False
    heartbeats: Heartbeats | None = None
    cluster_id: str = ""
    monotonic_ms: int = 0
    electing: VoterChanges | None = None
    probed: VoterProbe | None = None
    loggers: LogLevels | None = None
    described: AnswerCache = field(default_factory=AnswerCache)
    version: str = ""


class Answer(NamedTuple):
    """The records an answer depends on, and the answer's fields. at_once: it is said when they are
    in the log, agreed or not. encoded: the values in the version that was asked, where they are
    known from before. things: what was changed that is no record, for the audit."""

    records: list[Record]
    values: Values
    at_once: bool = False
    encoded: bytes = b""
    things: Sequence[dict[str, str]] = ()


def _never(_: Message) -> bool:
    return False


@dataclass(slots=True, frozen=True)
class Api:
    """One API key that control serves in versions lowest … highest.

    controllers (derived): only the active controller decides, and only who was not a client asks,
    so nothing is forwarded to it.
    any_node: whoever has the metadata answers as long as nothing is to be changed; all others are
    for the controller. not_controller: the code of an answer that needs a controller and has none.
    refused: the answer to a request of which the caller may have nothing (`apis.NEEDS`): its
    fields but for the throttle time, of the request and of `error_code` and `error_message`.
    own: whether a request is about this very node alone, so that it decides, whoever leads.
    files: whether it is about files of the node with this id, which refuses it itself when they are
    not good: who leads sees others.
    probe: who is to be asked before it is decided: node id, host and port, or None.
    here: whether the node that a client asks decides what this caller asks, whoever leads.
    seeks: names of deleted topics of which the other brokers are asked before it is decided.
    split: steps that give the parts in which a long request is decided, one in a turn, where each
    row of its answer has a result of its own; none for one that is decided as a whole.
    """

    key: int
    name: str
    lowest: int
    highest: int
    decide: Callable[[Message, int, AdminContext], Answer]
    any_node: bool = False
    not_controller: int = errors.NOT_CONTROLLER
    refused: Callable[[Message, Values], Values] | None = None
    here: Callable[[AdminContext], bool] = lambda context: False
    probe: Callable[[Message, AdminContext], tuple[int, str, int] | None] | None = None
    own: Callable[[Message], bool] = _never
    files: Callable[[Message, int], bool] = lambda request, node_id: False
    seeks: Callable[[Message, AdminContext], tuple[str, ...]] | None = None
    split: Callable[[Message], Generator[None, None, Sequence[Message]]] | None = None

    @property
    def controllers(self) -> bool:
        return APIS[self.key].listeners == CONTROLLERS


def refusals(
    context: AdminContext, need: Need, names: Iterable[str], text: str | None
) -> dict[str, Result]:
    """Those of the names with which the caller may not do it, each with what to tell. text: beside
    the code, Kafka's."""
    if context.rights.everything:
        return {}
    codes = {name: context.rights.refusal(need, name) for name in names}
    return {name: Result(code, text) for name, code in codes.items() if code}
