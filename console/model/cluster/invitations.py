"""Tokens by which a new node is let in, once: made for `penstock cluster invite`, looked at by
`penstock up --join` before anything is written.

They stand as hashes in the cluster's dynamic settings (IncrementalAlterConfigs); the controller
spends one with the registration that it lets in.
"""

import secrets
import time
from typing import Any, Final

from appliance.config.invitations import (
    INVITATIONS,
    INVITED,
    JOIN,
    TOKEN_BYTES,
    Invitation,
    hashed,
    parse,
)
from console.model.asking.configs import APPEND, BROKER, SET, SUBTRACT, values_of
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.cluster.nodes import read_nodes

VALID_S: Final = 3600
_ALTER: Final = (44, 1)
_ROUTE: Final = (
    "controller.listener.names", "inter.broker.listener.name", "listener.security.protocol.map",
    "security.inter.broker.protocol",
)  # fmt: skip
"""Settings that say how nodes reach one another."""
_REMEDY: Final = "penstock cluster invite, on the host of one of its nodes, prints another line"


def new_token(link: Link, number: int, valid_s: float) -> str:
    """A token for this node. From the first one on only who is invited joins, unless somebody has
    said otherwise. Raises Failure."""
    join, there = _told(link)
    now_ms = time.time_ns() // 1_000_000
    gone = [str(one) for one in there if one.until_ms <= now_ms]
    if gone:
        _alter(link, [(INVITATIONS, SUBTRACT, ",".join(gone))])
    token = secrets.token_urlsafe(TOKEN_BYTES)
    one = Invitation(number, hashed(token), now_ms + round(valid_s * 1000))
    changes = [(INVITATIONS, APPEND, str(one))]
    if join is None:
        changes.append((JOIN, SET, INVITED))
    _alter(link, changes)
    return token


def only_invited(link: Link) -> bool:
    """True if a new node needs a token. Raises Failure."""
    return _told(link)[0] == INVITED


def invited(link: Link, token: str | None, number: int | None) -> int | None:
    """The number of the node that this token is for; without one that which was given. Raises
    Failure where the controller would refuse the node."""
    join, there = _told(link)
    if token is None:
        if join == INVITED:
            raise Failure(f"the cluster of {link.bootstrap} admits only invited nodes", _REMEDY)
        return number
    its = hashed(token)
    found = next((one for one in there if one.hashed == its), None)
    if found is None:
        raise Failure("the token was used already, or never issued", _REMEDY)
    if found.until_ms <= time.time_ns() // 1_000_000:
        raise Failure("the token has expired", _REMEDY)
    if number not in (None, found.node_id):
        raise usage(f"the token is for node {found.node_id}, not for node {number}")
    return found.node_id


def shows_certificates(link: Link) -> bool:
    """True if nodes reach controllers by TLS, so that a new one needs a certificate. Raises
    Failure."""
    from appliance.config import between_nodes
    from appliance.config.broker import BrokerConfig

    number = next((one for one, node in read_nodes(link).all.items() if node.lives), None)
    told = values_of(link, BROKER, (str(number),), _ROUTE).get(str(number), {})
    config = BrokerConfig.of({key: value for key, value in told.items() if value})
    return between_nodes.to_controllers(config).protocol == "SSL"


def _told(link: Link) -> tuple[str | None, list[Invitation]]:
    told = values_of(link, BROKER, ("",), (JOIN, INVITATIONS)).get("", {})
    texts = (told.get(INVITATIONS) or "").split(",")
    return told.get(JOIN), parse(tuple(one for one in texts if one))


def _alter(link: Link, changes: list[tuple[str, int, str]]) -> None:
    configs = [{"name": key, "config_operation": how, "value": text} for key, how, text in changes]
    resource: dict[str, Any] = {"resource_type": BROKER, "resource_name": "", "configs": configs}
    answer = ask_server(link, *_ALTER, {"resources": [resource], "validate_only": False})
    for one in answer.responses:
        check(int(one.error_code), one.error_message, "the invitation")
