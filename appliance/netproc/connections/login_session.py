"""The state of one connection's login, on a listener that asks for one.

Invariant: before `KNOWN` a connection is served nothing but what a login takes. Changed by
`logins.py` alone.
"""

from abc import ABC, abstractmethod
from typing import Any, Final

from appliance.base.compiled import mypyc_attr

FIRST: Final = 0
"""ApiVersions or SaslHandshake may come."""
GREETING: Final = 1
"""SaslHandshake must come."""
TOKENS: Final = 2
"""Messages of its mechanism come."""
KNOWN: Final = 3
"""Its principal is proved."""

DEADLINE_NS: Final = 10_000_000_000
"""A login takes no longer, its first byte included."""
LATE_NS: Final = 1_000_000_000
"""A login is ended so much later than its client was told, or half of its life later if that is
less: what a client sent in time may have waited on its way."""
_NS_MS: Final = 1_000_000


class LoginSession:
    """stage: one of the above. listener: its number. deadline_ns: until when it must be known.
    mechanism: that it chose. raw: its messages come without Kafka's headers (SaslHandshake 0).
    server: the mechanism's side of ours, between two messages. claimed: the name of the user that
    the client gave, "" where there is none: a mistyped password would be told else. expires_ns:
    when it is hung up on unless it has logged in again, 0: never. again: it logs in again, and must
    stay who it is; unlike: by another mechanism. began_ns: when it did so last. by_token: its
    principal is proved by a delegation token."""

    __slots__ = (
        "again", "began_ns", "by_token", "claimed", "deadline_ns", "expires_ns", "listener",
        "mechanism", "raw", "server", "stage", "unlike",
    )  # fmt: skip

    def __init__(self, listener: int, now_ns: int) -> None:
        self.stage = FIRST
        self.listener = listener
        self.deadline_ns = now_ns + DEADLINE_NS
        self.mechanism = self.claimed = ""
        self.raw = self.again = self.unlike = self.by_token = False
        self.server: Any = None
        self.expires_ns = self.began_ns = 0

    def set_end(self, lifetime_ms: int, now_ns: int) -> None:
        """Its client was told that the login holds so long; 0: for ever."""
        life_ns = lifetime_ms * _NS_MS
        self.expires_ns = now_ns + life_ns + min(life_ns // 2, LATE_NS) if life_ns else 0

    @property
    def is_bare(self) -> bool:
        """True if the next frame is a message of the mechanism without Kafka's header."""
        return self.raw and self.stage == TOKENS

    @property
    def known(self) -> bool:
        """It may be served."""
        return self.stage == KNOWN


@mypyc_attr(allow_interpreted_subclasses=True)
class Doorkeeper(ABC):
    """Knows which listeners ask for a login."""

    @abstractmethod
    def session(self, listener: int, now_ns: int) -> LoginSession | None:
        """For a new connection there; None: it needs none."""
        ...

    @abstractmethod
    def restore_login(
        self, session: LoginSession, mechanism: str, expires_ns: int, by_token: bool
    ) -> None:
        """Restore a login that another process accepted. expires_ns, by_token: as of
        `LoginSession`."""
        ...

    @abstractmethod
    def longest(self, session: LoginSession) -> int:
        """Bytes of the longest request before the login."""
        ...
