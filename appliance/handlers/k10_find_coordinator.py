"""FindCoordinator, API key 10, versions 0 to 6.

1: key type. 3: flexible. 4: several keys (KIP-699). 5: TRANSACTION_ABORTABLE. 6: share groups. The
first one to ask has the coordinator's topic created, and is answered when it exists, so that
clients need no second round.
"""

from functools import cache
from typing import Any

from appliance.authorization.apis import declared
from appliance.coordinators.find import SEVERAL_SINCE, CoordinatorNode, find_coordinators, finder
from appliance.handlers import gather, nodes
from appliance.handlers.exchange import Exchange, Handler, Host
from appliance.ring.messages import Message


def begin_find_coordinator(host: Host, x: Exchange) -> None:
    x.state = gather.decode(host, x)
    _answer(host, x, may_wait=True)


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    """The topic was created or could not be: the image tells."""
    _answer(host, x, may_wait=False)


def _answer(host: Host, x: Exchange, may_wait: bool) -> None:
    def living(node_id: int) -> CoordinatorNode | None:
        where = nodes.living(host, x, node_id)
        return None if where is None else CoordinatorNode(*where[:3])

    asked = x.state
    told, missing = finder(asked, host.image, cache(living), x.rights)
    if missing is not None and may_wait:
        host.ensure_topic(x, 0, missing)
    elif x.version < SEVERAL_SINCE:
        gather.reply(host, x, find_coordinators(x.version, asked, host.image, living, x.rights)[0])
    else:
        values: dict[str, Any] = {"throttle_time": 0, "coordinators": []}
        rows, count = values["coordinators"], len(asked.coordinator_keys)
        steps = gather.rows_of(asked.coordinator_keys, lambda key: rows.append(told(key)))
        gather.in_turns(
            host, x, count, steps, lambda: gather.reply_in_turns(host, x, values, count)
        )


HANDLER = Handler(*declared(10), begin_find_coordinator, complete, slices=True)
