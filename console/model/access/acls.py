"""ACLs: which rules there are, adding and removing them, and whom they allow what; by DescribeAcls
(API key 29), CreateAcls (30) and DeleteAcls (31)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from appliance.authorization import operations as kafka
from appliance.authorization.needs import CREATE_TOPIC, DELETE_TOPIC, Need
from appliance.authorization.rights import Rights
from appliance.authorization.standard import (
    ALLOW,
    ANY_HOST,
    ANY_NAME,
    ANYBODY,
    DENY,
    LITERAL,
    PREFIXED,
    AclRule,
    StandardAuthorizer,
)
from appliance.authorization.words import KINDS, OPERATIONS, PATTERNS, PERMISSIONS
from appliance.base import errors
from appliance.base.caller import Caller, Principal
from appliance.base.owner import FILE, SUPER_USER
from appliance.config.acl_checks import NODES, OPEN, SUPER_USERS
from console.model.asking.configs import BROKER, values_of
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check

_DESCRIBE: Final = 29
_CREATE: Final = 30
_DELETE: Final = 31
_VERSION: Final = 3
_ANY: Final = 1
NO_ACLS: Final = "SECURITY_DISABLED"
"""Name of the Failure where there is no authorizer."""
AT_ONCE: Final = 1000
"""Rules of one request."""


class Target(NamedTuple):
    """The resources that rules are about: a kind (`operations.TOPIC`), a name, LITERAL or
    PREFIXED."""

    kind: int
    name: str
    pattern: int = LITERAL


class Entry(NamedTuple):
    """A rule in words."""

    principal: str
    permission: str
    operation: str
    resource: str
    name: str
    pattern: str
    host: str


class Verdict(NamedTuple):
    """A decision, and the rule or setting that makes it."""

    allowed: bool
    why: str


class Holder(NamedTuple):
    """Somebody who may do something. host: from where. why: the rule or setting."""

    principal: str
    host: str
    why: str


class Policy(NamedTuple):
    """All that decides: the rules, `super.users`, `allow.everyone.if.no.acl.found` and
    `penstock.node.principals`. has_owner: the owner of the data folder comes in by a socket of its
    own. has_acls: False where there is no authorizer, and nodes alone are told apart."""

    rules: tuple[AclRule, ...]
    super_users: tuple[str, ...]
    open_unnamed: bool
    nodes: tuple[str, ...] = ()
    has_owner: bool = False
    has_acls: bool = True


def entry(rule: AclRule) -> Entry:
    """A rule in the words that people type."""
    return Entry(
        rule.principal,
        typed(PERMISSIONS[rule.permission]),
        typed(OPERATIONS[rule.operation]),
        typed(KINDS[rule.kind]),
        rule.name,
        typed(PATTERNS[rule.pattern]),
        rule.host,
    )


def typed(word: str) -> str:
    """A word of Kafka's as people type it: `describe-configs`."""
    return word.lower().replace("_", "-")


def sentence(rule: AclRule) -> str:
    """`allow read to User:anna on topic orders`, for the explanation of a verdict."""
    one = entry(rule)
    about = one.resource if rule.kind == kafka.CLUSTER else f"{one.resource} {one.name}"
    more = "…" if rule.pattern == PREFIXED else ""
    place = "" if rule.host == ANY_HOST else f" from {rule.host}"
    return f"{one.permission} {one.operation} to {one.principal} on {about}{more}{place}"


def principal_of(text: str) -> str:
    """`TYPE:NAME` of what somebody types: `anna` is `User:anna`, `*` everybody. Raises Failure."""
    kind, colon, name = text.partition(":")
    found = text if colon else f"User:{text}"
    if not text or (colon and not (kind and name)):
        raise usage(f"{text!r} is no principal", "for example User:anna; User:* is everybody")
    return found


def operation_of(text: str) -> int:
    """The number of an operation that is typed as a word. Raises Failure."""
    word = text.upper().replace("-", "_")
    if word not in OPERATIONS[kafka.ALL :]:
        known = ", ".join(typed(one) for one in OPERATIONS[kafka.ALL :])
        raise usage(f"{text!r} is no operation", f"one of {known}")
    return OPERATIONS.index(word)


def check_applies(operation: int, target: Target) -> None:
    """Raises Failure (USAGE) for an operation that this kind of resources does not have."""
    supported = kafka.SUPPORTED[target.kind]
    if operation != kafka.ALL and operation not in supported:
        known = ", ".join(sorted(typed(OPERATIONS[one]) for one in supported))
        kind = typed(KINDS[target.kind])
        raise usage(f"{typed(OPERATIONS[operation])} is nothing that one does with a {kind}", known)


