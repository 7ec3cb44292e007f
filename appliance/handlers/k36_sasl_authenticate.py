"""SaslAuthenticate, API key 36, versions 0 to 2.

A message of the mechanism that SaslHandshake chose. 1: how long the login holds (KIP-368). 2:
flexible. Behind SaslHandshake 0 the messages come and go without headers, and a refusal is no
answer at all.
"""

from typing import Final

from appliance.authorization.apis import declared
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, Handler, Host, Login
from appliance.ring.messages import Message


def take_message(host: Host, x: Exchange) -> None:
    _ask(host, x, bytes(gather.decode(host, x).auth_bytes))


def _begin_bare(host: Host, x: Exchange) -> None:
    _ask(host, x, bytes(host.memory[x.position : x.end]))


def _ask(host: Host, x: Exchange, message: bytes) -> None:
    login = host.authenticate(x, message)
    if login is None:
        return
    x.state = login
    if not login.code or not host.hold_back(x):
        x.handler.complete(host, x, 0, None, b"")


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    login: Login = x.state
    values = {
        "error_code": login.code,
        "error_message": login.text or "",
        "auth_bytes": login.message,
    }
    if x.version >= 1:
        values["session_lifetime"] = login.lifetime_ms
    gather.reply(host, x, values)
    host.settle_login(x, login)


def _complete_bare(
    host: Host, x: Exchange, index: int, message: Message | None, payload: bytes
) -> None:
    login: Login = x.state
    if login.code:
        host.hang_up(x, login.text or "refused")
        return
    host.finish_bare(x, login.message)
    host.settle_login(x, login)


HANDLER: Final = Handler(*declared(36), take_message, complete)
BARE: Final = Handler(*declared(36), _begin_bare, _complete_bare)
"""Of a message without headers."""
