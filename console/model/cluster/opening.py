"""How an appliance that serves alone is given the listeners by which other nodes reach it, without
a stop.

Kafka's own request (IncrementalAlterConfigs of the broker's `listeners`); what is open stays open.
"""

import time
from typing import Any, Final

from appliance.config.open_listeners import ALLOWED
from console.model.asking.configs import BROKER, SET, values_of
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.cluster.nodes import Nodes, controllers, quorum_told

_LISTENERS: Final = "listeners"
_ALTER: Final = (44, 1)
_NAMES: Final = "controller.listener.names"
_LOOK_AGAIN_S: Final = 0.05
_OPENS_S: Final = 20.0


def let_others_in(link: Link, found: Nodes, listen: str | None) -> str:
    """Open what is missing of the one node there is, and wait until it is told of: its listeners,
    "" when there is nothing to open. listen: where clients of other hosts are to come, HOST:PORT.
    Raises Failure."""
    if len(found.all) > 1:
        if listen is not None:
            raise usage(
                f"--listen is for a single appliance, and this cluster has {len(found.all)} nodes"
            )
        return ""
    (number,) = found.all
    at = found.all[number].address
    told = values_of(link, BROKER, (str(number),), (_LISTENERS, _NAMES)).get(str(number), {})
    before = told.get(_LISTENERS) or ""
    after = listeners(before, told.get(_NAMES) or "CONTROLLER", listen)
    if after == before:
        return ""
    if not link.is_asked:
        raise Failure(f"the listeners of {at} are not opened over SASL")
    epoch = _epoch(link)
    change = {"name": _LISTENERS, "config_operation": SET, "value": after}
    resource = {"resource_type": BROKER, "resource_name": str(number), "configs": [change]}
    answer = ask_server(link, *_ALTER, {"resources": [resource], "validate_only": False})
    for one in answer.responses:
        if ALLOWED in (one.error_message or ""):
            raise Failure(
                f"node {number}: {one.error_message}",
                f"penstock config set --broker {number} {ALLOWED}, then ask again",
                name="INVALID_REQUEST",
            )
        check(int(one.error_code), one.error_message, f"listeners of node {number}")
    _wait(link, number, epoch)
    return after


def listeners(before: str, names: str, listen: str | None) -> str:
    """The setting `listeners` as others need it. before: as it is; names: of the listeners of
    controllers; listen: None where clients go on to be heard where they are. Raises Failure."""
    from appliance.config.listeners import EVERYWHERE, Endpoint, in_url, parse_endpoint

    own = [name.strip().upper() for name in names.split(",")]
    opened = [parse_endpoint(_LISTENERS, one) for one in before.split(",")]
    clients = [one for one in opened if one.name not in own]
    doors = [one for one in opened if one.name in own]
    if listen is not None:
        at = _place(listen)
        rest = [one for one in clients[1:] if at.host not in EVERYWHERE or one.port != at.port]
        clients = [Endpoint(clients[0].name, at.host, at.port), *rest]
    first = clients[0]
    if not 0 < first.port < 0xFFFF:
        raise usage(
            f"the other nodes have to know the port of {first.host}:{first.port}, and the next one"
            " is that of controllers",
            "--listen HOST:PORT says which, for example --listen :9092",
        )
    doors = doors or [Endpoint(own[0], first.host, first.port + 1)]
    if listen is not None:
        doors = [Endpoint(one.name, first.host, one.port) for one in doors]
    return ",".join(f"{one.name}://{in_url(one.host)}:{one.port}" for one in (*clients, *doors))


def _place(listen: str) -> Any:
    from appliance.base.errors import ConfigError
    from appliance.config.listeners import parse_endpoint

    try:
        return parse_endpoint("--listen", listen)
    except ConfigError as problem:
        raise usage(str(problem)) from None


def _wait(link: Link, number: int, before: int) -> None:
    """Until the node leads anew, with its listeners. before: the epoch in which it led."""
    until = time.monotonic() + min(link.timeout_s, _OPENS_S)
    while not _leads(link, number, before):
        if time.monotonic() > until:
            raise Failure(
                f"node {number} has not opened its new listeners",
                "penstock event list shows why",
            )
        time.sleep(_LOOK_AGAIN_S)


def _leads(link: Link, number: int, before: int) -> bool:
    """Not while the node's control starts again, which cannot answer then."""
    try:
        return _epoch(link) > before and number in controllers(link)
    except Failure as failure:
        if failure.name not in ("UNREACHABLE", "NOT_CONTROLLER", "REQUEST_TIMED_OUT"):
            raise
        return False


def _epoch(link: Link) -> int:
    told = quorum_told(link)
    return -1 if told is None else int(told.leader_epoch)
