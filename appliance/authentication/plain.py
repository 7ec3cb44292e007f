"""SASL/PLAIN (RFC 4616) as Apache Kafka's server has it: one message of the client, in clear.

Called by who serves logins; whether the password is the user's is decided elsewhere, because it may
take milliseconds.
"""

import hmac
from collections.abc import Mapping
from typing import NamedTuple

from appliance.authentication.refused import LoginRefused

_PARTS = 3


class Claim(NamedTuple):
    """The claim of a client. acts_as: the user that it wants to act as, "": as itself."""

    acts_as: str
    user: str
    password: str

    def check_acts_as(self) -> None:
        """Checked behind the password, as in Apache Kafka. Raises LoginRefused."""
        if self.acts_as and self.acts_as != self.user:
            raise LoginRefused(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )


NOT_VALID = "Authentication failed: Invalid username or password"


def parse(message: bytes) -> Claim:
    """Raises LoginRefused for what is no such message."""
    parts = message.decode(errors="replace").split("\0")
    if len(parts) != _PARTS:
        count = min(len(parts), _PARTS + 1)
        raise LoginRefused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {count}")
    claim = Claim(*parts)
    if not claim.user:
        raise LoginRefused("Authentication failed: username not specified")
    if not claim.password:
        raise LoginRefused("Authentication failed: password not specified")
    return claim


def is_known(users: Mapping[str, str], user: str, password: str) -> bool:
    """True if these users have that one with that password. Takes as long for who is not there."""
    known = users.get(user)
    same = hmac.compare_digest((known or "").encode(), password.encode())
    return same and known is not None
