"""Authorizers: who decides what a caller may do.

`Rights` (`rights.py`) asks one for its caller; what Apache Kafka's StandardAuthorizer decides is in
`standard.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final

from appliance.authorization.operations import CLUSTER_ACTION, Resource
from appliance.base.caller import Caller
from appliance.base.compiled import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Authorizer(ABC):
    """Decides which caller may do which operation. A value machine: the same question has the same
    answer."""

    @abstractmethod
    def allows_everything(self, caller: Caller) -> bool:
        """True if `allows` is true for this caller in every case."""
        ...

    @abstractmethod
    def allows(self, caller: Caller, operation: int, resource: Resource) -> bool:
        """True if the caller may do this operation on the resource."""
        ...

    @abstractmethod
    def allows_some(self, caller: Caller, operation: int, kind: int) -> bool:
        """True if the caller may do this operation on some resource of the kind."""
        ...


class NodePrincipals:
    """The callers that are nodes of the cluster: of one of these principals (`type:name`) on one of
    these listeners, where it is proved by a certificate or a node's login. A user of that name who
    logs in elsewhere is no node, and neither is a principal that an Envelope names, or whoever was
    given a delegation token of it."""

    __slots__ = ("listeners", "principals")

    def __init__(self, principals: Iterable[str] = (), listeners: Iterable[str] = ()) -> None:
        self.principals = frozenset(principals)
        self.listeners = frozenset(listeners)

    def has(self, caller: Caller) -> bool:
        """True if the caller is a node."""
        if caller.listener not in self.listeners or caller.by_token:
            return False
        return f"{caller.principal.type}:{caller.principal.name}" in self.principals


NO_NODES: Final = NodePrincipals()


class AllowAll(Authorizer):
    """Allows every operation to every caller."""

    def allows_everything(self, caller: Caller) -> bool:
        return True

    def allows(self, caller: Caller, operation: int, resource: Resource) -> bool:
        return True

    def allows_some(self, caller: Caller, operation: int, kind: int) -> bool:
        return True


class AllowClients(Authorizer):
    """Allows every operation to nodes, and to everybody else all but CLUSTER_ACTION."""

    def __init__(self, nodes: NodePrincipals) -> None:
        self._nodes = nodes

    def allows_everything(self, caller: Caller) -> bool:
        return self._nodes.has(caller)

    def allows(self, caller: Caller, operation: int, resource: Resource) -> bool:
        return operation != CLUSTER_ACTION or self._nodes.has(caller)

    def allows_some(self, caller: Caller, operation: int, kind: int) -> bool:
        return operation != CLUSTER_ACTION or self._nodes.has(caller)


class AllowNothing(Authorizer):
    """Refuses every operation to every caller."""

    def allows_everything(self, caller: Caller) -> bool:
        return False

    def allows(self, caller: Caller, operation: int, resource: Resource) -> bool:
        return False

    def allows_some(self, caller: Caller, operation: int, kind: int) -> bool:
        return False
