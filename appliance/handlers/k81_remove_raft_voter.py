"""RemoveRaftVoter, API key 81, version 0; flexible from 0 (KIP-853).

A voter only observes from now on. A leader that removes itself leads until that is agreed.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.handlers.voter_changes import check_cluster
from appliance.quorum.voters import ANY
from appliance.wire.uuids import uuid_bytes


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    electing = context.electing
    try:
        check_cluster(request.cluster_id, context.cluster_id)
        if electing is None:
            raise PeerError(errors.NOT_LEADER_OR_FOLLOWER, "")
        directory = uuid_bytes(request.voter_directory_id)
        if request.voter_id < 0 or directory == ANY:
            raise PeerError(
                errors.INVALID_REQUEST, "Remove voter request didn't include a valid voter"
            )
        electing.check("removing")
        removed = electing.removed(request.voter_id, directory)
    except PeerError as error:
        return Answer([], _values(error.code, error.message or None))
    return Answer([removed], _values(errors.NONE, None))


def _values(code: int, text: str | None) -> Values:
    return {"throttle_time": 0, "error_code": code, "error_message": text}


def refused(request: Message, told: Values) -> Values:
    return told


API = Api(
    *declared(81), decide, refused=refused,
    not_controller=errors.NOT_LEADER_OR_FOLLOWER,
)  # fmt: skip