def rules(link: Link) -> list[AclRule]:
    """Every rule, by resource, name and principal. Raises Failure."""
    answer = ask_server(link, _DESCRIBE, _VERSION, _filter(None))
    _check(int(answer.error_code), answer.error_message)
    found = [
        AclRule(
            int(row.resource_type), int(row.pattern_type), row.resource_name, acl.principal,
            acl.host, int(acl.operation), int(acl.permission_type),
        )
        for row in answer.resources
        for acl in row.acls
    ]  # fmt: skip
    return sorted(found, key=lambda one: (one.kind, one.name, one.pattern, one.principal, one))


def add(link: Link, wanted: Sequence[AclRule]) -> None:
    """Make these rules. Raises Failure for the first that is refused."""
    for start in range(0, len(wanted), AT_ONCE):
        part = wanted[start : start + AT_ONCE]
        answer = ask_server(
            link, _CREATE, _VERSION, {"creations": [_creation(one) for one in part]}
        )
        for one, row in zip(part, answer.results, strict=True):
            _check(int(row.error_code), row.error_message or sentence(one))


def remove(link: Link, gone: Sequence[AclRule]) -> None:
    """Remove exactly these rules. Raises Failure for the first that is refused."""
    for start in range(0, len(gone), AT_ONCE):
        part = gone[start : start + AT_ONCE]
        answer = ask_server(link, _DELETE, _VERSION, {"filters": [_filter(one) for one in part]})
        for one, row in zip(part, answer.filter_results, strict=True):
            _check(int(row.error_code), row.error_message or sentence(one))


def policy(link: Link) -> Policy:
    """Reads all that decides. Raises Failure, SECURITY_DISABLED where everybody may do everything:
    without an authorizer and without principals of nodes."""
    broker = str(min(link.admin().list_topics(timeout=link.timeout_s).brokers))
    keys = (SUPER_USERS, OPEN, NODES)
    values = values_of(link, BROKER, [broker], keys).get(broker, {})
    nodes = _listed(values.get(NODES))
    try:
        found = tuple(rules(link))
    except Failure as failure:
        if failure.name != NO_ACLS or not nodes:
            raise
        return Policy((), (), False, nodes, NODES in values, False)
    is_open = values.get(OPEN) == "true"
    return Policy(found, _listed(values.get(SUPER_USERS)), is_open, nodes, NODES in values)


def _listed(text: str | None) -> tuple[str, ...]:
    """The principals of a setting."""
    return tuple(one.strip() for one in (text or "").split(";") if one.strip())


def about(rule: AclRule, target: Target) -> bool:
    """True if the rule is about a resource, or if it is the rule of exactly this prefix."""
    if rule.kind != target.kind:
        return False
    if target.pattern == PREFIXED:
        return rule.pattern == PREFIXED and rule.name == target.name
    if rule.pattern == PREFIXED:
        return target.name.startswith(rule.name)
    return rule.name in (target.name, ANY_NAME)


def can(found: Policy, principal: str, host: str, operation: int, target: Target) -> Verdict:
    """Decides for one principal, operation and resource. host: an address; `*`: from wherever. A
    principal of `penstock.node.principals` is decided for as a node, not as a login of that name.
    """
    for holder in unlimited(found):
        if holder.principal == principal:
            return Verdict(True, f"{principal} is {holder.why}")
    if not found.has_acls:
        return _without_acls(operation)
    return _Judge(found).verdict(principal, host, operation, target)


def who_can(found: Policy, operation: int, target: Target) -> list[Holder]:
    """Lists the principals that rules or settings let do this with one resource."""
    holders = list(unlimited(found))
    known = {one.principal for one in holders}
    if not found.has_acls:
        others = _without_acls(operation)
        return [*holders, Holder(ANYBODY, ANY_HOST, others.why)] if others.allowed else holders
    judge = _Judge(found)
    named = {(one.principal, one.host) for one in found.rules}
    asked = {(one, ANY_HOST) for one, _ in named} | named | {(ANYBODY, ANY_HOST)}
    verdicts = {
        (principal, host): judge.verdict(principal, host, operation, target)
        for principal, host in asked
        if principal not in known
    }
    for (principal, host), verdict in sorted(verdicts.items()):
        implied = host != ANY_HOST and verdicts[principal, ANY_HOST].allowed
        if verdict.allowed and not implied:
            holders.append(Holder(principal, host, verdict.why))
    return holders


