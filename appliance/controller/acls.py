"""ACLs: which there are, make some, remove some (KIP-140, KIP-290, KIP-801).

Invariant: no two records say the same. A record is removed by its id; ids come by chance.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from appliance.authorization.operations import CLUSTER, CLUSTER_NAME
from appliance.authorization.standard import ALLOW, ANY_NAME, DENY, LITERAL, PREFIXED, AclRule
from appliance.authorization.words import (
    KINDS,
    OPERATIONS,
    PATTERNS,
    PERMISSIONS,
    word,
)
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.decision import OK, Record, Result, failed
from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft

ANY: Final = 1
MATCH: Final = 2
"""Of filters: ANY is everything; a pattern that is to MATCH concerns the name."""
MOST: Final = 10_000
"""Records of one request, as Kafka has it."""
COMPARISONS: Final = 1 << 19
"""Comparisons of filters with rules in one request: about 0.1 s of the controller's time."""
TOLD: Final = 4 * MOST
"""Rules that one answer names as removed: every filter names those that it matches."""


class AclFilter(NamedTuple):
    """As `AclRule`, with ANY for every kind, pattern, operation or permission and None for every
    name, principal or host."""

    kind: int
    pattern: int
    name: str | None
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @property
    def knows(self) -> bool:
        """False for numbers that are nothing."""
        words = (
            (self.kind, KINDS), (self.pattern, PATTERNS), (self.operation, OPERATIONS),
            (self.permission, PERMISSIONS),
        )  # fmt: skip
        return all(word(number, names) != "UNKNOWN" for number, names in words)

    def matches(self, rule: AclRule) -> bool:
        """True if it is about this rule."""
        return (
            self.kind in (ANY, rule.kind)
            and self.operation in (ANY, rule.operation)
            and self.permission in (ANY, rule.permission)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self._names(rule)
        )

    def _names(self, rule: AclRule) -> bool:
        if self.pattern not in (ANY, MATCH, rule.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern != MATCH:
            return self.name == rule.name
        if rule.pattern == PREFIXED:
            return self.name.startswith(rule.name)
        return rule.name in (self.name, ANY_NAME)


def rule_of(record: kraft.AccessControlEntryRecord) -> AclRule:
    """The rule of a record."""
    return AclRule(
        record.resource_type,
        record.pattern_type,
        record.resource_name,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def _record(rule_id: bytes, rule: AclRule) -> kraft.AccessControlEntryRecord:
    return kraft.AccessControlEntryRecord(
        id=rule_id,
        resource_type=rule.kind,
        resource_name=rule.name,
        pattern_type=rule.pattern,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


def rules(image: MetadataImage) -> Iterator[tuple[bytes, AclRule]]:
    """Every rule that there is, with its id."""
    for record in image.kept.values():
        if isinstance(record, kraft.AccessControlEntryRecord):
            yield record.id, rule_of(record)


def create(
    image: MetadataImage, wanted: Sequence[AclRule], new_id: Callable[[], bytes]
) -> tuple[list[Record], list[Result]]:
    """Records, and one result for each. What there is already is made."""
    names = {rule.name for rule in wanted}  # a look at each name is cheap beside making its rule
    there = {
        rule_of(one)
        for one in image.kept.values()
        if isinstance(one, kraft.AccessControlEntryRecord) and one.resource_name in names
    }
    records: list[Record] = []
    results: list[Result] = []
    for rule in wanted:
        try:
            _check(rule)
        except PeerError as error:
            results.append(failed(error))
            continue
        if rule not in there:
            there.add(rule)
            records.append(_record(new_id(), rule))
        results.append(OK)
    if len(records) > MOST:
        text = f"At most {MOST} ACLs are created by one request, not {len(records)}"
        return [], [Result(errors.INVALID_REQUEST, text)] * len(wanted)
    return records, results


def remove(
    image: MetadataImage, filters: Sequence[AclFilter]
) -> tuple[list[Record], list[tuple[Result, list[AclRule]]]]:
    """Records, and for each filter how it went and which rules it removes."""
    there = _Rules(image)
    gone: dict[bytes, None] = {}
    results: list[tuple[Result, list[AclRule]]] = []
    compared = told = 0
    for one in filters:
        some = there.candidates(one)
        compared += len(some)
        if why := _refusal(one, compared):
            results.append((Result(errors.INVALID_REQUEST, why), []))
            continue
        found = {key: rule for key, rule in some if one.matches(rule)}
        if len(gone) + sum(key not in gone for key in found) > MOST:
            why = f"Cannot remove more than {MOST} acls in a single delete operation."
        elif told + len(found) > TOLD:
            why = f"The answer would name more than {TOLD} ACLs; ask in several requests"
        if why:
            results.append((Result(errors.INVALID_REQUEST, why), []))
            continue
        told += len(found)
        gone.update(dict.fromkeys(found))
        results.append((OK, list(found.values())))
    return [kraft.RemoveAccessControlEntryRecord(id=key) for key in gone], results


def _refusal(one: AclFilter, compared: int) -> str:
    """Why a filter is not looked at; "" when it is. compared: comparisons up to its own."""
    if not one.knows:
        known = word(one.kind, KINDS) != "UNKNOWN" != word(one.pattern, PATTERNS)
        return "Unknown entryFilter." if known else "Unknown patternFilter."
    if compared > COMPARISONS:
        return (
            f"The filters of this request need more than {COMPARISONS} comparisons with ACLs;"
            " name resources or principals, or ask in several requests"
        )
    return ""


class _Rules:
    """All rules with their ids, and the few that a filter with a name or a principal may match."""

    def __init__(self, image: MetadataImage) -> None:
        self._all = list(rules(image))
        self._by_name: dict[str, list[tuple[bytes, AclRule]]] = {}
        self._by_principal: dict[str, list[tuple[bytes, AclRule]]] = {}
        for pair in self._all:
            self._by_name.setdefault(pair[1].name, []).append(pair)
            self._by_principal.setdefault(pair[1].principal, []).append(pair)

    def candidates(self, one: AclFilter) -> list[tuple[bytes, AclRule]]:
        """Every rule that the filter matches, and others."""
        some = self._all
        if one.name is not None and one.pattern != MATCH:
            some = self._by_name.get(one.name, [])
        if one.principal is not None:
            some = min(some, self._by_principal.get(one.principal, []), key=len)
        return some


def _check(rule: AclRule) -> None:
    """Raises PeerError for a rule that cannot be, with Kafka's words."""
    if rule.kind == CLUSTER and rule.name != CLUSTER_NAME:
        why = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not rule.name:
        why = "Invalid empty resource name"
    elif (found := word(rule.kind, KINDS)) in ("UNKNOWN", "ANY"):
        why = f"Invalid resourceType {found}"
    elif rule.pattern not in (LITERAL, PREFIXED):
        why = f"Invalid patternType {word(rule.pattern, PATTERNS)}"
    elif (found := word(rule.operation, OPERATIONS)) in ("UNKNOWN", "ANY"):
        why = f"Invalid operation {found}"
    elif rule.permission not in (DENY, ALLOW):
        why = f"Invalid permissionType {word(rule.permission, PERMISSIONS)}"
    elif ":" not in rule.principal:
        why = (
            f"Could not parse principal from `{rule.principal}` (no colon is present separating"
            " the principal type from the principal name)"
        )
    else:
        return
    raise PeerError(errors.INVALID_REQUEST, why)
