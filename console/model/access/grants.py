"""ACLs that let a user write to topics, read them, take part in groups and run jobs (KIP-140, API
key 30), by words like `write:orders`, `read:sensor-*`, `group:billing` and `job:totals`.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from console.model.asking.failure import usage
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from spark_local.board import TOPIC

_CREATE: Final = (30, 2)
_TOPIC, _GROUP, _TRANSACTIONAL_ID = 2, 3, 5
_LITERAL, _PREFIXED = 3, 4
_READ, _WRITE, _CREATE_IT = 3, 4, 5
_ALLOW: Final = 3
_KINDS: Final = {
    "write": (_TOPIC, _WRITE),
    "read": (_TOPIC, _READ),
    "create": (_TOPIC, _CREATE_IT),
    "group": (_GROUP, _READ),
    "transactions": (_TRANSACTIONAL_ID, _WRITE),
}
"""Word → type of the resource and operation. Each of these but CREATE implies DESCRIBE."""
_JOB: Final = "job"
KNOWN: Final = ", ".join(
    ("write:TOPIC", "read:TOPIC", "create:TOPIC", "group:GROUP", "transactions:ID", "job:JOB")
)


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
    found = [grant for one in words for grant in _grants(one)]
    kinds = {one.kind for one in found}
    if "read" in kinds and "group" not in kinds:
        found.append(Grant("group", user, prefixed=True))
    return found


def _grants(word: str) -> list[Grant]:
    kind, colon, name = word.partition(":")
    if kind not in (*_KINDS, _JOB) or not colon or not name:
        raise usage(f"{word!r} is none of {KNOWN}")
    if kind == _JOB:
        return _of_job(name)
    prefixed = name.endswith("*") and name != "*"
    return [Grant(kind, name.removesuffix("*") if prefixed else name, prefixed)]


def _of_job(name: str) -> list[Grant]:
    """Rules for all that a job needs beside its sources and its sink: its groups, its transactional
    id, the topics of its dead letters and of the states of jobs."""
    if "*" in name:
        raise usage(f"{_JOB}:{name} names no single job", f"repeat --can {_JOB}:JOB for each job")
    topics = (TOPIC, f"{name}.dlq")
    return [
        Grant("group", name, prefixed=True),
        Grant("transactions", f"penstock-job-{name}", prefixed=False),
        *(Grant(kind, one, prefixed=False) for one in topics for kind in ("write", "create")),
        Grant("read", TOPIC, prefixed=False),
    ]


def allow(link: Link, user: str, grants: Iterable[Grant]) -> None:
    """Make these rules for `User:NAME`, from every host. Raises Failure."""
    rows = [_row(one, user) for one in grants]
    if not rows:
        return
    for one, answer in zip(
        rows, ask_server(link, *_CREATE, {"creations": rows}).results, strict=True
    ):
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
