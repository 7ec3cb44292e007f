"""BrokerRegistration, API key 62, versions 0 to 4; flexible from 0.

1: whether the broker migrates from ZooKeeper, which is refused. 2: ids of its log folders
(KIP-858). 3: the epoch of its orderly end before (KIP-966). 4: features that begin at level 0.
"""

from typing import Final

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.admission import admitted
from appliance.controller.broker_registration import Registering, register_broker
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.metadata.parts import Endpoint, Feature
from appliance.wire.uuids import uuid_bytes

TOKEN: Final = "penstock.token="
"""Begins the name of a feature that is none, from 0 to 0: an invitation's token, which is not kept.
Apache Kafka's controllers take it for a feature that nobody uses."""
_NO_EPOCH: Final = -1
_DOUBT_MS: Final = 500
"""So long a broker has to be heard of when another one comes with its id."""


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    told = features(request.features)
    tokens = [one.name[len(TOKEN) :] for one in told if one.name.startswith(TOKEN)]
    asked = Registering(
        broker_id=request.broker_id,
        cluster_id=request.cluster_id,
        incarnation_id=uuid_bytes(request.incarnation_id),
        endpoints=endpoints(request.listeners),
        features=tuple(one for one in told if not one.name.startswith(TOKEN)),
        rack=request.rack,
        log_dirs=tuple(map(uuid_bytes, request.log_dirs)) if version >= 2 else (),
        previous_epoch=request.previous_broker_epoch if version >= 3 else None,
        is_migrating_zk_broker=version >= 1 and request.is_migrating_zk_broker,
    )
    assert context.heartbeats is not None, "only who leads decides"
    try:
        beside = admitted(
            context.situation, asked.broker_id, next(iter(tokens), None), context.now_ms
        )
        records, epoch = register_broker(
            context.situation, context.heartbeats, asked, context.cluster_id, context.monotonic_ms
        )
    except PeerError as error:
        if error.code == errors.DUPLICATE_BROKER_REGISTRATION:
            context.heartbeats.doubt(asked.broker_id, context.monotonic_ms, _DOUBT_MS)
        return Answer([], _values(error.code, _NO_EPOCH))
    return Answer([*records, *beside], _values(errors.NONE, epoch))


def endpoints(listeners: Message) -> tuple[Endpoint, ...]:
    """As a registration names them."""
    return tuple(
        Endpoint(
            name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol
        )
        for one in listeners
    )


def features(named: Message) -> tuple[Feature, ...]:
    """As a registration names them."""
    return tuple(
        Feature(
            name=one.name,
            min_supported_version=one.min_supported_version,
            max_supported_version=one.max_supported_version,
        )
        for one in named
    )


def _values(code: int, epoch: int) -> Values:
    return {"throttle_time": 0, "error_code": code, "broker_epoch": epoch}


def refused(request: Message, told: Values) -> Values:
    return {"error_code": told["error_code"], "broker_epoch": _NO_EPOCH}


API = Api(*declared(62), decide, refused=refused)
