"""The form for quotas: their entity, and the value of each kind."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from appliance.quotas.limits import (
    CLIENT_ID,
    CONNECTION,
    FETCH,
    IP,
    MUTATION,
    PRODUCE,
    REQUEST,
    USER,
    Entity,
    entity_text,
)
from console.model.asking.change import Proposal
from console.model.asking.failure import Failure, usage
from console.model.quotas.quota_change import check, proposal
from console.model.quotas.quota_rules import Changes, together
from console.model.quotas.quota_values import KINDS, brief, exact, example, read
from console.screens.changes.form import Field, Form, Values
from console.show.what_if import what_if

DEFAULT: Final = "<default>"
"""Stands for everybody without a quota of their own, as in Kafka's tools."""
_ABOUT: Final = {
    USER: "Requests of this user; <default> is each user without a quota of its own.",
    CLIENT_ID: "Requests with this client id; <default> is each one without a quota of its own.",
    IP: "New connections from this address; <default> is each address. It cannot be combined.",
}
_SAYS: Final = {
    PRODUCE: "how much is written.",
    FETCH: "how much is read.",
    REQUEST: "time of network threads; 100 % is one CPU.",
    MUTATION: "partitions created, deleted and added.",
    CONNECTION: "new connections.",
}
_TITLES: Final = {USER: "User", CLIENT_ID: "Client id", IP: "Address"}


def new(entity: Entity) -> Form:
    """Quotas of somebody who is named there. entity: stands there at first."""
    named = {kind: DEFAULT if name is None else name for kind, name in entity}
    named = {kind: name for kind, name in named.items() if name.isprintable()}  # can be typed
    whose = tuple(
        Field(kind, title, named.get(kind, ""), about=_ABOUT[kind])
        for kind, title in _TITLES.items()
    )

    def propose(values: Values) -> Proposal:
        changes = _changes(values, {})
        if not changes:
            raise usage("no quota is named", "for example 10MB/s behind producer_byte_rate")
        return proposal(_entity(values), changes, what_if)

    return Form(
        "New quotas", (*whose, *(_field(kind, "") for kind in KINDS)), propose,
        preview=_preview,
    )  # fmt: skip


def edit(entity: Entity, own: Mapping[str, float], first: str) -> Form:
    """The quotas that an entity has. first: the one that the cursor is on at first, or ""."""
    kinds = [kind for kind in KINDS if (kind == CONNECTION) == (IP in dict(entity))]
    kinds.sort(key=lambda kind: kind != first)
    before = {kind: exact(kind, own.get(kind)) for kind in kinds}

    def propose(values: Values) -> Proposal:
        return proposal(entity, _changes(values, before), what_if)

    return Form(
        f"Quotas of {entity_text(entity)}",
        tuple(_field(kind, before[kind]) for kind in kinds), propose,
        preview=lambda _: f"Counted together: {together(entity)}. An empty line takes one away.",
    )  # fmt: skip


def _field(kind: str, value: str) -> Field:
    return Field(
        kind, brief(kind).capitalize(), value, hint=f"for example {example(kind)}",
        about=f"{kind}: {_SAYS[kind]}", check=partial(_wrong, kind),
    )  # fmt: skip


def _wrong(kind: str, text: str) -> str:
    try:
        if text.strip():
            read(kind, text)
    except Failure as wrong:
        return f"{wrong.message}; {wrong.hint}"
    return ""


def _changes(values: Values, before: Mapping[str, str]) -> Changes:
    """Those that are typed otherwise than they were."""
    typed = {kind: values[kind].strip() for kind in KINDS if kind in values}
    return {
        kind: read(kind, text) if text else None
        for kind, text in typed.items()
        if text != before.get(kind, "")
    }


def _entity(values: Values) -> Entity:
    named = {kind: values[kind].strip() for kind in _TITLES if values[kind].strip()}
    if not named:
        raise usage("whose quotas?", "a user, a client id, both, or an address")
    return tuple((kind, None if name == DEFAULT else name) for kind, name in sorted(named.items()))


def _preview(values: Values) -> str:
    try:
        entity = _entity(values)
        check(entity, {})
    except Failure as wrong:
        return f"{wrong.message} ({wrong.hint})" if wrong.hint else wrong.message
    return f"Counted together: {together(entity)}."
