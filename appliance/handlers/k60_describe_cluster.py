"""DescribeCluster, API key 60, versions 0 to 2 (1: endpoint type, 2: fenced brokers); flexible from
0."""

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.handlers import describe, gather, nodes
from appliance.handlers.exchange import Exchange, Handler, Host, never

BROKERS = 1
CONTROLLERS = 2
_NAMES = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


def begin_describe_cluster(host: Host, x: Exchange) -> None:
    _answer(host, x, BROKERS)


def begin_for_controllers(host: Host, x: Exchange) -> None:
    _answer(host, x, CONTROLLERS)


def _answer(host: Host, x: Exchange, mine: int) -> None:
    """mine: which endpoints this listener tells of."""
    request = gather.decode(host, x)
    kind = getattr(request, "endpoint_type", BROKERS)
    code, text = errors.NONE, None
    if kind not in _NAMES:
        code, text = errors.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {kind}"
    elif kind != mine:
        code = errors.MISMATCHED_ENDPOINT_TYPE
        text = (
            f"The request was sent to an endpoint of type {_NAMES[mine]}, but we wanted an endpoint"
            f" of type {_NAMES[kind]}; ask for endpoint type {mine}."
        )
    rows = []
    if not code and mine == CONTROLLERS:
        rows = _controllers(host)
    elif not code:
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
            "endpoint_type": mine,
            "cluster_id": "" if code else host.cluster_id,
            "controller_id": nodes.NOBODY if code else nodes.controller(host),
            "brokers": rows,
            "cluster_authorized_operations": operations,
        },
    )


def _controllers(host: Host) -> list[dict[str, object]]:
    """Those that registered with an endpoint."""
    found = [(one, one.endpoints[0]) for one in host.image.controllers.values() if one.endpoints]
    return [
        {
            "broker_id": one.controller_id,
            "host": end.host,
            "port": end.port,
            "rack": None,
            "is_fenced": False,
        }
        for one, end in sorted(found, key=lambda pair: pair[0].controller_id)
    ]


HANDLER = Handler(*declared(60), begin_describe_cluster, never)
FOR_CONTROLLERS = Handler(*declared(60), begin_for_controllers, never)
