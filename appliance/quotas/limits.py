"""Which limit holds for a client: Kafka's order of precedence over the entities with quotas.

Invariant: for each kind of quota the most specific entity that has this kind wins, whatever the
others say. Clients that share an entity's limit share a meter, except that a default counts for
each of its users or client ids on its own. Made anew from the image whenever a quota has changed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
MUTATION: Final = "controller_mutation_rate"
CONNECTION: Final = "connection_creation_rate"

KINDS: Final = (PRODUCE, FETCH, REQUEST, MUTATION, CONNECTION)

Entity = tuple[tuple[str, str | None], ...]
"""(type, name or None for the default) pairs, sorted by type, as the metadata image has them."""


@dataclass(slots=True, frozen=True)
class Limit:
    """What holds for one client. meter: (user, client id) it is counted under, "" for all of them.

    entity: where the limit is configured, for people.
    """

    bound: float
    meter: tuple[str, str]
    entity: Entity


class Limits:
    """The quotas of one kind, ready to be asked."""

    __slots__ = ("_of",)

    def __init__(self, kind: str, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        self._of = {entity: keys[kind] for entity, keys in quotas.items() if kind in keys}

    def __bool__(self) -> bool:
        return bool(self._of)

    def of(self, user: str, client_id: str) -> Limit | None:
        """The limit for requests of this user with this client id; None for no limit."""
        for entity, meter in _levels(user, client_id):
            bound = self._of.get(entity)
            if bound is not None:
                return Limit(bound, meter, entity)
        return None

    def of_ip(self, address: str) -> Limit | None:
        """The limit for connections from this address: its own, else the default one."""
        for name in (address, None):
            bound = self._of.get(((IP, name),))
            if bound is not None:
                return Limit(bound, (address, ""), ((IP, name),))
        return None


def _levels(user: str, client_id: str) -> Iterable[tuple[Entity, tuple[str, str]]]:
    """The eight levels, the strongest first, and under whose name each is counted."""
    both, by_user, by_client = (user, client_id), (user, ""), ("", client_id)
    yield ((CLIENT_ID, client_id), (USER, user)), both
    yield ((CLIENT_ID, None), (USER, user)), both
    yield ((USER, user),), by_user
    yield ((CLIENT_ID, client_id), (USER, None)), both
    yield ((CLIENT_ID, None), (USER, None)), both
    yield ((USER, None),), by_user
    yield ((CLIENT_ID, client_id),), by_client
    yield ((CLIENT_ID, None),), by_client
