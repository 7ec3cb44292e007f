"""Denials as events of the log: each cause once a second, and not without end.

A client may ask for as many names as it likes, so a second has at most `MOST` lines;
`lines_left_out` of the next one counts the others.
"""

import time
from collections.abc import Callable
from typing import Final

from appliance.authorization.authorizer import Authorizer
from appliance.authorization.operations import CLUSTER
from appliance.authorization.standard import Denial, StandardAuthorizer
from appliance.authorization.words import KINDS, OPERATIONS, word
from appliance.ring.security_table import ACCESS_DENIED
from appliance.shell.log import NOTICE, Log

MOST: Final = 16
"""Lines a second and process."""
_EVERY_NS: Final = 1_000_000_000
_NAME_MOST: Final = 249


class DenialLog:
    """Tells of denials. monotonic_ns: a clock."""

    def __init__(self, log: Log, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._log = log
        self._monotonic_ns = monotonic_ns
        self._told: set[Denial] = set()
        self._since_ns = -_EVERY_NS
        self._left_out = 0

    def tell_denial(self, denial: Denial) -> None:
        """One event, or one more that is left out."""
        self._audit(denial)
        now_ns = self._monotonic_ns()
        if now_ns - self._since_ns >= _EVERY_NS:
            self._since_ns = now_ns
            self._told.clear()
        if denial in self._told or len(self._told) >= MOST:
            self._left_out += 1
            return
        self._told.add(denial)
        kind, name = word(denial.kind, KINDS), denial.name[:_NAME_MOST]
        fields: dict[str, object] = {
            "principal": denial.principal,
            "operation": word(denial.operation, OPERATIONS),
            "resource": kind if denial.kind == CLUSTER else f"{kind} {name}",
            "address": denial.address,
        }
        if self._left_out:
            fields["lines_left_out"], self._left_out = self._left_out, 0
        self._log.event(NOTICE, "access-denied", **fields)

    def _audit(self, denial: Denial) -> None:
        trail = self._log.trail
        if trail is None:
            return
        trail.region.count_denial(denial.operation, denial.kind)
        trail.write_entry(
            ACCESS_DENIED, denial, principal=denial.principal, address=denial.address,
            operation=word(denial.operation, OPERATIONS), resource=word(denial.kind, KINDS),
            name=denial.name,
        )  # fmt: skip


def tell_denials(authorizer: Authorizer, log: Log) -> None:
    """Let the log of a process tell what its authorizer refuses."""
    if isinstance(authorizer, StandardAuthorizer):
        authorizer.on_denial = DenialLog(log).tell_denial
