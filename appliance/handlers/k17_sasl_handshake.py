"""SaslHandshake, API key 17, versions 0 and 1.

The client chooses a mechanism. 0: its messages come without Kafka's headers then, 1: as
SaslAuthenticate. Out of turn, or where nobody logs in, it is answered with ILLEGAL_SASL_STATE.
"""

from appliance.authorization.apis import declared
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, Handler, Host, Login
from appliance.ring.messages import Message


def choose_mechanism(host: Host, x: Exchange) -> None:
    code, mechanisms = host.greet(x, gather.decode(host, x).mechanism)
    x.state = {"error_code": code, "mechanisms": list(mechanisms)}
    if not code or not host.hold_back(x):
        gather.reply(host, x, x.state)


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    """The pause behind a refusal is over."""
    gather.reply(host, x, x.state)
    host.settle_login(x, Login(x.state["error_code"], None))


HANDLER = Handler(*declared(17), choose_mechanism, complete)
