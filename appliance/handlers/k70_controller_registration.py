"""ControllerRegistration, API key 70, version 0; flexible from 0 (KIP-919).

Every controller tells the active one where it listens and which features it supports.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.admission import check_controller
from appliance.controller.broker_registration import register_controller
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.handlers.k62_broker_registration import endpoints, features
from appliance.metadata.parts import ControllerImage
from appliance.wire.uuids import uuid_bytes


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    controller = ControllerImage(
        controller_id=request.controller_id,
        incarnation_id=uuid_bytes(request.incarnation_id),
        endpoints=endpoints(request.listeners),
        features=features(request.features),
    )
    told = {"throttle_time": 0, "error_code": errors.NONE, "error_message": None}
    electing = context.electing
    voters = [] if electing is None else [one.node_id for one in electing.electorate.voters]
    try:
        check_controller(context.situation, controller.controller_id, voters)
    except PeerError as error:
        return Answer([], told | {"error_code": error.code, "error_message": error.message})
    return Answer(register_controller(controller), told)


def refused(request: Message, told: Values) -> Values:
    return told


API = Api(*declared(70), decide, refused=refused)