def unlimited(found: Policy) -> Iterator[Holder]:
    """Yields the principals that may do everything, each once."""
    told = dict.fromkeys(found.super_users, f"one of {SUPER_USERS}")
    for one in found.nodes:
        told.setdefault(one, f"one of {NODES}, by a certificate on a listener with SSL")
    if found.has_owner:
        told.setdefault(SUPER_USER, f"the owner of the data folder, by {FILE}")
    for principal, why in told.items():
        yield Holder(principal, ANY_HOST, why)


def _without_acls(operation: int) -> Verdict:
    """The decision about everybody but nodes where there is no authorizer."""
    if operation == kafka.CLUSTER_ACTION:
        return Verdict(False, f"without an authorizer {NODES} alone may act as nodes")
    return Verdict(True, "there is no authorizer, so everybody may do everything else")


class _Judge:
    """Decides as the broker does, by the same authorizer."""

    def __init__(self, found: Policy) -> None:
        self._policy = found
        self._authorizer = StandardAuthorizer((), open_unnamed=found.open_unnamed)
        self._authorizer.load({str(number): one for number, one in enumerate(found.rules)})

    def verdict(self, principal: str, host: str, operation: int, target: Target) -> Verdict:
        kind, _, name = principal.partition(":")
        rights = Rights(Caller(Principal(kind, name), "", host, ""), self._authorizer)
        need = _NEEDS.get((operation, target.kind), Need(operation, target.kind))
        allowed = rights.may(need, target.name)
        return Verdict(allowed, self._why(allowed, principal, host, need, target))

    def _why(self, allowed: bool, principal: str, host: str, need: Need, target: Target) -> str:
        names = {principal, ANYBODY}
        own = [
            one
            for one in self._policy.rules
            if one.principal in names and one.host in (ANY_HOST, host)
        ]
        permission = ALLOW if allowed else DENY
        cluster = Target(kafka.CLUSTER, kafka.CLUSTER_NAME)
        for operation, place in ((need.operation, target), (need.or_cluster, cluster)):
            wanted = _covering(operation, permission)
            for one in own:
                if one.permission == permission and one.operation in wanted and about(one, place):
                    return sentence(one)
        if allowed:
            return f"no rule names it, and {OPEN}=true"
        return "no rule allows it"


_NEEDS: Final = {
    (kafka.CREATE, kafka.TOPIC): CREATE_TOPIC,
    (kafka.DELETE, kafka.TOPIC): DELETE_TOPIC,
}
"""Where a right on the cluster does as well."""
_IMPLYING: Final = {
    kafka.DESCRIBE: {kafka.READ, kafka.WRITE, kafka.DELETE, kafka.ALTER},
    kafka.DESCRIBE_CONFIGS: {kafka.ALTER_CONFIGS},
}


def _covering(operation: int, permission: int) -> set[int]:
    """The operations of rules that decide about this one."""
    implied = _IMPLYING.get(operation, set()) if permission == ALLOW else set()
    return {operation, kafka.ALL, *implied} if operation else set()


def _creation(rule: AclRule) -> dict[str, object]:
    return {
        "resource_type": rule.kind,
        "resource_name": rule.name,
        "resource_pattern_type": rule.pattern,
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation,
        "permission_type": rule.permission,
    }


def _filter(rule: AclRule | None) -> dict[str, object]:
    """A filter for exactly this rule, or for all."""
    return {
        "resource_type_filter": rule.kind if rule else _ANY,
        "resource_name_filter": rule.name if rule else None,
        "pattern_type_filter": rule.pattern if rule else _ANY,
        "principal_filter": rule.principal if rule else None,
        "host_filter": rule.host if rule else None,
        "operation": rule.operation if rule else _ANY,
        "permission_type": rule.permission if rule else _ANY,
    }


def _check(code: int, message: str | None) -> None:
    if code == errors.SECURITY_DISABLED:
        raise Failure(
            "there is no authorizer, so everybody may do everything",
            "authorizer.class.name in server.properties turns ACLs on",
            name=NO_ACLS, kafka_code=code,
        )  # fmt: skip
    check(code, message, "ACLs")


def product(
    principals: Iterable[str],
    hosts: Iterable[str],
    permission: int,
    pairs: Iterable[tuple[Target, int]],
) -> list[AclRule]:
    """A rule for each combination. pairs: a resource and an operation."""
    hosts, pairs = tuple(hosts), tuple(pairs)
    return [
        AclRule(target.kind, target.pattern, target.name, who, host, operation, permission)
        for who in principals
        for host in hosts
        for target, operation in pairs
    ]  # fmt: skip
