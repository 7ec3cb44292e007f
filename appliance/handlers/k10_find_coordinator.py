"""FindCoordinator, API key 10, versions 0 to 6.

1: key type. 3: flexible. 4: several keys (KIP-699). 5: TRANSACTION_ABORTABLE. 6: share groups. The
first one to ask has the coordinator's topic created, and is answered when it exists, so that
clients need no second round.
"""

from appliance.coordinators.find import Node, find
from appliance.handlers import gather, nodes
from appliance.handlers.exchange import Exchange, Handler, Host
from appliance.ring.messages import Message


def begin(host: Host, x: Exchange) -> None:
    x.state = gather.decode(host, x)
    _answer(host, x, may_wait=True)


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    """The topic was created or could not be: the image tells."""
    _answer(host, x, may_wait=False)


def _answer(host: Host, x: Exchange, may_wait: bool) -> None:
    def living(node_id: int) -> Node | None:
        where = nodes.living(host, x, node_id)
        return None if where is None else Node(*where[:3])

    values, missing = find(x.version, x.state, host.image, living, x.rights)
    if missing is not None and may_wait:
        host.ensure_topic(x, 0, missing)
    else:
        gather.reply(host, x, values)


HANDLER = Handler(10, "FindCoordinator", 0, 6, begin, complete, slices=True)
