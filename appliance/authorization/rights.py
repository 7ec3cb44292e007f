"""Rights of a caller: the one place that asks the authorizer.

Whoever decides a request is given the rights of its caller and asks them for what it needs
(`needs.py`). They are made once for each caller, so where everything is allowed to it a request
pays for the look at one attribute.
"""

from collections.abc import Callable
from typing import Final

from appliance.authorization.authorizer import AllowAll as AllowAll
from appliance.authorization.authorizer import AllowNothing
from appliance.authorization.authorizer import Authorizer as Authorizer
from appliance.authorization.needs import Need
from appliance.authorization.operations import (
    CLUSTER,
    CLUSTER_NAME,
    REFUSED,
    SUPPORTED,
    THE_CLUSTER,
    Resource,
)
from appliance.authorization.standard import Sheet, StandardAuthorizer
from appliance.base.caller import ANONYMOUS, Caller, Principal, decode
from appliance.base.errors import NONE
from appliance.config.bounds import CALLERS, setting_of

_KNOWN_BYTES: Final = 100
"""Of memory that a caller takes besides its encoding, a fifth of it."""
_MOST_BYTES: Final = 1 << 20
"""Of the encodings of those that are known: a client id has up to 32 KiB, and is kept as text and
as bytes, so that this is a fifth of the memory."""


class Rights:
    """The rights of one caller. encoded: the caller, for other processes. everything: nothing is
    refused to it, whatever the rules."""

    __slots__ = (
        "_authorizer",
        "_looked",
        "_sheets",
        "_standard",
        "caller",
        "encoded",
        "everything",
    )

    def __init__(self, caller: Caller, authorizer: Authorizer, encoded: bytes = b"") -> None:
        """encoded: as other processes know it where no caller can be encoded so."""
        self._authorizer = authorizer
        standard = authorizer if isinstance(authorizer, StandardAuthorizer) else None
        self._standard: StandardAuthorizer | None = standard
        self._sheets: list[Sheet] = []
        self._looked = 0  # the generation of rules in which they were found
        self.caller = caller
        self.encoded = encoded or caller.encode()
        self.everything = authorizer.allows_everything(caller)

    @property
    def generation(self) -> int:
        """The rules' generation: what was allowed in another one may be refused now."""
        return 0 if self._standard is None else self._standard.generation

    def refusal(self, need: Need, name: str = CLUSTER_NAME) -> int:
        """The error code for who may not do this with the resource of that name, or NONE. Somebody
        wants to do it: it is told if it is refused."""
        if self.everything or self._has(need, name):
            return NONE
        if self._standard is not None:
            self._standard.refused(self.caller, need.operation, need.kind, name)
        return REFUSED[need.kind]

    def may(self, need: Need, name: str = CLUSTER_NAME) -> bool:
        """True if `refusal` is NONE, of what nobody has asked for: nothing is told."""
        return self.everything or self._has(need, name)

    def some(self, need: Need) -> bool:
        """True if the caller may do this on some resource."""
        return self.everything or self._authorizer.allows_some(
            self.caller, need.operation, need.kind
        )

    def operations(self, kind: int, name: str = CLUSTER_NAME) -> int:
        """The authorized operations as answers tell them: a bit for each (KIP-430)."""
        standard = self._standard
        if standard is not None and not self.everything:
            bits = standard.bits(self._found(standard), kind, name)
            return sum(
                1 << operation
                for operation in SUPPORTED[kind]
                if standard.decides(bits, operation, kind, name)
            )
        resource = Resource(kind, name)
        return sum(
            1 << operation
            for operation in SUPPORTED[kind]
            if self.everything or self._authorizer.allows(self.caller, operation, resource)
        )

    def _has(self, need: Need, name: str) -> bool:
        standard = self._standard
        if standard is not None:
            sheets = self._found(standard)
            bits = standard.bits(sheets, need.kind, name)
            if standard.decides(bits, need.operation, need.kind, name):
                return True
            if not need.or_cluster:
                return False
            bits = standard.bits(sheets, CLUSTER, CLUSTER_NAME)
            return standard.decides(bits, need.or_cluster, CLUSTER, CLUSTER_NAME)
        allows, caller = self._authorizer.allows, self.caller
        if need.or_cluster and allows(caller, need.or_cluster, THE_CLUSTER):
            return True
        return allows(caller, need.operation, Resource(need.kind, name))

    def _found(self, standard: StandardAuthorizer) -> list[Sheet]:
        """The sheets of rules about this caller, looked up once for each generation."""
        if self._looked != standard.generation:
            self._looked, self._sheets = standard.generation, standard.sheets(self.caller)
        return self._sheets


NOBODY: Final = Rights(Caller(ANONYMOUS, "", "", ""), AllowNothing())
"""The rights while it is not said whose request it is."""


_OURS: Final = b"ours"
OURSELVES: Final = Rights(Caller(Principal("User", "appliance"), "", "", ""), AllowAll(), _OURS)
"""The rights of what the appliance asks in its own name, on behalf of a request that it has
checked. Rings carry a mark for them that encodes no caller: a principal that a request names, in an
Envelope or a certificate, is never taken for the appliance."""


class Callers:
    """The rights of those whom other processes name. known: by their encoding, for who looks there
    first."""

    __slots__ = ("_authorizer", "_bytes", "_most_bytes", "_reach", "known")

    def __init__(
        self,
        authorizer: Authorizer,
        most_bytes: int = _MOST_BYTES,
        reach: Callable[[str, str], None] | None = None,
    ) -> None:
        """most_bytes: of the encodings of those that are known. reach: told when they are more."""
        self._authorizer = authorizer
        self._most_bytes = most_bytes
        self._reach = reach
        self._bytes = 0  # of what is known
        self.known: dict[bytes, Rights] = {}

    def of(self, encoded: bytes) -> Rights:
        """Decoded once for each. Raises MalformedRequest."""
        found = self.known.get(encoded)
        if found is None:
            size = len(encoded) + _KNOWN_BYTES
            self._bytes += size
            if self._bytes > self._most_bytes:
                self._forget_all(size)
            ours = encoded == _OURS
            found = OURSELVES if ours else Rights(decode(encoded), self._authorizer)
            self.known[encoded] = found
        return found

    def _forget_all(self, size: int) -> None:
        self.known.clear()
        self._bytes = size
        if self._reach is not None:
            why = f"{self._most_bytes} bytes of callers: {setting_of(CALLERS)}"
            self._reach(CALLERS, why)
