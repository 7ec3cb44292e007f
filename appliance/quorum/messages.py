"""Messages between replicas of a quorum: those fields of Kafka's messages that decide.

Epochs are leader epochs of the metadata log; NOBODY stands for a leader or a vote that is not
known. Whoever carries a message adds what does not decide (cluster id, topic, endpoints) and, to
an answer to a fetch, the records.
"""

from typing import Final, NamedTuple

from appliance.quorum.voters import ANY

NOBODY: Final = -1


class Vote(NamedTuple):
    """API 52. epoch: the one that `candidate` asks for; with `pre_vote` (KIP-996) the one that it
    knows. last_epoch, end: of its log. directory: id of the folder that has it."""

    epoch: int
    candidate: int
    last_epoch: int
    end: int
    pre_vote: bool
    directory: bytes = ANY


class Voted(NamedTuple):
    """The answer to Vote. epoch, leader: as the one who answers knows them."""

    epoch: int
    leader: int
    granted: bool
    pre_vote: bool


class BeginEpoch(NamedTuple):
    """API 53: `leader` leads."""

    epoch: int
    leader: int


class EndEpoch(NamedTuple):
    """API 54: `leader` leads no more. successors: voters, who has most of its log first."""

    epoch: int
    leader: int
    successors: tuple[int, ...]


class Fetch(NamedTuple):
    """API 1, of the metadata log. end, last_epoch: where the log of `replica` ends, all of it on
    its disk, and in which epoch. directory: id of the folder that has it."""

    epoch: int
    replica: int
    end: int
    last_epoch: int
    directory: bytes = ANY


class Fetched(NamedTuple):
    """The answer to Fetch. leads: whether who answers leads `epoch`; else only epoch and leader
    tell something. parts: (epoch, end) of the leader's log where the two logs part, or None.
    snapshot: (end, epoch) of the leader's newest one, when its log begins behind the end of the
    replica's."""

    epoch: int
    leader: int
    leads: bool = False
    high_watermark: int = 0
    parts: tuple[int, int] | None = None
    snapshot: tuple[int, int] | None = None


Message = Vote | Voted | BeginEpoch | EndEpoch | Fetch | Fetched


class QuorumState(NamedTuple):
    """Durable state of a replica, written and synced before any message that follows from it is
    sent. voted, voted_directory: the vote in `epoch`.
    """

    epoch: int = 0
    leader: int = NOBODY
    voted: int = NOBODY
    voted_directory: bytes = ANY
