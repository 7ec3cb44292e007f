"""DescribeCluster, API key 60, versions 0 to 2 (1: endpoint type, 2: fenced brokers); flexible from
0."""

from appliance.base import errors
from appliance.handlers import describe, gather, nodes
from appliance.handlers.exchange import Exchange, Handler, Host, never

BROKERS = 1
CONTROLLERS = 2


def begin(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    kind = getattr(request, "endpoint_type", BROKERS)
    code, text = errors.NONE, None
    if kind == CONTROLLERS:
        code = errors.MISMATCHED_ENDPOINT_TYPE
        text = (
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type"
            " CONTROLLER; ask for endpoint type 1 (brokers)."
        )
    elif kind != BROKERS:
        code, text = errors.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {kind}"
    with_fenced = getattr(request, "include_fenced_brokers", False)
    rows = describe.View(host, x).brokers(with_fenced=with_fenced)
    operations = describe.NOT_ASKED_FOR
    if request.include_cluster_authorized_operations:
        operations = describe.cluster_operations(x.rights)
    gather.reply(
        host,
        x,
        {
            "throttle_time": 0,
            "error_code": code,
            "error_message": text,
            "endpoint_type": BROKERS,
            "cluster_id": "" if code else host.cluster_id,
            "controller_id": nodes.NOBODY if code else nodes.controller(host),
            "brokers": [] if code else rows,
            "cluster_authorized_operations": operations,
        },
    )


HANDLER = Handler(60, "DescribeCluster", 0, 2, begin, never)
