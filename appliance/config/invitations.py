"""Invitations of new nodes, as the setting `penstock.invitations` has them: for which node, the
hash of a token that nobody can guess, and until when.

The token itself is told to one person, typed once, and kept nowhere but on the node that has it.
"""

from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Final, NamedTuple

JOIN: Final = "penstock.join"
INVITATIONS: Final = "penstock.invitations"
TOKEN: Final = "penstock.join.token"
INVITED: Final = "invited"
PATTERN: Final = r"(\d{1,10}):([A-Za-z0-9_-]{43}):(\d{1,15})"
TOKEN_BYTES: Final = 24
"""Of chance: 192 bits."""


class Invitation(NamedTuple):
    """until_ms: since 1970."""

    node_id: int
    hashed: str
    until_ms: int

    def __str__(self) -> str:
        return f"{self.node_id}:{self.hashed}:{self.until_ms}"


def hashed(token: str) -> str:
    """SHA-256 in URL-safe base64. No salt: there are as many tokens as chance has bits."""
    return urlsafe_b64encode(sha256(token.encode()).digest()).decode().rstrip("=")


def parse(texts: tuple[str, ...]) -> list[Invitation]:
    """Parses checked texts (`PATTERN`)."""
    parts = (text.split(":") for text in texts)
    return [Invitation(int(number), its, int(until)) for number, its, until in parts]
