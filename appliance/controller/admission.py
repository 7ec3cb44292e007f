"""Admission of nodes: with `penstock.join=invited` only known nodes, and nodes with the token of an
invitation, once, may join.

Invariant: the record that spends a token comes with the registration that it let in.
"""

import hmac
from collections.abc import Collection
from typing import Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.invitations import INVITATIONS, INVITED, JOIN, Invitation, hashed, parse
from appliance.controller.decision import Record, Situation
from appliance.metadata.effective import broker_config
from appliance.metadata.image import BROKER
from appliance.wire import kraft_records as kraft

_OWN: Final = (JOIN, INVITATIONS)


def admitted(situation: Situation, broker_id: int, token: str | None, now_ms: int) -> list[Record]:
    """Returns the records that accompany a broker's registration. A known broker that replaces a
    lost one needs no token, and spends the one that it has. now_ms: since 1970. Raises PeerError:
    CLUSTER_AUTHORIZATION_FAILED without a token, DELEGATION_TOKEN_NOT_FOUND for one that is used or
    never was, DELEGATION_TOKEN_OWNER_MISMATCH for one of another node, DELEGATION_TOKEN_EXPIRED."""
    if not _only_invited(situation):
        return []
    there = _invitations(situation)
    if _known(situation, broker_id):
        its = "" if token is None else hashed(token)
        spends = any((one.node_id, one.hashed) == (broker_id, its) for one in there)
        return [_spent(situation, broker_id, now_ms)] if spends else []
    if token is None:
        raise PeerError(errors.CLUSTER_AUTHORIZATION_FAILED, "only who is invited joins")
    given = hashed(token)
    found = [one for one in there if hmac.compare_digest(one.hashed, given)]
    if not found:
        raise PeerError(errors.DELEGATION_TOKEN_NOT_FOUND, "the token is used, or never was")
    if found[0].node_id != broker_id:
        text = f"the token is for node {found[0].node_id}"
        raise PeerError(errors.DELEGATION_TOKEN_OWNER_MISMATCH, text)
    if found[0].until_ms <= now_ms:
        raise PeerError(errors.DELEGATION_TOKEN_EXPIRED, "the token has expired")
    return [_spent(situation, broker_id, now_ms)]


def _spent(situation: Situation, broker_id: int, now_ms: int) -> Record:
    """No invitation of this node is left, nor one that has expired."""
    there = _invitations(situation)
    left = [one for one in there if one.node_id != broker_id and one.until_ms > now_ms]
    return kraft.ConfigRecord(
        resource_type=BROKER,
        resource_name="",
        name=INVITATIONS,
        value=",".join(map(str, left)) or None,
    )


def check_controller(situation: Situation, node_id: int, voters: Collection[int]) -> None:
    """Checks that a node may register as a controller. voters: the current ones. Raises
    PeerError."""
    if node_id not in voters and not _known(situation, node_id) and _only_invited(situation):
        raise PeerError(errors.CLUSTER_AUTHORIZATION_FAILED, _FIRST)


def check_voter(situation: Situation, node_id: int, directory: bytes) -> None:
    """Checks that a node may vote: its directory id belongs to an admitted broker. Raises
    PeerError."""
    if not _only_invited(situation):
        return
    broker = situation.image.brokers.get(node_id)
    if broker is None or directory not in broker.log_dirs:
        raise PeerError(errors.CLUSTER_AUTHORIZATION_FAILED, _FIRST)


def check_here(here: bool, keys: Collection[str]) -> None:
    """Checks that an invitation comes from a client on a node's own host, over loopback. Raises
    PeerError."""
    for key in keys if not here else ():
        if key in _OWN:
            raise PeerError(
                errors.CLUSTER_AUTHORIZATION_FAILED,
                f"{key} is only changed on the host of a node, over localhost",
            )


_FIRST: Final = (
    "This cluster only takes nodes that are invited (penstock.join=invited), and this one is not"
    " registered: penstock cluster invite prints how it is started"
)


def _known(situation: Situation, node_id: int) -> bool:
    static = [one.node_id for one in situation.config.voters()]
    return node_id in (situation.node_id, *static) or node_id in situation.image.brokers


def _only_invited(situation: Situation) -> bool:
    return broker_config(situation.image, situation.config).text(JOIN) == INVITED


def _invitations(situation: Situation) -> list[Invitation]:
    return parse(broker_config(situation.image, situation.config).list(INVITATIONS))
