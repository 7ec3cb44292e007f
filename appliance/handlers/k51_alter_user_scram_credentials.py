"""AlterUserScramCredentials, API key 51, version 0 (flexible), KIP-554."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, Final

from appliance.authorization.apis import declared
from appliance.controller.scram import Deletion, Upsertion, alter
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values

PART: Final = 256
"""Alterations that are decided at once: each takes some twenty µs until it is in the log."""
_TWICE: Final = 2


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    deletions = [Deletion(one.name, one.mechanism) for one in request.deletions]
    upsertions = [
        Upsertion(
            one.name, one.mechanism, one.iterations, bytes(one.salt), bytes(one.salted_password)
        )
        for one in request.upsertions
    ]
    records, results = alter(context.situation.image, deletions, upsertions)
    rows = [
        {"user": name, "error_code": result.code, "error_message": result.message}
        for name, result in results.items()
    ]
    return Answer(records, {"throttle_time": 0, "results": rows})


def split(request: Message) -> Generator[None, None, Sequence[Message]]:
    """Parts of so many alterations. A user that is named twice is not altered: both are in the same
    part, and what names it once more is in none."""
    if len(request.deletions) + len(request.upsertions) <= PART:
        return ()
    users: dict[str, tuple[list[Any], list[Any]]] = {}
    for kind, rows in enumerate((request.deletions, request.upsertions)):
        for at, one in enumerate(rows, 1):
            named = users.setdefault(one.name, ([], []))
            if len(named[0]) + len(named[1]) < _TWICE:
                named[kind].append(one)
            if at % PART == 0:
                yield
    parts: list[Message] = []
    some: tuple[list[Any], list[Any]] = ([], [])
    for deletions, upsertions in users.values():
        some[0].extend(deletions)
        some[1].extend(upsertions)
        if len(some[0]) + len(some[1]) >= PART:
            parts.append(_part(request, *some))
            some = [], []
            yield
    if some[0] or some[1]:
        parts.append(_part(request, *some))
    return parts


def _part(request: Message, deletions: list[Any], upsertions: list[Any]) -> Message:
    return replace(request, deletions=tuple(deletions), upsertions=tuple(upsertions))


def refused(request: Message, told: Values) -> Values:
    """A row for each user."""
    names = sorted({one.name for one in (*request.deletions, *request.upsertions)})
    return {"results": [{**told, "user": name} for name in names]}


API = Api(*declared(51), decide, refused=refused, split=split)
