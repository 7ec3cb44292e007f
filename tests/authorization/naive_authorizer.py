"""What Apache Kafka's StandardAuthorizer decides, as its documentation says it: a loop over all
rules for each question."""

from appliance.authorization.operations import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    READ,
    WRITE,
)  # fmt: skip
from appliance.authorization.standard import ALLOW, DENY, LITERAL, PREFIXED

IMPLYING = {
    DESCRIBE: {DESCRIBE, READ, WRITE, DELETE, ALTER},
    DESCRIBE_CONFIGS: {DESCRIBE_CONFIGS, ALTER_CONFIGS},
}


def names(rule, kind, name):
    """Whether the rule is about this resource."""
    if rule.kind != kind:
        return False
    if rule.pattern == PREFIXED:
        return name.startswith(rule.name)
    return rule.name in (name, "*")


def concerns(rule, principal, host):
    return rule.principal in (principal, "User:*") and rule.host in (host, "*")


def covers(rule, operation):
    wanted = {operation}
    if rule.permission == ALLOW:
        wanted = IMPLYING.get(operation, wanted)
    return rule.operation in wanted | {ALL}


def allows(rules, principal, host, operation, kind, name, open_unnamed):
    about = [rule for rule in rules if names(rule, kind, name)]
    said = [
        rule.permission
        for rule in about
        if concerns(rule, principal, host) and covers(rule, operation)
    ]
    if DENY in said:
        return False
    return ALLOW in said or (open_unnamed and not about)


def allows_some(rules, principal, host, operation, kind, open_unnamed):
    """`Authorizer.authorizeByResourceType` of Apache Kafka's interface."""
    if allows(rules, principal, host, operation, kind, "hardcode", open_unnamed):
        return True
    own = [
        rule
        for rule in rules
        if rule.kind == kind
        and concerns(rule, principal, host)
        and rule.operation in (operation, ALL)
    ]
    denied = {(rule.pattern, rule.name) for rule in own if rule.permission == DENY}
    allowed = {(rule.pattern, rule.name) for rule in own if rule.permission == ALLOW}
    if (LITERAL, "*") in denied:
        return False
    if (LITERAL, "*") in allowed:
        return True
    return any(
        not (pattern == LITERAL and (LITERAL, name) in denied)
        and not any((PREFIXED, name[:n]) in denied for n in range(1, len(name) + 1))
        for pattern, name in allowed
    )
