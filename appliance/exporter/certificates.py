"""When the certificates end that clients are really shown: a handshake with each listener of our
own, once a minute, from a thread.

What is in a file, or in a setting, may not be what is served: this is what is. A process of the
appliance does for it what it does for any client that connects.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from appliance.exporter.exposition import Page
from appliance.exporter.post import Address
from appliance.observer.shown import ShownCertificate, certificate

EVERY_NS: Final = 60_000_000_000
_PATIENCE_S: Final = 5.0

Shows = Callable[[str, int, float], ShownCertificate]


class ListenerCertificates:
    """addresses: every listener, by now. shows: the certificate of one; raises OSError,
    ValueError."""

    def __init__(
        self, addresses: Callable[[], Iterable[Address]], shows: Shows = certificate
    ) -> None:
        self._addresses = addresses
        self._shows = shows
        self._due_ns = 0
        self._running: threading.Thread | None = None
        self._ends_s: dict[str, float] = {}

    def begin_reading(self, now_ns: int) -> None:
        """Begin one where it is time. now_ns: monotonic."""
        if now_ns < self._due_ns or (self._running is not None and self._running.is_alive()):
            return
        self._due_ns = now_ns + EVERY_NS
        wanted = [one for one in self._addresses() if one.tls]
        if not wanted:
            self._ends_s = {}
            return
        self._running = threading.Thread(
            target=self._run, args=(wanted,), name="certificates", daemon=True
        )
        self._running.start()

    def write_page(self, page: Page) -> None:
        """Adds the certificates seen last; none for a listener without an answer."""
        for listener, ends_s in sorted(self._ends_s.items()):
            page.add("penstock_certificate_expiry_timestamp_seconds", round(ends_s), listener)

    def _run(self, wanted: Sequence[Address]) -> None:
        found = {}
        for one in wanted:
            try:
                found[one.listener] = self._shows(one.host, one.port, _PATIENCE_S).ends_s
            except (OSError, ValueError):
                continue  # that nobody is served is told by others
        self._ends_s = found
