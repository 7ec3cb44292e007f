"""Client quotas: describe those there are, alter them (KIP-546, KIP-612, KIP-599).

Invariant: what is written names a known kind for its entity and has a value above 0. The records of
one entity come together or not at all; what does not change gives no record.
"""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from math import isfinite
from typing import Final

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.errors import PeerError
from appliance.controller.decision import OK, Record, Result, duplicates, failed
from appliance.metadata.image import Entity, MetadataImage
from appliance.wire import kraft_records as kraft

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

_LONG: Final = float(2**63 - 1)
_INT: Final = float(2**31 - 1)
_OF_CLIENTS: Final[dict[str, float | None]] = {
    "producer_byte_rate": _LONG,
    "consumer_byte_rate": _LONG,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_OF_IPS: Final[dict[str, float | None]] = {"connection_creation_rate": _INT}
"""Kinds, and the greatest value of those that are whole numbers."""
_EPSILON: Final = 1e-6

EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2

Parts = Sequence[tuple[str, str | None]]
"""(type, name or None for the default) as a client names an entity."""


@dataclass(slots=True, frozen=True)
class QuotaOperation:
    """Set a kind to a value, or remove it."""

    key: str
    value: float
    remove: bool


@dataclass(slots=True, frozen=True)
class Component:
    """A component that an entity must match: EXACT (match is its name), DEFAULT or ANY of this
    type."""

    entity_type: str
    match_type: int
    match: str | None


def alter_quotas(
    image: MetadataImage, wanted: Sequence[tuple[Parts, Sequence[QuotaOperation]]]
) -> tuple[list[Record], list[Result]]:
    """Records, and how it went for each entity, in the order asked for."""
    records: list[Record] = []
    results: list[Result] = []
    twice = duplicates([tuple(sorted(parts, key=str)) for parts, _ in wanted])
    for parts, operations in wanted:
        try:
            if tuple(sorted(parts, key=str)) in twice:
                raise _refused(f"{_again(parts)}; name each entity once.")
            records += _alter(image, parts, operations)
        except PeerError as error:
            results.append(failed(error))
        else:
            results.append(OK)
    return records, results


def _alter(
    image: MetadataImage, parts: Parts, operations: Sequence[QuotaOperation]
) -> list[Record]:
    kinds = _check_entity(parts)
    for key in duplicates([one.key for one in operations]):
        raise _refused(f"{_again(parts)}: {key[:100]} comes twice; name it once.")
    entity: Entity = tuple(sorted(parts, key=str))
    old = image.quotas.get(entity, {})
    named = tuple(kraft.EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
    records: list[Record] = []
    for one in operations:
        if one.key not in kinds:
            raise _refused(
                f"Invalid configuration key {one.key[:100]}; for this entity: {', '.join(kinds)}."
            )
        if one.remove:
            changes, value = one.key in old, 0.0
        else:
            _check_value(one, kinds[one.key])
            changes, value = old.get(one.key) != one.value, one.value
        if changes:
            records.append(
                kraft.ClientQuotaRecord(entity=named, key=one.key, value=value, remove=one.remove)
            )
    return records


def _check_entity(parts: Parts) -> Mapping[str, float | None]:
    """The kinds that an entity of these parts may have. Raises PeerError."""
    if not parts:
        raise _refused("Invalid empty client quota entity.")
    types = [kind for kind, _ in parts]
    for kind, name in parts:
        if kind not in (USER, CLIENT_ID, IP):
            raise _refused(
                f"Unhandled client quota entity type: {kind[:100]}; types are user, client-id, ip."
            )
        if name == "":
            raise _refused(f"Empty {kind} not supported; for the default the name is null.")
    if duplicates(types):
        raise _refused("Invalid client quota entity: a type comes twice.")
    if IP not in types:
        return _OF_CLIENTS
    if len(types) > 1:
        raise _refused(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or"
            " ClientId: it stands alone."
        )
    _check_address(parts[0][1])
    return _OF_IPS


def _check_address(name: str | None) -> None:
    if name is None:
        return
    try:
        ip_address(name)
    except ValueError:
        text = f"{name[:100]} is not a valid IP or resolvable host. Names are not looked up here."
        raise _refused(text) from None


def _check_value(one: QuotaOperation, greatest: float | None) -> None:
    if not isfinite(one.value) or one.value <= 0:
        raise _refused(f"Quota {one.key} must be greater than 0.")
    if greatest is None:
        return
    if one.value > greatest:
        raise _refused(f"Quota {one.key} is too large: the most is {int(greatest)}.")
    if abs(one.value - round(one.value)) > _EPSILON:
        raise _refused(f"{one.key} cannot be a fractional value. It is {one.value}.")


def describe_quotas(
    image: MetadataImage, components: Sequence[Component], strict: bool
) -> list[tuple[Entity, Mapping[str, float]]]:
    """Entities that have every component (strict: and nothing else), with their quotas. Raises
    PeerError."""
    _check_filter(components)
    return [
        (entity, quotas)
        for entity, quotas in sorted(image.quotas.items(), key=str)
        if _matches(dict(entity), components, strict)
    ]


def _matches(entity: dict[str, str | None], components: Sequence[Component], strict: bool) -> bool:
    if strict and len(entity) != len(components):
        return False
    for one in components:
        if one.entity_type not in entity:
            return False
        name = entity[one.entity_type]
        if one.match_type == EXACT and name != one.match:
            return False
        if one.match_type == DEFAULT and name is not None:
            return False
    return True


def _check_filter(components: Sequence[Component]) -> None:
    types = [one.entity_type for one in components]
    for kind in duplicates(types):
        raise _refused(f"Entity type {kind[:100]} cannot appear more than once in the filter.")
    for one in components:
        if one.entity_type == "":
            raise _refused("Invalid empty entity type.")
        if one.entity_type not in (USER, CLIENT_ID, IP):
            raise PeerError(
                errors.UNSUPPORTED_VERSION, f"Unsupported entity type {one.entity_type[:100]}"
            )
        if one.match_type not in (EXACT, DEFAULT, ANY):
            raise _refused(f"Unknown match type {one.match_type}; types are 0, 1 and 2.")
        if one.match is None and one.match_type == EXACT:
            raise _refused("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if one.match is not None and one.match_type != EXACT:
            name = "DEFAULT" if one.match_type == DEFAULT else "SPECIFIED"
            raise _refused(
                f"Request specified MATCH_TYPE_{name}, but also specified a match string."
            )
    if IP in types and len(types) > 1:
        raise _refused(
            "Invalid entity filter component combination. IP filter component should not be used"
            " with user or clientId filter component."
        )


def _again(parts: Parts) -> str:
    """Kafka's words for an entity or one of its kinds that comes more than once."""
    named = ", ".join(
        f"{kind[:100]}={'null' if name is None else name[:249]}" for kind, name in parts
    )
    return f"Ignoring duplicate entity ClientQuotaEntity(entries={{{named}}})"


def _refused(text: str) -> PeerError:
    return PeerError(errors.INVALID_REQUEST, text)
