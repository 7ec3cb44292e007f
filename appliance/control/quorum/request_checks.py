"""Checks of the fields of quorum requests, before any of them reaches the replica: the values that
no sound node sends are refused with Apache Kafka's codes."""

from appliance.base.errors import INVALID_REQUEST, INVALID_VOTER_KEY, PeerError
from appliance.control.quorum.wire import QuorumRequest
from appliance.quorum.epochs import LAST
from appliance.quorum.messages import NOBODY, BeginEpoch, EndEpoch, Fetch, Vote
from appliance.quorum.replica import Replica
from appliance.quorum.voters import ANY


class RowRefused(PeerError):
    """A refusal in the row of the metadata log, which tells of leader and epoch, too."""


def check_fields(what: Vote | BeginEpoch | EndEpoch | Fetch) -> None:
    """Raises RowRefused with INVALID_REQUEST."""
    wrong = ""
    match what:
        case Vote():
            last = what.epoch if what.pre_vote else what.epoch - 1
            if what.candidate < 0:
                wrong = f"node {what.candidate} asks for a vote"
            elif what.end < 0 or not 0 <= what.last_epoch <= last:
                wrong = f"a log that ends at {what.end} in epoch {what.last_epoch} asks for votes"
        case BeginEpoch() | EndEpoch():
            if what.leader < 0:
                wrong = f"node {what.leader} leads"
        case Fetch():
            if min(what.epoch, what.end, what.last_epoch) < 0:
                wrong = f"it fetches from {what.end} on, epoch {what.last_epoch}"
    if wrong:
        raise RowRefused(INVALID_REQUEST, f"{wrong}, in epoch {what.epoch}")


def check_epoch(what: Vote | BeginEpoch | EndEpoch, replica: Replica, now_ms: int) -> None:
    """Raises RowRefused with INVALID_REQUEST for an epoch that is too far ahead."""
    if what.epoch > replica.epoch and not replica.admits(what.epoch, now_ms):
        text = f"epoch {what.epoch} is too far ahead of {replica.epoch}, or behind the last, {LAST}"
        raise RowRefused(INVALID_REQUEST, text)


def check_voter(asked: QuorumRequest, replica: Replica, *, static: bool) -> None:
    """A request is for this very voter, and an epoch has one leader. Where voters are `static`,
    only they speak of votes and epochs; else whoever asks may know more of who votes. Raises
    PeerError."""
    what = asked.what
    sender = what.candidate if isinstance(what, Vote) else getattr(what, "leader", -1)
    mine = asked.voter in (-1, replica.node_id) and asked.directory in (ANY, replica.directory)
    if not mine or (static and not (replica.votes and sender in replica.voters)):
        raise RowRefused(INVALID_VOTER_KEY, f"node {sender} asks as a voter for {asked.voter}")
    known = replica.leader if what.epoch == replica.epoch else NOBODY
    if not isinstance(what, Vote) and known not in (NOBODY, sender):
        text = f"node {sender} speaks as the leader of epoch {what.epoch}, which is node {known}"
        raise PeerError(INVALID_REQUEST, text)
