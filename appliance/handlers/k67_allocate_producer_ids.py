"""AllocateProducerIds, API key 67, version 0; flexible from 0 (KIP-730).

A broker asks for a block of producer ids, which nobody else is given.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.producer_ids import BLOCK, allocate_block_for
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    try:
        records, first = allocate_block_for(
            context.situation, request.broker_id, request.broker_epoch
        )
    except PeerError as error:
        return Answer([], _values(error.code, 0, 0))
    return Answer(records, _values(errors.NONE, first, BLOCK))


def _values(code: int, first: int, count: int) -> Values:
    return {
        "throttle_time": 0,
        "error_code": code,
        "producer_id_start": first,
        "producer_id_len": count,
    }


def refused(request: Message, told: Values) -> Values:
    return _values(told["error_code"], 0, 0)


API = Api(*declared(67), decide, refused=refused)
