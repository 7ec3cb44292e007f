"""AddRaftVoter, API key 80, versions 0 and 1; flexible from 0 (KIP-853).

A node that has the metadata already, as an observer, votes from now on. It is asked first, at the
listener that is named, which kraft.version it can follow. 1: the answer may come before the change
is agreed (KIP-1186).
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.admission import check_voter
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.handlers.voter_changes import check_cluster, listeners
from appliance.quorum.voters import ANY, Voter
from appliance.wire.uuids import uuid_bytes


def _voter(request: Message, context: AdminContext) -> Voter:
    """The voter to add. Raises PeerError when it may not be added, whatever it answers."""
    electing, names = context.electing, context.situation.config.list("controller.listener.names")
    check_cluster(request.cluster_id, context.cluster_id)
    if electing is None:
        raise PeerError(errors.NOT_LEADER_OR_FOLLOWER, "")
    directory = uuid_bytes(request.voter_directory_id)
    if request.voter_id < 0 or directory == ANY:
        raise PeerError(errors.INVALID_REQUEST, "Add voter request didn't include a valid voter")
    ends = listeners(request.listeners)
    if names[0].upper() not in [one.name for one in ends]:
        raise PeerError(
            errors.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint ({ends}) for the default listener"
            f" {names[0]}",
        )
    electing.check("adding")
    electing.check_new(request.voter_id)
    check_voter(context.situation, request.voter_id, directory)
    first = sorted(ends, key=lambda one: one.name != names[0].upper())
    return Voter(request.voter_id, directory, tuple(first))


def probe(request: Message, context: AdminContext) -> tuple[int, str, int] | None:
    """The node to ask first: node id, host and port; None when the request is refused anyway."""
    try:
        voter = _voter(request, context)
    except PeerError:
        return None
    end = voter.endpoints[0]
    return voter.node_id, end.host, end.port


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    electing, probed = context.electing, context.probed
    try:
        voter = _voter(request, context)
        assert electing is not None
        if probed is None or probed.code:
            raise PeerError(
                errors.REQUEST_TIMED_OUT,
                f"New voter {voter.node_id} is not ready to receive requests",
            )
        said = voter._replace(lowest=probed.lowest, highest=probed.highest)
        added = electing.added(said)
    except PeerError as error:
        return Answer([], _values(error.code, error.message or None))
    at_once = version >= 1 and not request.ack_when_committed
    return Answer([added], _values(errors.NONE, None), at_once)


def _values(code: int, text: str | None) -> Values:
    return {"throttle_time": 0, "error_code": code, "error_message": text}


def refused(request: Message, told: Values) -> Values:
    return told


API = Api(
    *declared(80), decide, refused=refused, probe=probe,
    not_controller=errors.NOT_LEADER_OR_FOLLOWER,
)  # fmt: skip
