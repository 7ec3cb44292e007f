"""Pushing the page to a receiver of OpenTelemetry's protocol, from a thread of its own: whoever is
away, slow or wrong keeps nobody waiting, and costs one line in the log.

One push at a time. What is not delivered is not kept: counters are totals, so the next push says
all of it.
"""

import ssl
import threading
import zlib
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final

from appliance.config.otlp import Target
from appliance.shell.log import NOTICE, WARNING, Log

_PATIENCE_S: Final = 10.0
_NS_MS: Final = 1_000_000
_TOLD: Final = 200  # characters of what a receiver says
_HEADERS: Final = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}

Send = Callable[[Target, bytes], str]


class MetricsPusher:
    """page: makes the request, as bytes. send: delivers it, and says what was wrong, "" when
    nothing was."""

    def __init__(
        self, target: Target, page: Callable[[], bytes], log: Log, send: Send | None = None
    ) -> None:
        self._target = target
        self._page = page
        self._log = log
        self._send = send or deliver
        self._thread: threading.Thread | None = None
        self._due_ns = 0
        self._wrong = ""
        self._lost = 0

    def push_due(self, now_ns: int) -> None:
        """Push when it is time and the last push has ended. now_ns: monotonic."""
        if now_ns < self._due_ns or self.busy:
            return
        self._due_ns = now_ns + self._target.interval_ms * _NS_MS
        work = threading.Thread(target=self._push, args=(self._page(),), daemon=True)
        self._thread = work
        work.start()

    @property
    def busy(self) -> bool:
        """True while a push is in flight."""
        return self._thread is not None and self._thread.is_alive()

    def _push(self, body: bytes) -> None:
        wrong = self._send(self._target, body)
        if wrong:
            self._lost += 1
            if not self._wrong:
                self._log.event(WARNING, "otlp-not-taken", to=self._target.url, cause=wrong)
        elif self._wrong:
            self._log.event(NOTICE, "otlp-taken-again", to=self._target.url, pushes_lost=self._lost)
            self._lost = 0
        self._wrong = wrong


def deliver(target: Target, body: bytes) -> str:
    """POST it; why it was not taken, "" when it was."""
    packer = zlib.compressobj(1, wbits=31)
    packed = packer.compress(body) + packer.flush()
    where = target.host, target.port
    try:
        if target.secure:
            context = ssl.create_default_context()
            link: HTTPConnection = HTTPSConnection(*where, timeout=_PATIENCE_S, context=context)
        else:
            link = HTTPConnection(*where, timeout=_PATIENCE_S)
        try:
            link.request("POST", target.path, packed, {**_HEADERS, **dict(target.headers)})
            answer = link.getresponse()
            said = answer.read(_TOLD).decode(errors="replace")
        finally:
            link.close()
    except (OSError, HTTPException, ValueError) as why:
        return f"{type(why).__name__}: {why}"
    if 200 <= answer.status < 300:
        return ""
    return f"HTTP {answer.status} {answer.reason} {said}".strip()
