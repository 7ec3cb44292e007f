"""Authorizers: who decides what a caller may do.

`Rights` (`rights.py`) asks one for its caller; what Apache Kafka's StandardAuthorizer decides is in
`standard.py`.
"""

from abc import ABC, abstractmethod

from appliance.authorization.operations import Resource
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


class AllowAll(Authorizer):
    """Allows every operation to every caller."""

    def allows_everything(self, caller: Caller) -> bool:
        return True

    def allows(self, caller: Caller, operation: int, resource: Resource) -> bool:
        return True

    def allows_some(self, caller: Caller, operation: int, kind: int) -> bool:
        return True


class AllowNothing(Authorizer):
    """Refuses every operation to every caller."""

    def allows_everything(self, caller: Caller) -> bool:
        return False

    def allows(self, caller: Caller, operation: int, resource: Resource) -> bool:
        return False

    def allows_some(self, caller: Caller, operation: int, kind: int) -> bool:
        return False
