"""A change of an entity's quotas as a plan: before and after, checked, done once."""

from collections.abc import Callable
from typing import Final

from appliance.quotas.limits import CONNECTION, IP, Entity, entity_text
from console.model.asking.change import Change, Proposal, Tier
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link
from console.model.quotas.quota_rules import Changes, Quotas, flags
from console.model.quotas.quota_values import exact, shown
from console.model.quotas.quotas import all_quotas, change, own_quotas

NOTHING: Final = "nothing to change: it has this value already"
WhatIf = Callable[[Link, Quotas, Entity, Changes], tuple[str, ...]]
"""Sentences about what a change of an entity's quotas would have done; the quotas as they are."""


def check(entity: Entity, changes: Changes) -> None:
    """Raises Failure (USAGE) for what no broker takes: connections are counted by address, and
    nothing else is."""
    by_address = IP in dict(entity)
    if by_address and len(entity) > 1:
        raise usage(
            "an address cannot be combined: connections have neither user nor client id yet"
        )
    for kind in changes:
        if (kind == CONNECTION) != by_address:
            what = (
                f"{kind} is for users and client ids" if by_address else f"{kind} is for an address"
            )
            raise usage(f"{what}, and this is {entity_text(entity)}")


def words(entity: Entity, changes: Changes) -> tuple[str, ...]:
    """The command that does the same, behind `penstock`."""
    if any(value is not None for value in changes.values()):
        told = [f"{kind}={exact(kind, value) or 'none'}" for kind, value in changes.items()]
        return ("quota", "set", *flags(entity), *told)
    return ("quota", "unset", *flags(entity), *changes)


def proposal(entity: Entity, changes: Changes, what_if: WhatIf) -> Proposal:
    """Raises Failure (USAGE)."""
    check(entity, changes)

    def plan(link: Link) -> Change:
        asked = change(link, entity, dict(changes), dry_run=True)
        real = {one.kind: one.after for one in asked if one.before != one.after}
        before = {one.kind: one.before for one in asked}
        if not real:
            raise Failure(NOTHING, "Esc returns to the form", name="NO_CHANGE")
        return Change(
            verb="Set" if any(one is not None for one in real.values()) else "Take away",
            words=words(entity, real),
            apply=lambda link: _apply(link, entity, real),
            seen=lambda link: _seen(link, entity, real),
            says=what_if(link, all_quotas(link), entity, real),
            columns=("quota", "before", "after"),
            rows=tuple(
                (kind, shown(kind, before.get(kind)) or "none", shown(kind, one) or "none")
                for kind, one in sorted(real.items())
            ),
            undo=proposal(entity, {kind: before.get(kind) for kind in real}, what_if),
        )

    return Proposal(f"Quotas of {entity_text(entity)}", Tier.PLAN, plan)


def _apply(link: Link, entity: Entity, real: Changes) -> str:
    change(link, entity, dict(real), dry_run=False)
    return _told(real)


def _seen(link: Link, entity: Entity, real: Changes) -> str | None:
    own = own_quotas(link, entity)
    return _told(real) if all(own.get(kind) == one for kind, one in real.items()) else None


def _told(real: Changes) -> str:
    return ", ".join(f"{kind} {shown(kind, one) or 'taken away'}" for kind, one in real.items())
