"""PushTelemetry, API key 72, version 0; flexible from 0 (KIP-714).

What is pushed is kept as it came (`client_metrics.py`) and opened by whoever looks at it.
"""

from appliance.authorization.apis import declared
from appliance.handlers import gather
from appliance.handlers.client_metrics import NOBODY
from appliance.handlers.exchange import Exchange, Handler, Host, never


def begin_push_telemetry(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    instance = request.client_instance_id
    code = host.client_metrics.push(
        host.image,
        NOBODY if instance is None else instance.bytes,
        host.client(x),
        x.rights.caller.principal.name,
        request.subscription_id,
        request.terminating,
        request.compression_type,
        request.metrics,
        host.now_ns // 1_000_000,
    )
    gather.reply(host, x, {"throttle_time": 0, "error_code": code})


HANDLER = Handler(*declared(72), begin_push_telemetry, never)
