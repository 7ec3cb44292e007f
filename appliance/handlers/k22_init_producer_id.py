"""InitProducerId, API key 22, versions 0 to 5, for idempotent producers.

2: flexible. 3: the producer's present id and epoch (KIP-360; without a transactional id a new id is
given all the same). 4: PRODUCER_FENCED. 5: TRANSACTION_ABORTABLE. Without a controller ids are
given while the block lasts, then COORDINATOR_LOAD_IN_PROGRESS. Not done: transactions. A
transactional id is refused with UNSUPPORTED_VERSION, which clients treat as final.
"""

from appliance.authorization import needs
from appliance.authorization.rights import Rights
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.handlers.admin import AdminContext, Answer, Api, Message


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    if code := _refusal(context.rights, request.transactional_id):
        return _refused(code)
    if request.transactional_id is not None:
        empty = not request.transactional_id
        return _refused(errors.INVALID_REQUEST if empty else errors.UNSUPPORTED_VERSION)
    if version >= 3 and (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refused(errors.INVALID_REQUEST)
    try:
        records, producer_id = context.producer_ids.take(context.situation)
    except PeerError as error:
        return _refused(error.code)
    values = {
        "throttle_time": 0,
        "error_code": errors.NONE,
        "producer_id": producer_id,
        "producer_epoch": 0,
    }
    return Answer(records, values)


def _refusal(rights: Rights, transactional_id: str | None) -> int:
    """Who may write some topic may do so idempotently (KIP-679)."""
    if transactional_id is not None:
        return rights.refusal(needs.WRITE_TRANSACTION, transactional_id)
    if rights.some(needs.WRITE_TOPIC):
        return errors.NONE
    return rights.refusal(needs.WRITE_IDEMPOTENTLY)


def _refused(code: int) -> Answer:
    values = {"throttle_time": 0, "error_code": code, "producer_id": -1, "producer_epoch": -1}
    return Answer([], values)


API = Api(
    22, "InitProducerId", 0, 5, 2, decide,
    any_node=True, not_controller=errors.COORDINATOR_LOAD_IN_PROGRESS,
)  # fmt: skip
