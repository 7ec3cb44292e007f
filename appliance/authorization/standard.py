"""The authorizer of ACLs: decides as Apache Kafka's StandardAuthorizer (KIP-801) does.

A rule allows or denies an operation on resources of a kind, by their name, by how it begins, or all
(`*`), to a principal or to all (`User:*`), from an address or from all (`*`). Any rule that denies
wins; without one any rule that allows; without that it is refused, but for what no rule names at
all where `allow.everyone.if.no.acl.found` is set.

Rules lie in sheets, one for each principal and host that they name; a caller has up to four. A
question looks up a name, `*`, and the beginnings of the name in the lengths that there are: what it
costs does not grow with the rules, and nothing is kept of names that strangers ask for.
"""

from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv6Address
from typing import Final, NamedTuple, final

from appliance.authorization.authorizer import NO_NODES, Authorizer, NodePrincipals
from appliance.authorization.operations import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    LAST_OPERATION,
    READ,
    WRITE,
    Resource,
)
from appliance.base.caller import Caller

LITERAL: Final = 3
PREFIXED: Final = 4
DENY: Final = 2
ALLOW: Final = 3
ANY_NAME: Final = "*"
ANY_HOST: Final = "*"
ANYBODY: Final = "User:*"
_DENIES: Final = 16
"""The bit that says that an operation is denied lies so far above that which says that it is
allowed."""
assert LAST_OPERATION < _DENIES


def _allowing(operation: int) -> int:
    """The bits of the operations that a rule may allow to allow this one."""
    implying = {
        DESCRIBE: (DESCRIBE, READ, WRITE, DELETE, ALTER),
        DESCRIBE_CONFIGS: (DESCRIBE_CONFIGS, ALTER_CONFIGS),
    }
    return sum(1 << one for one in {ALL, *implying.get(operation, (operation,))})


_ALLOWED_BY: Final[list[int]] = [_allowing(one) for one in range(LAST_OPERATION + 1)]
_DENIED_BY: Final[list[int]] = [
    (1 << one | 1 << ALL) << _DENIES for one in range(LAST_OPERATION + 1)
]
"""Only allowing implies: who is denied READ may still DESCRIBE."""


class AclRule(NamedTuple):
    """kind: of resources. pattern: LITERAL or PREFIXED. principal: `type:name`. host: an address,
    or `*`. operation: may be ALL. permission: ALLOW or DENY."""

    kind: int
    pattern: int
    name: str
    principal: str
    host: str
    operation: int
    permission: int

    def bits(self) -> int:
        """The bit of its operation, as `Sheet.bits` gives it."""
        return 1 << (self.operation + (_DENIES if self.permission == DENY else 0))


class Denial(NamedTuple):
    """A refusal of somebody. kind, name: of the resource."""

    principal: str
    address: str
    operation: int
    kind: int
    name: str


