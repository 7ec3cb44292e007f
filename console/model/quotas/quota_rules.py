"""Which quota holds for a client, and why: the entities that can have one for it, in Kafka's order
of precedence, with what each of them says.

Pure: it is given the quotas. The appliance decides by `appliance/quotas/limits.py`, Apache Kafka by
ClientQuotaManager; both go by the order of KIP-55, so the answer is the same of any broker.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.quotas.limits import (
    CLIENT_ID,
    CONNECTION,
    IP,
    USER,
    Entity,
    Limits,
    entities_of,
    entities_of_ip,
)
from console.model.asking.failure import usage

ANYBODY: Final = "ANONYMOUS"
"""The user of everybody who does not log in."""

Quotas = dict[Entity, dict[str, float]]
"""Entity → kind of quota → its value: bytes/s, percent of a CPU, or so many per second."""

_KEYS: Final = {USER: USER, CLIENT_ID: CLIENT_ID, "client": CLIENT_ID, IP: IP}

Changes = Mapping[str, float | None]
"""Kind of quota → its new value, None to take it away."""


@dataclass(slots=True, frozen=True)
class Client:
    """A client by user and client id; or by address, whose connections are counted before the user
    is known.
    """

    user: str = ANYBODY
    client_id: str = ""
    ip: str = ""

    @property
    def text(self) -> str:
        """As it is typed and read back by `client_of`: user=alice client-id=loader, ip=10.0.0.7."""
        if self.ip:
            return f"{IP}={shlex.quote(self.ip)}"
        named = {USER: self.user if self.user != ANYBODY else "", CLIENT_ID: self.client_id}
        told = [f"{kind}={shlex.quote(name)}" for kind, name in named.items() if name]
        return " ".join(told) or f"{USER}={ANYBODY}"

    @property
    def entity(self) -> Entity:
        """The one that is named after it and nobody else."""
        if self.ip:
            return ((IP, self.ip),)
        named = {CLIENT_ID: self.client_id, USER: self.user if self.user != ANYBODY else ""}
        found = tuple((kind, name) for kind, name in named.items() if name)
        return found or ((USER, ANYBODY),)


@dataclass(slots=True, frozen=True)
class Rule:
    """The value of one entity for one kind of quota. rank: 1 is the strongest. value: None when it
    has none. holds: it is the one that applies. together: the clients counted against it as one, in
    words.
    """

    kind: str
    rank: int
    entity: Entity
    value: float | None
    holds: bool
    together: str


def client_of(text: str) -> Client:
    """`user=alice client-id=loader`, `ip=10.0.0.7`; a word alone is a client id. Names may be
    quoted as for a shell. Raises Failure (USAGE)."""
    try:
        words = shlex.split(text)
    except ValueError as wrong:
        raise usage(f"{text}: {wrong}") from None
    named: dict[str, str] = {}
    for word in words:
        kind, sign, name = word.partition("=")
        if not sign or kind not in _KEYS:
            kind, name = CLIENT_ID, word
        if not name or _KEYS[kind] in named:
            raise usage(f"{text}: {kind} is named {'twice' if name else 'without a name'}")
        named[_KEYS[kind]] = name
    if not named:
        raise usage("whose quota?", "for example user=alice client-id=loader, or ip=10.0.0.7")
    if IP in named and len(named) > 1:
        raise usage(
            "an address cannot be combined: connections have neither user nor client id yet"
        )
    return Client(named.get(USER, ANYBODY), named.get(CLIENT_ID, ""), named.get(IP, ""))


def flags(entity: Entity) -> tuple[str, ...]:
    """The words of a command that name an entity: --user alice --default client-id."""
    return tuple(
        word
        for kind, name in entity
        for word in (("--default", kind) if name is None else (f"--{kind}", name))
    )


def explained(quotas: Quotas, client: Client, kinds: Iterable[str]) -> list[Rule]:
    """For each kind that can apply to the client, every entity that could set it, the strongest
    first: at most one of a kind applies.
    """
    found = []
    for kind in kinds:
        if (kind == CONNECTION) != bool(client.ip):
            continue
        limits, is_over = Limits(kind, quotas), False
        for rank, entity in enumerate(_order(client), 1):
            if "" in dict(entity).values():
                continue  # who says no client id is named by none
            value = limits.at(entity)
            holds = value is not None and not is_over
            is_over = is_over or holds
            found.append(Rule(kind, rank, entity, value, holds, together(entity)))
    return found


def after(quotas: Quotas, entity: Entity, changes: Changes) -> Quotas:
    """The quotas as they would be when those of one entity are changed."""
    merged: dict[str, float | None] = {**quotas.get(entity, {}), **changes}
    kept = {kind: value for kind, value in merged.items() if value is not None}
    return {**quotas, entity: kept}


def _order(client: Client) -> tuple[Entity, ...]:
    if client.ip:
        return entities_of_ip(client.ip)
    return entities_of(client.user, client.client_id)


def together(entity: Entity) -> str:
    """The clients that share a limit of this entity: `each client id of user alice` …"""
    names = dict(entity)
    if IP in names:
        return _each(IP, names[IP])
    if CLIENT_ID not in names:
        return f"{_each(USER, names[USER])} with all its client ids"
    client = _each(CLIENT_ID, names[CLIENT_ID])
    return f"{client} of {_each(USER, names[USER])}" if USER in names else f"{client} of all users"


def _each(kind: str, name: str | None) -> str:
    words = {USER: "user", CLIENT_ID: "client id", IP: "address"}[kind]
    return f"each {words}" if name is None else f"{words} {name}"
