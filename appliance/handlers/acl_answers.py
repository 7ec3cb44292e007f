"""Shared parts of the APIs of ACLs (29 to 31): rules and filters in their messages."""

from typing import Final

from appliance.authorization.standard import AclRule
from appliance.authorization.words import UNKNOWN
from appliance.base import errors
from appliance.base.errors import MalformedRequest
from appliance.config import acl_checks
from appliance.controller.acls import AclFilter
from appliance.controller.decision import Result
from appliance.handlers.admin import AdminContext, Message, Values

NO_AUTHORIZER: Final = Result(errors.SECURITY_DISABLED, "No Authorizer is configured.")


def is_secured(context: AdminContext) -> bool:
    """True if there is an authorizer that goes by rules."""
    return acl_checks.is_secured(context.situation.config)


def check_known(*numbers: int) -> None:
    """Raises MalformedRequest for a number that says it is unknown: nobody asks so."""
    if UNKNOWN in numbers:
        raise MalformedRequest("an ACL of an unknown kind, pattern, operation or permission")


def asked(one: Message) -> AclFilter:
    """A filter of a request, or the request that is one. Raises MalformedRequest."""
    kind, pattern = int(one.resource_type_filter), int(one.pattern_type_filter)
    operation, permission = int(one.operation), int(one.permission_type)
    check_known(kind, pattern, operation, permission)
    name, principal, host = one.resource_name_filter, one.principal_filter, one.host_filter
    return AclFilter(kind, pattern, name, principal, host, operation, permission)


def resource_of(rule: AclRule) -> Values:
    """The fields of what a rule is about."""
    return {
        "resource_type": rule.kind,
        "resource_name": rule.name,
        "pattern_type": rule.pattern,
    }


def entry_of(rule: AclRule) -> Values:
    """The fields of who may do what there."""
    return {
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation,
        "permission_type": rule.permission,
    }