@final
class _Names:
    """Rules about one kind of resources: what they say together, by name."""

    __slots__ = ("_counts", "_held", "lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, int] = {}
        self.prefixed: dict[str, int] = {}
        self.lengths: list[int] = []  # of the beginnings in `prefixed`, ascending
        self._held: dict[tuple[int, str], dict[str, int]] = {}
        self._counts: dict[int, int] = {}

    def add(self, key: str, rule: AclRule) -> None:
        """One more rule."""
        self._held.setdefault((rule.pattern, rule.name), {})[key] = rule.bits()
        table = self.prefixed if rule.pattern == PREFIXED else self.literal
        if rule.pattern == PREFIXED and rule.name not in table:
            self._count(len(rule.name), 1)
        table[rule.name] = table.get(rule.name, 0) | rule.bits()

    def drop(self, key: str, rule: AclRule) -> None:
        """One rule less."""
        held = self._held[rule.pattern, rule.name]
        del held[key]
        table = self.prefixed if rule.pattern == PREFIXED else self.literal
        if held:
            bits = 0
            for one in held.values():
                bits |= one
            table[rule.name] = bits
            return
        del self._held[rule.pattern, rule.name]
        del table[rule.name]
        if rule.pattern == PREFIXED:
            self._count(len(rule.name), -1)

    def _count(self, length: int, by: int) -> None:
        count = self._counts.get(length, 0) + by
        if count:
            self._counts[length] = count
        else:
            del self._counts[length]
        if len(self._counts) != len(self.lengths):
            self.lengths = sorted(self._counts)


@final
class Sheet:
    """Rules that name the same principal and host."""

    __slots__ = ("count", "kinds")

    def __init__(self) -> None:
        self.kinds: dict[int, _Names] = {}
        self.count = 0

    def add(self, key: str, rule: AclRule) -> None:
        """One more rule, under a key that no other one has."""
        names = self.kinds.get(rule.kind)
        if names is None:
            names = self.kinds[rule.kind] = _Names()
        names.add(key, rule)
        self.count += 1

    def drop(self, key: str, rule: AclRule) -> None:
        """One rule less."""
        self.kinds[rule.kind].drop(key, rule)
        self.count -= 1

    def bits(self, kind: int, name: str) -> int:
        """The rules of a resource: a bit for each operation that is allowed by its own name, and
        16 above it for each that is denied; implied operations are not among them."""
        names = self.kinds.get(kind)
        if names is None:
            return 0
        literal = names.literal
        found = literal.get(name, 0) | literal.get(ANY_NAME, 0)
        if names.lengths:
            prefixed, size = names.prefixed, len(name)
            for length in names.lengths:
                if length > size:
                    break
                found |= prefixed.get(name[:length], 0)
        return found


@final
class StandardAuthorizer(Authorizer):
    """super_users: principals (`type:name`) that may do everything. open_unnamed: whether everybody
    may do everything with what no rule names.

    generation: rises with every change; what was asked before it is void. loaded: until then only
    super users may do something. on_denial: called with each refusal that somebody asked for.
    """

    def __init__(
        self,
        super_users: Iterable[str] = (),
        *,
        open_unnamed: bool = False,
        nodes: NodePrincipals = NO_NODES,
    ) -> None:
        self._super_users = frozenset(super_users)
        self._nodes = nodes
        self.open_unnamed = open_unnamed
        self.generation = 1
        self.loaded = False
        self.on_denial: Callable[[Denial], None] | None = None
        self._rules: dict[str, AclRule] = {}
        self._sheets: dict[tuple[str, str], Sheet] = {}
        self._named = Sheet()  # every rule, if what none names is open

    # Rules ----------------------------------------------------------------------------------------

    def add(self, key: str, rule: AclRule) -> None:
        """One more rule, under its id; in place of that which has it."""
        if key in self._rules:
            self.drop(key)
        self._rules[key] = rule
        where = (rule.principal, _host(rule.host))
        sheet = self._sheets.get(where)
        if sheet is None:
            sheet = self._sheets[where] = Sheet()
        sheet.add(key, rule)
        if self.open_unnamed:
            self._named.add(key, rule)
        self.generation += 1

    def drop(self, key: str) -> None:
        """One rule less, if there is one with this id."""
        rule = self._rules.pop(key, None)
        if rule is None:
            return
        where = (rule.principal, _host(rule.host))
        sheet = self._sheets[where]
        sheet.drop(key, rule)
        if not sheet.count:
            del self._sheets[where]
        if self.open_unnamed:
            self._named.drop(key, rule)
        self.generation += 1

    def load(self, rules: Mapping[str, AclRule]) -> None:
        """These and no others, from now on; nobody waits for rules any more."""
        for key in [key for key, rule in self._rules.items() if rules.get(key) != rule]:
            self.drop(key)
        for key, rule in rules.items():
            if key not in self._rules:
                self.add(key, rule)
        self.loaded = True
        self.generation += 1

    # Questions ------------------------------------------------------------------------------------

    def sheets(self, caller: Caller) -> list[Sheet]:
        """Where the rules about this caller are, until the generation changes."""
        if not self.loaded:
            return []
        host = _host(caller.address)
        found = []
        for principal in (_name(caller), ANYBODY):
            for where in (ANY_HOST, host):
                sheet = self._sheets.get((principal, where))
                if sheet is not None:
                    found.append(sheet)
        return found

    def allows_everything(self, caller: Caller) -> bool:
        return _name(caller) in self._super_users or self._nodes.has(caller)

    def allows(self, caller: Caller, operation: int, resource: Resource) -> bool:
        if self.allows_everything(caller):
            return True
        bits = self.bits(self.sheets(caller), resource.kind, resource.name)
        return self.decides(bits, operation, resource.kind, resource.name)

    def bits(self, sheets: list[Sheet], kind: int, name: str) -> int:
        """The bits of these sheets together."""
        bits = 0
        for sheet in sheets:
            bits |= sheet.bits(kind, name)
        return bits

    def decides(self, bits: int, operation: int, kind: int, name: str) -> bool:
        """True if the operation is allowed where rules say this of the resource."""
        if bits & _DENIED_BY[operation]:
            return False
        if bits & _ALLOWED_BY[operation]:
            return True
        return self.open_unnamed and self.loaded and not self._named.bits(kind, name)

    def allows_some(self, caller: Caller, operation: int, kind: int) -> bool:
        """As the default of Apache Kafka's interface does it (KIP-679): nothing is implied, and a
        name that is allowed counts unless that name, or how it begins, is denied."""
        if self.allows(caller, operation, Resource(kind, "hardcode")):
            return True
        allowed, denied = 1 << operation | 1 << ALL, _DENIED_BY[operation]
        tables = [one.kinds[kind] for one in self.sheets(caller) if kind in one.kinds]
        if any(one.literal.get(ANY_NAME, 0) & denied for one in tables):
            return False
        if any(one.literal.get(ANY_NAME, 0) & allowed for one in tables):
            return True
        no_literals = {n for one in tables for n, bits in one.literal.items() if bits & denied}
        no_prefixes = {n for one in tables for n, bits in one.prefixed.items() if bits & denied}
        lengths = sorted({len(name) for name in no_prefixes})

        def begins_so(name: str) -> bool:
            return any(name[:n] in no_prefixes for n in lengths if n <= len(name))

        return any(
            bits & allowed and name not in no_literals and not begins_so(name)
            for one in tables
            for name, bits in one.literal.items()
        ) or any(
            bits & allowed and not begins_so(name)
            for one in tables
            for name, bits in one.prefixed.items()
        )

    def refused(self, caller: Caller, operation: int, kind: int, name: str) -> None:
        """Tell of it."""
        told = self.on_denial
        if told is not None:
            told(Denial(_name(caller), caller.address, operation, kind, name))


def _name(caller: Caller) -> str:
    return f"{caller.principal.type}:{caller.principal.name}"


def _host(text: str) -> str:
    """An address in the form by which two are compared; what is none stays as it is."""
    if ":" not in text:
        return text
    try:
        address = IPv6Address(text.partition("%")[0])
    except ValueError:
        return text
    return str(address.ipv4_mapped or address)
