"""Quotas: which are set, which hold for a client, how much is used, and changing them; by
DescribeClientQuotas (API key 48) and AlterClientQuotas (49)."""

from dataclasses import dataclass
from typing import Final

from appliance.base import errors
from appliance.quotas.limits import CLIENT_ID, CONNECTION, IP, USAGE, USER, Entity, entity_text
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.quotas.quota_rules import ANYBODY, Client, Quotas, Rule, explained

_DESCRIBE: Final = 48
_ALTER: Final = 49
_VERSION: Final = 1
_EXACT, _DEFAULT, _ANY = range(3)
_NOT_TOLD: Final = (errors.UNSUPPORTED_VERSION, errors.INVALID_REQUEST)


@dataclass(slots=True, frozen=True)
class Usage:
    """How much of a quota is used. user, client_id, ip: who is counted together, None for what does
    not count. limit, rate: in the quota's unit. used: 1.0 when all of it. throttle_ms: how long who
    asks now would wait; throttled: how often somebody had to. last_throttle_ms: as the last answer
    told it; throttled_for_ms: for how long one pause has come after the other, 0 when there is
    none. set_for: whose limit it is."""

    quota: str
    user: str | None
    client_id: str | None
    ip: str | None
    limit: float
    rate: float
    used: float
    throttle_ms: int
    throttled: int
    last_throttle_ms: int
    throttled_for_ms: int
    set_for: str


@dataclass(slots=True, frozen=True)
class Effect:
    """The quota of a kind that holds for a client, and whose it is; value is None without one."""

    kind: str
    value: float | None = None
    holder: Entity = ()


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
    """The quota in effect of each kind that can apply to the entity. For a default its own ones."""
    quotas = all_quotas(link)
    named = dict(entity)
    found = []
    for kind in kinds:
        if (kind == CONNECTION) != (IP in named):
            continue
        if None in named.values():
            found.append(Effect(kind, quotas.get(entity, {}).get(kind), entity))
            continue
        client = Client(named.get(USER) or ANYBODY, named.get(CLIENT_ID) or "", named.get(IP) or "")
        rules = [one for one in explained(quotas, client, (kind,)) if one.holds]
        found.append(Effect(kind, rules[0].value, rules[0].entity) if rules else Effect(kind))
    return found


@dataclass(slots=True, frozen=True)
class Seen:
    """Everything about quotas at one moment. untold: why it is not known how much is used, None
    when it is."""

    quotas: Quotas
    usage: tuple[Usage, ...]
    untold: Failure | None = None


def read_quotas(link: Link) -> Seen:
    """Reads the quotas, and their use where the broker reports it. Raises Failure."""
    quotas = all_quotas(link)
    try:
        return Seen(quotas, tuple(usage_now(link)))
    except Failure as failure:
        if failure.kafka_code not in _NOT_TOLD:
            raise
        return Seen(quotas, (), failure)


def client(one: Usage) -> Client | None:
    """The client of a usage, None for all: a limit of the broker itself."""
    if not (one.user or one.client_id or one.ip):
        return None
    return Client(one.user or ANYBODY, one.client_id or "", one.ip or "")


def clients(seen: Seen) -> list[str]:
    """The clients that have used a quota, by the names that they are counted under, each once."""
    found = {one.text for usage in seen.usage if (one := client(usage)) is not None}
    return sorted(found)


def usage_of(seen: Seen, rule: Rule, who: Client) -> Usage | None:
    """How much of what a rule gives is used by those who are counted with this client; None when
    nothing was."""
    for one in seen.usage:
        if one.quota != rule.kind or one.set_for != entity_text(rule.entity):
            continue
        if who.ip:
            if one.ip == who.ip:
                return one
        elif (one.user or who.user, one.client_id or who.client_id) == (who.user, who.client_id):
            return one
    return None


def usage_now(link: Link) -> list[Usage]:
    """Every quota in use, the fullest first. Raises Failure from a broker that does not tell."""
    try:
        found = _described(link, [(USAGE, _ANY, None)])
    except Failure as failure:
        if failure.kafka_code not in _NOT_TOLD:
            raise
        failure.message = "this broker does not report the usage of quotas"
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
        last_throttle_ms=int(figures.get("last-throttle-ms", 0)),
        throttled_for_ms=int(figures.get("throttled-for-ms", 0)),
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
    answer = ask_server(link, _ALTER, _VERSION, {"entries": entries, "validate_only": dry_run})
    for entry in answer.entries:
        check(int(entry.error_code), entry.error_message, "quotas")


def _described(
    link: Link, components: list[tuple[str, int, str | None]]
) -> list[tuple[Entity, dict[str, float]]]:
    rows = [
        {"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components
    ]
    answer = ask_server(link, _DESCRIBE, _VERSION, {"components": rows, "strict": False})
    check(int(answer.error_code), answer.error_message, "quotas")
    return [
        (
            tuple(sorted(((part.entity_type, part.entity_name) for part in entry.entity), key=str)),
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries or ()
    ]
