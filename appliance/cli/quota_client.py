"""What the quota commands ask a broker: DescribeClientQuotas (48) and AlterClientQuotas (49)."""

from typing import Any, Final

from appliance.base import errors
from appliance.cli.exits import Failure
from appliance.cli.link import Link, name_of_code
from appliance.cli.plain_request import ask
from appliance.quotas.limits import USAGE, Entity

_DESCRIBE: Final = 48
_ALTER: Final = 49
_VERSION: Final = 1
_EXACT, _DEFAULT, _ANY = range(3)

Quotas = dict[Entity, dict[str, float]]


def all_quotas(link: Link) -> Quotas:
    """Every entity that has quotas."""
    return dict(_described(link, []))


def own_quotas(link: Link, entity: Entity) -> dict[str, float]:
    """The quotas of exactly this entity."""
    return all_quotas(link).get(entity, {})


def usage_now(link: Link) -> list[tuple[dict[str, str], dict[str, float]]]:
    """(who and what, figures) of every quota in use. Raises Failure from a broker without it."""
    try:
        found = _described(link, [(USAGE, _ANY, None)])
    except Failure as failure:
        if failure.kafka_code not in (errors.UNSUPPORTED_VERSION, errors.INVALID_REQUEST):
            raise
        failure.message = "this broker does not tell how much of a quota is used"
        failure.hint = "Apache Kafka shows it in its metrics (JMX) only"
        raise
    return [({kind: name or "" for kind, name in entity}, row) for entity, row in found]


def alter(link: Link, entity: Entity, changes: dict[str, float | None], dry_run: bool) -> None:
    """Set quotas of an entity; None takes one away. Raises Failure with the broker's reason."""
    operations = [
        {"key": key, "value": value or 0.0, "remove": value is None}
        for key, value in changes.items()
    ]
    parts = [{"entity_type": kind, "entity_name": name} for kind, name in entity]
    entries = [{"entity": parts, "ops": operations}]
    answer = ask(link, _ALTER, _VERSION, {"entries": entries, "validate_only": dry_run})
    for entry in answer.entries:
        _check(entry)


def _described(
    link: Link, components: list[tuple[str, int, str | None]]
) -> list[tuple[Entity, dict[str, float]]]:
    rows = [
        {"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components
    ]
    answer = ask(link, _DESCRIBE, _VERSION, {"components": rows, "strict": False})
    _check(answer)
    return [
        (
            tuple(sorted(((part.entity_type, part.entity_name) for part in entry.entity), key=str)),
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries or ()
    ]


def _check(answer: Any) -> None:
    code = int(answer.error_code)
    if code != errors.NONE:
        name = name_of_code(code)
        raise Failure(answer.error_message or name, name=name, kafka_code=code)
