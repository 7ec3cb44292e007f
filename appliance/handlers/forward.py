"""Requests that control answers: the network process passes the request on and the answer back."""

from appliance.authorization.apis import CONTROLLERS, ApiRow
from appliance.base import errors
from appliance.base.errors import MalformedRequest
from appliance.handlers.exchange import Exchange, Handler, Host
from appliance.ring.messages import Message
from appliance.ring.slots import answer_goes_on


def forward_request(host: Host, x: Exchange) -> None:
    if x.position >= x.end:
        # A descriptor of no bytes would be taken for a broken ring, and us for a hostile process.
        raise MalformedRequest(f"{x.handler.name} v{x.version}: the request has no body")
    x.state = []
    host.forward(x)


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    """A piece of the answer has come. message None: control died, and so did what it was doing."""
    if message is None or message.flags != 1:
        code = errors.COORDINATOR_NOT_AVAILABLE if message is None else message.flags - 1
        host.hang_up(x, f"control did not answer: error {code}")
        return
    x.state.append(payload)
    if not answer_goes_on(message):
        host.finish(x, x.state)


def handler(row: ApiRow) -> Handler:
    """A request of this API is for control to answer."""
    between_nodes = row.listeners == CONTROLLERS
    return Handler(
        *row[:4], forward_request, complete, keeps_body=True, between_nodes=between_nodes
    )
