"""Certificates that TLS listeners present, and their time of validity.

It is looked at by a handshake, from here, without verifying anything: that is what clients are
shown, whatever the files say.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from appliance.observer.shown import ShownCertificate, certificate

SOON_S: Final = 14 * 86_400.0
AT_ONCE_S: Final = 2 * 86_400.0
EVERY_S: Final = 60.0
_PATIENCE_S: Final = 3.0

Shows = Callable[[str, int, float], ShownCertificate]


class Secured(NamedTuple):
    """A listener with TLS. name: "" where nobody has told it. host, port: where clients are
    sent."""

    name: str
    host: str
    port: int


class Shown(NamedTuple):
    """certificate: None where none was shown; problem says why."""

    listener: Secured
    certificate: ShownCertificate | None
    problem: str = ""


def read_certificate(listener: Secured, shows: Shows = certificate) -> Shown:
    """Reads the certificate presented there now, within seconds."""
    try:
        return Shown(listener, shows(listener.host, listener.port, _PATIENCE_S))
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
        return Shown(listener, None, str(why))


class Watch:
    """Looks at the same listeners once a minute, however often it is asked."""

    def __init__(
        self, shows: Shows = certificate, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._shows = shows
        self._clock = clock
        self._due_s = float("-inf")
        self._of: Sequence[Secured] = ()
        self._found: tuple[Shown, ...] = ()

    def read_certificates(self, listeners: Iterable[Secured]) -> tuple[Shown, ...]:
        """Returns the presented certificates, at most a minute old."""
        wanted, now_s = list(listeners), self._clock()
        if wanted != self._of or now_s >= self._due_s:
            self._of, self._due_s = wanted, now_s + EVERY_S
            self._found = tuple(read_certificate(one, self._shows) for one in wanted)
        return self._found


def describe_problem(found: ShownCertificate, now_s: float) -> str:
    """The problem with a certificate's validity, as a part of a sentence; "" when it is good for
    another two weeks. now_s: since 1970.
    """
    if now_s < found.begins_s:
        return f"is not valid for another {_span(found.begins_s - now_s)}"
    left_s = found.ends_s - now_s
    if left_s <= 0:
        return f"has ended {_span(-left_s)} ago"
    return f"ends in {_span(left_s)}" if left_s < SOON_S else ""


def _span(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "less than a minute"
