"""Applying what findings propose, one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from console.model.doctor.finding import Finding
from console.model.doctor.host import Host


@dataclass(slots=True, frozen=True)
class Applied:
    """problem: why the command failed, "" when it did not."""

    finding: Finding
    problem: str


def apply(
    host: Host, found: Sequence[Finding], allowed: Callable[[Finding], bool]
) -> list[Applied]:
    """Run the commands of those that this user may have applied and that are allowed; what the
    others need is for a person."""
    mine = (one for one in found if one.may_be_applied(host.uid()))
    return [Applied(one, host.run(one.command)) for one in mine if allowed(one)]
