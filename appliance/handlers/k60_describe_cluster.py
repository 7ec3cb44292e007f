"""DescribeCluster, API key 60, versions 0 to 2 (1: endpoint type, 2: fenced brokers); flexible from
0."""

from appliance.base import errors
from appliance.handlers import describe, gather
from appliance.handlers.exchange import Exchange, Handler, Host, never

BROKERS = 1
CONTROLLERS = 2


def begin(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    kind = getattr(request, "endpoint_type", BROKERS)
    code, text = errors.NONE, None
    if kind == CONTROLLERS:
        code = errors.MISMATCHED_ENDPOINT_TYPE
        text = "the request was sent to a broker listener; ask for endpoint type 1 (brokers)"
    elif kind != BROKERS:
        code, text = errors.UNSUPPORTED_ENDPOINT_TYPE, f"endpoint type {kind} is neither 1 nor 2"
    with_fenced = getattr(request, "include_fenced_brokers", False)
    rows = [row for row in describe.brokers(host, x) if with_fenced or not row["is_fenced"]]
    operations = describe.NOT_ASKED_FOR
    if request.include_cluster_authorized_operations:
        operations = describe.CLUSTER_OPERATIONS
    gather.reply(
        host,
        x,
        {
            "throttle_time": 0,
            "error_code": code,
            "error_message": text,
            "endpoint_type": kind,
            "cluster_id": host.cluster_id,
            "controller_id": host.config.int("node.id"),
            "brokers": rows if code == errors.NONE else [],
            "cluster_authorized_operations": operations,
        },
    )


HANDLER = Handler(60, "DescribeCluster", 0, 2, begin, never)
