"""Formats the effect of quotas in sentences, the worst first."""

from collections.abc import Collection, Sequence
from typing import Final

from appliance.quotas.limits import Entity, entity_text
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.local.recorded import recorded
from console.model.quotas.quota_rules import Changes, Quotas, after
from console.model.quotas.quota_values import shown
from console.model.quotas.what_if import KINDS, Outcome, outcomes
from console.show.figures import age, in_bytes, some

_NAMED: Final = 5


def what_if(link: Link, before: Quotas, entity: Entity, changes: Changes) -> tuple[str, ...]:
    """The effect of the change on the clients of an appliance of this host in the last ten minutes;
    elsewhere the reason why it is unknown.
    """
    told = sentences((), changes, 0)
    if any(kind in KINDS for kind in changes):
        try:
            found = recorded(link)
        except Failure as why:
            return (f"Whom it would have throttled is not known: {why.message}.",)
        held = outcomes(found.traffic, before, after(before, entity, changes))
        told = sentences(held, changes, found.seconds)
        if found.left_out:
            told.append(f"{some(found.left_out, 'client')} at a time could not be recorded.")
    return tuple(told)


def sentences(found: Sequence[Outcome], kinds: Collection[str], recorded_s: int) -> list[str]:
    """found: what the change would have done to whom; kinds: the quotas that it changes;
    recorded_s: how far back traffic is known."""
    held = [one for one in found if one.pauses.paused_ms]
    told = [_held(one, recorded_s) for one in held[:_NAMED]]
    if held[_NAMED:]:
        told.append(f"And {some(len(held) - _NAMED, 'more client')} would have been throttled.")
    if not held and any(kind in KINDS for kind in kinds):
        told.append(_nobody(len(found), recorded_s))
    if any(one.before is not None for one in found):
        told.append(
            "Who has a quota already was recorded with it: what they wanted beyond is not known."
        )
    if rest := [kind for kind in kinds if kind not in KINDS]:
        told.append(
            f"What clients use of {', '.join(rest)} is not recorded: whom it would hold up is not"
            " known."
        )
    return told


def _nobody(clients: int, recorded_s: int) -> str:
    if not recorded_s:
        return "Whom it would have throttled is not known: nothing is recorded yet."
    if not clients:
        return f"In the last {age(recorded_s)} no client with this quota sent or read anything."
    whom = some(clients, "client")
    return f"In the last {age(recorded_s)} it would have throttled none of {whom}."


def _held(one: Outcome, recorded_s: int) -> str:
    names = {"user": one.user, "client-id": one.client_id}
    who = " ".join(f"{kind}={name}" for kind, name in names.items() if name)
    seconds = one.pauses.paused_ms / 1000
    about = age(seconds) if seconds >= 1 else "less than 1 s"
    left = f", with {in_bytes(one.pauses.left)} still waiting" if one.pauses.left else ""
    return (
        f"{who} would have been throttled for about {about} of the last {age(recorded_s)}{left}"
        f" ({one.kind} {shown(one.kind, one.limit)} of {entity_text(one.rule)};"
        f" its busiest second was {in_bytes(one.peak)})."
    )
