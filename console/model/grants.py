"""ACLs that let a user write to topics, read them and take part in groups (KIP-140, API key 30), by
words like `write:orders`, `read:sensor-*` and `group:billing`.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from console.model.failure import usage
from console.model.link import Link
from console.model.plain_request import ask
from console.model.refusals import check

_CREATE: Final = (30, 2)
_TOPIC, _GROUP = 2, 3
_LITERAL, _PREFIXED = 3, 4
_READ, _WRITE = 3, 4
_ALLOW: Final = 3
_KINDS: Final = {"write": (_TOPIC, _WRITE), "read": (_TOPIC, _READ), "group": (_GROUP, _READ)}
"""Word → type of the resource and operation. Each of these implies DESCRIBE."""


class Grant(NamedTuple):
    """One rule that allows. prefixed: of all names that begin with this one."""

    kind: str
    name: str
    prefixed: bool

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}{'*' * self.prefixed}"


def read(words: Iterable[str], user: str) -> list[Grant]:
    """The rules that these words mean. Without a word about groups, a user that reads may take
    part in groups whose names begin with its own. Raises Failure."""
    found = [_grant(one) for one in words]
    kinds = {one.kind for one in found}
    if "read" in kinds and "group" not in kinds:
        found.append(Grant("group", user, prefixed=True))
    return found


def _grant(word: str) -> Grant:
    kind, colon, name = word.partition(":")
    if kind not in _KINDS or not colon or not name:
        raise usage(f"{word!r} is none of write:TOPIC, read:TOPIC, group:GROUP")
    prefixed = name.endswith("*") and name != "*"
    return Grant(kind, name.removesuffix("*") if prefixed else name, prefixed)


def allow(link: Link, user: str, grants: Iterable[Grant]) -> None:
    """Make these rules for `User:NAME`, from every host. Raises Failure."""
    rows = [_row(one, user) for one in grants]
    if not rows:
        return
    for one, answer in zip(rows, ask(link, *_CREATE, {"creations": rows}).results, strict=True):
        about = f"the rule about {one['resource_name']}"
        check(int(answer.error_code), answer.error_message, about)


def _row(one: Grant, user: str) -> dict[str, Any]:
    resource, operation = _KINDS[one.kind]
    return {
        "resource_type": resource, "resource_name": one.name,
        "resource_pattern_type": _PREFIXED if one.prefixed else _LITERAL,
        "principal": f"User:{user}", "host": "*", "operation": operation,
        "permission_type": _ALLOW,
    }  # fmt: skip
