"""Access to a broker: users, ACLs and settings in one look, and the question whether somebody may
do something."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from appliance.authorization import operations as kafka
from appliance.authorization.standard import ANY_HOST, ANYBODY, AclRule
from appliance.authorization.words import KINDS, OPERATIONS
from console.model.access import acls, users
from console.model.access.acls import Policy, Target, typed
from console.model.access.audit_memory import LastLogin
from console.model.asking.failure import UNREACHABLE, Failure, usage
from console.model.asking.link import Link

KIND_WORDS: Final = ("topic", "group", "cluster", "transactional-id")
_EXAMPLE: Final = "for example loader write topic orders, or admin alter cluster"


@dataclass(slots=True, frozen=True)
class AccessSeen:
    """users: those with credentials. policy: None without an authorizer. problem: why users or
    rules cannot be read, "" where they can."""

    users: tuple[users.User, ...]
    policy: Policy | None
    problem: str = ""


class Person(NamedTuple):
    """A principal that can log in, has rules, or did log in. mechanisms: those of its credentials.
    rules: how many name it. everything: why it may do everything, "" where it may not. last: its
    last login, None where none is known."""

    principal: str
    mechanisms: tuple[str, ...]
    rules: int
    everything: str
    last: LastLogin | None

    @property
    def user(self) -> str:
        """The name of its credentials, "" where it has none."""
        return self.principal.removeprefix("User:") if self.mechanisms else ""


def ask_access(link: Link) -> AccessSeen:
    """Asks for users and rules. Raises Failure when nobody answers."""
    problem, policy = "", None
    found: tuple[users.User, ...] = ()
    try:
        found = tuple(users.all_users(link))
    except Failure as failure:
        if failure.code == UNREACHABLE:
            raise
        problem = failure.message
    try:
        policy = acls.policy(link)
    except Failure as failure:
        if failure.code == UNREACHABLE:
            raise
        if failure.name != acls.NO_ACLS:
            problem = problem or failure.message
    return AccessSeen(found, policy, problem)


def people(seen: AccessSeen, logins: Mapping[str, LastLogin]) -> list[Person]:
    """The principals that are known: users, then the others, each by name."""
    kinds = {f"User:{one.name}": tuple(sorted(one.mechanisms)) for one in seen.users}
    rules: dict[str, int] = {}
    for one in seen.policy.rules if seen.policy is not None else ():
        rules[one.principal] = rules.get(one.principal, 0) + 1
    free = {}
    if seen.policy is not None:
        free = {one.principal: one.why for one in acls.unlimited(seen.policy)}
    others = sorted({*rules, *free, *logins} - set(kinds))
    return [
        Person(one, kinds.get(one, ()), rules.get(one, 0), free.get(one, ""), logins.get(one))
        for one in (*sorted(kinds), *others)
    ]


def is_about(rule: AclRule, principal: str) -> bool:
    """True if the rule holds for this principal."""
    return rule.principal in (principal, ANYBODY)


class Question(NamedTuple):
    """May `principal` do `operation` with `target`, from `host`?"""

    principal: str
    operation: int
    target: Target
    host: str = ANY_HOST

    @property
    def words(self) -> tuple[str, ...]:
        """As it is typed: `User:loader write topic orders 10.0.0.5`."""
        kind = typed(KINDS[self.target.kind])
        name = () if self.target.kind == kafka.CLUSTER else (self.target.name,)
        host = () if self.host == ANY_HOST else (self.host,)
        return (self.principal, typed(OPERATIONS[self.operation]), kind, *name, *host)

    @property
    def text(self) -> str:
        """The words with quotes where they need them; `question` reads it."""
        return " ".join(map(shlex.quote, self.words))

    @property
    def flags(self) -> tuple[str, ...]:
        """The words of the command behind `penstock acl can`."""
        who, operation, *_ = self.words
        kind = typed(KINDS[self.target.kind])
        name = () if self.target.kind == kafka.CLUSTER else (self.target.name,)
        host = () if self.host == ANY_HOST else ("--host", self.host)
        return (who, operation, f"--{kind}", *name, *host)


def question(text: str) -> Question:
    """Reads WHO OPERATION KIND NAME [ADDRESS], with quotes as in a shell. Raises Failure."""
    try:
        words = shlex.split(text)
    except ValueError as wrong:
        raise usage(f"{text}: {wrong}", _EXAMPLE) from None
    if len(words) < 3 or words[2] not in KIND_WORDS:
        kinds = ", ".join(KIND_WORDS)
        raise usage(f"WHO OPERATION KIND NAME [ADDRESS]; kinds: {kinds}", _EXAMPLE)
    who, operation, word, *rest = words
    kind = KINDS.index(word.upper().replace("-", "_"))
    if kind == kafka.CLUSTER:
        rest = [kafka.CLUSTER_NAME, *rest]
    if not 1 <= len(rest) <= 2 or not rest[0]:
        raise usage(f"which {word}?", _EXAMPLE)
    host = rest[1] if len(rest) > 1 else ANY_HOST
    asked = Question(
        acls.principal_of(who), acls.operation_of(operation), Target(kind, rest[0]), host
    )
    acls.check_applies(asked.operation, asked.target)
    return asked


def question_of(rule: AclRule) -> Question | None:
    """The question that a rule decides; of one about all operations, the first of its kind. None
    where nothing can be asked about its kind."""
    if rule.kind not in kafka.SUPPORTED or typed(KINDS[rule.kind]) not in KIND_WORDS:
        return None
    operation = rule.operation
    if operation == kafka.ALL:
        operation = kafka.SUPPORTED[rule.kind][0]
    return Question(rule.principal, operation, Target(rule.kind, rule.name), rule.host)
