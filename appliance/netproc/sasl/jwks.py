"""The public keys of an issuer of tokens (JWKS), from a file or over https, read on a thread.

Keys are read with the first token, again when they are old, and when a token names a key that is
not there: never more often than the backoff allows. A set that cannot be read leaves the earlier
one in force. One answer has at most `MOST_BYTES`, takes at most `MOST_S` seconds, and is followed
nowhere else.
"""

import ssl
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from appliance.authentication.tokens import Jwk, KeyPlace, parse_keys

MOST_BYTES: Final = 1 << 20
MOST_S: Final = 5.0
_PIECE: Final = 1 << 16
_NS: Final = 1_000_000


class TokenKeys:
    """keys: as read last; another list with each reading, so a thread may go on with the earlier
    one. report: tells why keys cannot be read. monotonic_ns: a clock."""

    def __init__(
        self,
        place: KeyPlace,
        report: Callable[[str], None],
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.place = place
        self.keys: list[Jwk] = []
        self._report = report
        self._monotonic_ns = monotonic_ns
        self._context = context
        self._read_ns = 0
        self._next_ns = 0
        self._pause_ms = place.backoff_ms

    @property
    def are_old(self) -> bool:
        """True if the keys are to be read before they are used."""
        age_ns = self._monotonic_ns() - self._read_ns
        return not self._read_ns or age_ns >= self.place.refresh_ms * _NS

    def renew(self) -> bool:
        """Read them, unless they were tried a moment ago; True if they are other ones now. On a
        thread."""
        now_ns = self._monotonic_ns()
        if now_ns < self._next_ns:
            return False
        try:
            found = parse_keys(read_url(self.place.url, self._context))
        except (OSError, ValueError) as why:
            self._pause_ms = min(2 * self._pause_ms, self.place.backoff_max_ms)
            self._next_ns = self._monotonic_ns() + self._pause_ms * _NS
            self._report(f"{self.place.url}: {why}")
            return False
        self._pause_ms = self.place.backoff_ms
        self._read_ns = self._monotonic_ns()
        # A token with an unknown key must not make us ask the issuer again and again.
        self._next_ns = self._read_ns + self.place.backoff_max_ms * _NS
        changed = found != self.keys
        self.keys = found
        return changed


def read_url(url: str, context: ssl.SSLContext | None = None) -> bytes:
    """The bytes at a file: or https: URL. Raises OSError, ValueError."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        with open(unquote(parts.path), "rb") as file:
            data = file.read(MOST_BYTES + 1)
        return _bounded(data)
    if parts.scheme != "https" or not parts.hostname:
        raise ValueError("only file: and https: are read")
    return _read_https(parts, context or ssl.create_default_context())


def _read_https(parts: SplitResult, context: ssl.SSLContext) -> bytes:
    """Raises OSError, ValueError."""
    import http.client  # here: few appliances check tokens, and all processes would share it

    assert parts.hostname
    until = time.monotonic() + MOST_S
    link = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=MOST_S, context=context)
    try:
        path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        link.request("GET", path, headers={"Accept": "application/json"})
        answer = link.getresponse()
        if answer.status != http.HTTPStatus.OK:
            raise ValueError(f"it answers with status {answer.status}")
        data = b""
        while piece := answer.read1(_PIECE):
            data = _bounded(data + piece)
            if time.monotonic() > until:
                raise TimeoutError(f"it takes longer than {MOST_S:g} s")
        return data
    except http.client.HTTPException as why:
        raise ValueError(f"it answers otherwise than by HTTP: {why!r}") from why
    finally:
        link.close()


def _bounded(data: bytes) -> bytes:
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    return data
