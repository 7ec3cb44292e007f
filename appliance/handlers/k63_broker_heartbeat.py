"""BrokerHeartbeat, API key 63, versions 0 to 2; flexible from 0.

1: folders that went offline (KIP-858). 2: folders that take nothing new (KIP-1066).
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.broker_states import Heartbeat, HeartbeatAnswer, heartbeat
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.wire.uuids import uuid_bytes

_REFUSED = HeartbeatAnswer(is_caught_up=False, is_fenced=True, should_shut_down=False)


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    cordoned = request.cordoned_log_dirs if version >= 2 else None
    asked = Heartbeat(
        broker_id=request.broker_id,
        epoch=request.broker_epoch,
        offset=request.current_metadata_offset,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        offline=tuple(map(uuid_bytes, request.offline_log_dirs)) if version >= 1 else (),
        cordoned=None if cordoned is None else tuple(map(uuid_bytes, cordoned)),
    )
    assert context.heartbeats is not None, "only who leads decides"
    try:
        records, answer = heartbeat(
            context.situation, context.heartbeats, asked, context.monotonic_ms
        )
    except PeerError as error:
        return Answer([], _values(error.code, _REFUSED))
    return Answer(records, _values(errors.NONE, answer))


def _values(code: int, answer: HeartbeatAnswer) -> Values:
    return {
        "throttle_time": 0,
        "error_code": code,
        "is_caught_up": answer.is_caught_up,
        "is_fenced": answer.is_fenced,
        "should_shut_down": answer.should_shut_down,
    }


def refused(request: Message, told: Values) -> Values:
    return _values(told["error_code"], _REFUSED)


API = Api(*declared(63), decide, refused=refused)
