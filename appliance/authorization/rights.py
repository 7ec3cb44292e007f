"""Rights of a caller: the one place that asks the authorizer.

Whoever decides a request is given the rights of its caller and asks them for what it needs
(`needs.py`). They are made once for each caller, so where everything is allowed to it a request
pays for the look at one attribute.
"""

from abc import ABC, abstractmethod
from typing import Final

from appliance.authorization.needs import Need
from appliance.authorization.operations import (
    CLUSTER_NAME,
    REFUSED,
    SUPPORTED,
    THE_CLUSTER,
    Resource,
)
from appliance.base.caller import ANONYMOUS, Caller, Principal, decode
from appliance.base.compiled import mypyc_attr
from appliance.base.errors import NONE

_MOST_KNOWN: Final = 4096


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


class _AllowNothing(Authorizer):
    def allows_everything(self, caller: Caller) -> bool:
        return False

    def allows(self, caller: Caller, operation: int, resource: Resource) -> bool:
        return False

    def allows_some(self, caller: Caller, operation: int, kind: int) -> bool:
        return False


class Rights:
    """The rights of one caller. encoded: the caller, for other processes. everything: nothing is
    refused to it."""

    __slots__ = ("_authorizer", "caller", "encoded", "everything")

    def __init__(self, caller: Caller, authorizer: Authorizer, encoded: bytes = b"") -> None:
        """encoded: as other processes know it where no caller can be encoded so."""
        self._authorizer = authorizer
        self.caller = caller
        self.encoded = encoded or caller.encode()
        self.everything = authorizer.allows_everything(caller)

    def refusal(self, need: Need, name: str = CLUSTER_NAME) -> int:
        """The error code for who may not do this with the resource of that name, or NONE."""
        if self.everything or self._has(need, name):
            return NONE
        return REFUSED[need.kind]

    def some(self, need: Need) -> bool:
        """True if the caller may do this on some resource."""
        return self.everything or self._authorizer.allows_some(
            self.caller, need.operation, need.kind
        )

    def operations(self, kind: int, name: str = CLUSTER_NAME) -> int:
        """The authorized operations as answers tell them: a bit for each (KIP-430)."""
        resource = Resource(kind, name)
        return sum(
            1 << operation
            for operation in SUPPORTED[kind]
            if self.everything or self._authorizer.allows(self.caller, operation, resource)
        )

    def _has(self, need: Need, name: str) -> bool:
        allows, caller = self._authorizer.allows, self.caller
        if need.or_cluster and allows(caller, need.or_cluster, THE_CLUSTER):
            return True
        return allows(caller, need.operation, Resource(need.kind, name))


NOBODY: Final = Rights(Caller(ANONYMOUS, "", "", ""), _AllowNothing())
"""The rights while it is not said whose request it is."""


_OURS: Final = b"ours"
OURSELVES: Final = Rights(Caller(Principal("User", "appliance"), "", "", ""), AllowAll(), _OURS)
"""The rights of what the appliance asks in its own name, on behalf of a request that it has
checked. Rings carry a mark for them that encodes no caller: a principal that a request names, in an
Envelope or a certificate, is never taken for the appliance."""


class Callers:
    """The rights of those whom other processes name. known: by their encoding, for who looks there
    first."""

    __slots__ = ("_authorizer", "known")

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self.known: dict[bytes, Rights] = {}

    def of(self, encoded: bytes) -> Rights:
        """Decoded once for each. Raises MalformedRequest."""
        found = self.known.get(encoded)
        if found is None:
            if len(self.known) >= _MOST_KNOWN:
                self.known.clear()
            ours = encoded == _OURS
            found = OURSELVES if ours else Rights(decode(encoded), self._authorizer)
            self.known[encoded] = found
        return found
