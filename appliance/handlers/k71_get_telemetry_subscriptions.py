"""GetTelemetrySubscriptions, API key 71, version 0; flexible from 0 (KIP-714).

The network process answers it alone, of the metadata. Counters are asked for as they are and not as
what was added since the last push: a push that is lost then takes nothing with it.
"""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.handlers import gather
from appliance.handlers.client_metrics import CODECS, NOBODY
from appliance.handlers.exchange import Exchange, Handler, Host, never


def begin_get_telemetry_subscriptions(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    asked = request.client_instance_id
    code, instance, told = host.client_metrics.subscribe_instance(
        host.image,
        NOBODY if asked is None else asked.bytes,
        host.client(x),
        host.now_ns // 1_000_000,
    )
    if code != errors.NONE:
        gather.reply(host, x, {**_NOTHING, "error_code": code})
        return
    gather.reply(
        host,
        x,
        {
            **_NOTHING,
            "client_instance_id": instance,
            "subscription_id": told.id,
            "accepted_compression_types": CODECS,
            "push_interval": told.interval_ms,
            "telemetry_max_bytes": host.client_metrics.max_bytes,
            "requested_metrics": told.metrics,
        },
    )


_NOTHING = {
    "throttle_time": 0,
    "error_code": errors.NONE,
    "client_instance_id": None,
    "subscription_id": 0,
    "accepted_compression_types": (),
    "push_interval": 0,
    "telemetry_max_bytes": 0,
    "delta_temporality": False,
    "requested_metrics": (),
}

HANDLER = Handler(*declared(71), begin_get_telemetry_subscriptions, never)
