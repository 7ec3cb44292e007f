"""Which limit holds for a client: Kafka's order of precedence over the entities with quotas.

Invariant: for each kind of quota the most specific entity that has this kind wins, whatever the
others say. Clients that share an entity's limit share a meter, except that a default counts for
each of its users or client ids on its own. Made anew from the image whenever a quota has changed.
"""

from collections.abc import Mapping
from typing import Final

from appliance.base.addresses import plain_address
from appliance.base.dataclass import dataclass

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
MUTATION: Final = "controller_mutation_rate"
CONNECTION: Final = "connection_creation_rate"
ARRIVAL: Final = "max.connection.creation.rate"
"""Not a quota but a setting of the broker; it is counted in the same way."""

USAGE: Final = "penstock-usage"
"""The entity type by which DescribeClientQuotas tells how much of the quotas is used."""

KINDS: Final = (PRODUCE, FETCH, REQUEST, MUTATION, CONNECTION, ARRIVAL)

Entity = tuple[tuple[str, str | None], ...]
"""(type, name or None for the default) pairs, sorted by type, as the metadata image has them."""


@dataclass(slots=True, frozen=True)
class Limit:
    """The limit of one client. meter: (user, client id) it is counted under, "" for all of them.

    level: where the limit is configured; `entity_of` tells the entity.
    """

    bound: float
    meter: tuple[str, str]
    level: int


class Limits:
    """The quotas of one kind, ready to be asked."""

    __slots__ = ("_of",)

    def __init__(self, kind: str, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        self._of = {_plain(entity): keys[kind] for entity, keys in quotas.items() if kind in keys}

    def __bool__(self) -> bool:
        return bool(self._of)

    def of(self, user: str, client_id: str) -> Limit | None:
        """The limit for requests of this user with this client id; None for no limit."""
        for level, (by_client, by_user) in enumerate(_LEVELS):
            bound = self._of.get(_entity(by_client, by_user, user, client_id))
            if bound is not None:
                meter = (user if by_user else "", client_id if by_client else "")
                return Limit(bound, meter, level)
        return None

    def of_ip(self, address: str) -> Limit | None:
        """The limit for connections from this address: its own, else the default one."""
        for level, name in ((_IP_LEVEL, address), (_IP_LEVEL + 1, None)):
            bound = self._of.get(((IP, name),))
            if bound is not None:
                return Limit(bound, (address, ""), level)
        return None

    def at(self, entity: Entity) -> float | None:
        """Returns the limit configured for exactly this entity."""
        return self._of.get(_plain(entity))


def _plain(entity: Entity) -> Entity:
    """The same entity with one form of its address."""
    return tuple(
        (kind, plain_address(name) if kind == IP and name else name) for kind, name in entity
    )


def entities_of(user: str, client_id: str) -> tuple[Entity, ...]:
    """The entities whose limit can hold for requests of this user with this client id, the
    strongest first (KIP-55): of those that have a quota of a kind, the first one's holds."""
    return tuple(_entity(*level, user, client_id) for level in _LEVELS)


def entities_of_ip(address: str) -> tuple[Entity, ...]:
    """The same for connections from an address (KIP-612)."""
    return (((IP, address),), ((IP, None),))


def entity_of(level: int, user: str, client_id: str) -> Entity:
    """The entity that holds a limit, from its level and the names that its meter counts for."""
    if level >= _IP_LEVEL:
        return ((IP, user if level == _IP_LEVEL else None),)
    return _entity(*_LEVELS[level], user, client_id)


def entity_text(entity: Entity) -> str:
    """For people: `user=alice client-id=<default>`."""
    return " ".join(f"{kind}={'<default>' if name is None else name}" for kind, name in entity)


def _entity(by_client: int, by_user: int, user: str, client_id: str) -> Entity:
    parts: list[tuple[str, str | None]] = []
    if by_client:
        parts.append((CLIENT_ID, client_id if by_client == _EXACT else None))
    if by_user:
        parts.append((USER, user if by_user == _EXACT else None))
    return tuple(parts)


_NOT, _EXACT, _DEFAULT = range(3)
_LEVELS: Final = (
    (_EXACT, _EXACT),
    (_DEFAULT, _EXACT),
    (_NOT, _EXACT),
    (_EXACT, _DEFAULT),
    (_DEFAULT, _DEFAULT),
    (_NOT, _DEFAULT),
    (_EXACT, _NOT),
    (_DEFAULT, _NOT),
)
"""How (client id, user) are named by an entity, the strongest first."""
_IP_LEVEL: Final = len(_LEVELS)
