"""ACLs as `kafka-acls --list` of Apache Kafka prints them, read back. Each line is a rule, the head
of the rules of a resource, or blank; any other line is refused, so that none is left out."""

import re
from collections.abc import Iterator
from typing import Final

from appliance.authorization.standard import AclRule
from appliance.authorization.words import KINDS, OPERATIONS, PATTERNS, PERMISSIONS
from console.model.access.acls import Target, check_applies
from console.model.asking.failure import Failure, usage

_HEAD: Final = re.compile(
    r"Current ACLs for resource `ResourcePattern"
    r"\(resourceType=(\w+), name=(.*), patternType=(\w+)\)`: *"
)
_RULE: Final = re.compile(
    r"\(principal=(.+:.+), host=(\S+), operation=(\w+), permissionType=(\w+)\)"
)
_ADVICE: Final = "FILE is what kafka-acls --list of Apache Kafka 2.4 or newer prints, unchanged"
_LONGEST: Final = 120


def read_rules(text: str) -> list[AclRule]:
    """Returns the rules in their order, each once. Raises Failure (USAGE) with the number of the
    first line that is no rule, and for a text without any."""
    found = dict.fromkeys(_rules(text))
    if not found:
        raise usage("there is no ACL in it", _ADVICE)
    return list(found)


def _rules(text: str) -> Iterator[AclRule]:
    about: Target | None = None
    for number, line in enumerate(text.splitlines(), 1):
        said = line.strip()
        if not said:
            continue
        if head := _HEAD.fullmatch(said):
            kind = _number(head[1], KINDS, number)
            about = Target(kind, head[2], _number(head[3], PATTERNS, number))
        elif about is not None and (rule := _RULE.fullmatch(said)):
            operation = _number(rule[3], OPERATIONS, number)
            try:
                check_applies(operation, about)
            except Failure as problem:
                raise usage(f"line {number}: {problem}", _ADVICE) from None
            permission = _number(rule[4], PERMISSIONS, number)
            yield AclRule(
                about.kind, about.pattern, about.name, rule[1], rule[2], operation, permission
            )
        else:
            raise usage(f"line {number} is no ACL: {said[:_LONGEST]!r}", _ADVICE)


def _number(word: str, words: tuple[str, ...], line: int) -> int:
    """The number of a word of Kafka's that rules can have: neither UNKNOWN nor a filter's."""
    if word not in words or word in ("UNKNOWN", "ANY", "MATCH"):
        raise usage(f"line {line}: {word} is not known here", _ADVICE)
    return words.index(word)
