"""UpdateRaftVoter, API key 82, version 0; flexible from 0 (KIP-853).

A voter tells the leader of itself: its directory id, where it is reached, which levels of
kraft.version it can follow. While voters are static the leader keeps that in memory, for the
upgrade to dynamic ones.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.handlers.voter_changes import VoterChanges, check_cluster, listeners
from appliance.quorum.voters import ANY, Electorate, Voter
from appliance.wire.uuids import uuid_bytes


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    electing = context.electing
    try:
        check_cluster(request.cluster_id, context.cluster_id)
        if electing is None:
            raise PeerError(errors.NOT_LEADER_OR_FOLLOWER, "")
        if request.current_leader_epoch != context.quorum.leader_epoch:
            older = request.current_leader_epoch < context.quorum.leader_epoch
            raise PeerError(
                errors.FENCED_LEADER_EPOCH if older else errors.UNKNOWN_LEADER_EPOCH, ""
            )
        records = _updated(request, context, electing)
    except PeerError as error:
        return Answer([], _values(error.code, context))
    return Answer(records, _values(errors.NONE, context), at_once=True)


def _updated(request: Message, context: AdminContext, electing: VoterChanges) -> list[object]:
    feature, name = request.k_raft_version_feature, context.situation.config
    voter = Voter(
        request.voter_id,
        uuid_bytes(request.voter_directory_id),
        listeners(request.listeners),
        feature.min_supported_version,
        feature.max_supported_version,
    )
    wanted = name.list("controller.listener.names")[0].upper()
    if voter.directory == ANY or wanted not in [one.name for one in voter.endpoints]:
        raise PeerError(errors.INVALID_REQUEST, "")
    if electing.probing or not electing.begun or (electing.dynamic and not electing.settled):
        raise PeerError(errors.REQUEST_TIMED_OUT, "")
    before = electing.electorate
    if not voter.lowest <= before.kraft_version <= voter.highest:
        raise PeerError(errors.INVALID_REQUEST, "")
    known = before.find_voter(voter.node_id)
    if known is None or (electing.dynamic and known.directory != voter.directory):
        raise PeerError(errors.VOTER_NOT_FOUND, "")
    if not electing.dynamic:
        electing.note(voter)
        return []
    after: Electorate = before.with_voter(voter)
    return [after] if after != before else []


def _values(code: int, context: AdminContext) -> Values:
    quorum = context.quorum
    host, port = quorum.reached.get(quorum.leader_id, ("", 0))
    leader = {
        "leader_id": quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "host": host,
        "port": port,
    }
    return {"throttle_time": 0, "error_code": code, "current_leader": leader}


def refused(request: Message, told: Values) -> Values:
    return {**told, "current_leader": {"host": "", "port": 0}}  # nobody, of no epoch


API = Api(
    *declared(82), decide, refused=refused,
    not_controller=errors.NOT_LEADER_OR_FOLLOWER,
)  # fmt: skip
