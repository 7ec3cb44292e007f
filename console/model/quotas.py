"""Quotas: which are set, which hold for a client, how much is used, and changing them; by
DescribeClientQuotas (API key 48) and AlterClientQuotas (49)."""

from dataclasses import dataclass
from typing import Final

from appliance.base import errors
from appliance.quotas.limits import (
    CLIENT_ID,
    CONNECTION,
    IP,
    USAGE,
    USER,
    Entity,
    Limits,
    entity_of,
)
from console.model.failure import Failure
from console.model.link import Link
from console.model.plain_request import ask
from console.model.refusals import check

_DESCRIBE: Final = 48
_ALTER: Final = 49
_VERSION: Final = 1
_EXACT, _DEFAULT, _ANY = range(3)

_ANYBODY: Final = "ANONYMOUS"
"""The user of everybody who does not log in."""

Quotas = dict[Entity, dict[str, float]]
"""Entity → kind of quota → its value: bytes/s, percent of a CPU, or so many per second."""


@dataclass(slots=True, frozen=True)
class Usage:
    """How much of a quota is used. user, client_id, ip: who is counted together, None for what does
    not count. limit, rate: in the quota's unit. used: 1.0 when all of it. throttle_ms: how long who
    asks now would wait; throttled: how often somebody had to. set_for: whose limit it is."""

    quota: str
    user: str | None
    client_id: str | None
    ip: str | None
    limit: float
    rate: float
    used: float
    throttle_ms: int
    throttled: int
    set_for: str


@dataclass(slots=True, frozen=True)
class Effect:
    """The quota of a kind that holds for a client, and whose it is; value is None without one."""

    kind: str
    value: float | None
    holder: Entity


@dataclass(slots=True, frozen=True)
class Change:
    """A quota before and after; None: there is none."""

    kind: str
    before: float | None
    after: float | None


def all_quotas(link: Link) -> Quotas:
    """Every entity that has quotas."""
    return dict(_described(link, []))


def own_quotas(link: Link, entity: Entity) -> dict[str, float]:
    """The quotas of exactly this entity."""
    return all_quotas(link).get(entity, {})


def in_effect(link: Link, entity: Entity, kinds: tuple[str, ...]) -> list[Effect]:
    """Of each kind that can hold for the entity, which quota does. For a default its own ones."""
    quotas = all_quotas(link)
    named = dict(entity)
    found = []
    for kind in kinds:
        if (kind == CONNECTION) != (IP in named):
            continue
        if None in named.values():
            found.append(Effect(kind, quotas.get(entity, {}).get(kind), entity))
        else:
            found.append(_effect(quotas, kind, {k: name or "" for k, name in named.items()}))
    return found


def _effect(quotas: Quotas, kind: str, named: dict[str, str]) -> Effect:
    limits = Limits(kind, quotas)
    user, client_id = named.get(USER, _ANYBODY), named.get(CLIENT_ID, "")
    if kind == CONNECTION:
        user, client_id = named[IP], ""
        limit = limits.of_ip(user)
    else:
        limit = limits.of(user, client_id)
    if limit is None:
        return Effect(kind, None, ())
    return Effect(kind, limit.bound, entity_of(limit.level, user, client_id))


def usage_now(link: Link) -> list[Usage]:
    """Every quota in use, the fullest first. Raises Failure from a broker that does not tell."""
    try:
        found = _described(link, [(USAGE, _ANY, None)])
    except Failure as failure:
        if failure.kafka_code not in (errors.UNSUPPORTED_VERSION, errors.INVALID_REQUEST):
            raise
        failure.message = "this broker does not tell how much of a quota is used"
        failure.hint = "Apache Kafka shows it in its metrics (JMX) only"
        raise
    rows = [_usage({kind: name or "" for kind, name in entity}, row) for entity, row in found]
    return sorted(rows, key=lambda one: -one.used)


def _usage(who: dict[str, str], figures: dict[str, float]) -> Usage:
    return Usage(
        quota=who["quota"],
        user=who.get(USER),
        client_id=who.get(CLIENT_ID),
        ip=who.get(IP),
        limit=figures["limit"],
        rate=figures["rate"],
        used=figures["used"],
        throttle_ms=int(figures["throttle-ms"]),
        throttled=int(figures["throttled"]),
        set_for=who["set-for"],
    )


def change(
    link: Link, entity: Entity, changes: dict[str, float | None], *, dry_run: bool
) -> list[Change]:
    """Set quotas of an entity, None takes one away; with dry_run the broker only checks it. By
    kind. Raises Failure."""
    before = own_quotas(link, entity)
    plan = [Change(kind, before.get(kind), value) for kind, value in sorted(changes.items())]
    real = {one.kind: one.after for one in plan if one.before != one.after}
    _alter(link, entity, changes, dry_run=True)
    if real and not dry_run:
        _alter(link, entity, real, dry_run=False)
    return plan


def _alter(link: Link, entity: Entity, changes: dict[str, float | None], dry_run: bool) -> None:
    operations = [
        {"key": key, "value": value or 0.0, "remove": value is None}
        for key, value in changes.items()
    ]
    parts = [{"entity_type": kind, "entity_name": name} for kind, name in entity]
    entries = [{"entity": parts, "ops": operations}]
    answer = ask(link, _ALTER, _VERSION, {"entries": entries, "validate_only": dry_run})
    for entry in answer.entries:
        check(int(entry.error_code), entry.error_message, "quotas")


def _described(
    link: Link, components: list[tuple[str, int, str | None]]
) -> list[tuple[Entity, dict[str, float]]]:
    rows = [
        {"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components
    ]
    answer = ask(link, _DESCRIBE, _VERSION, {"components": rows, "strict": False})
    check(int(answer.error_code), answer.error_message, "quotas")
    return [
        (
            tuple(sorted(((part.entity_type, part.entity_name) for part in entry.entity), key=str)),
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries or ()
    ]
