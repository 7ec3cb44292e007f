"""SASL/OAUTHBEARER (RFC 7628, KIP-255): one message of the client with a token, in clear.

A bad token is answered with `INVALID_TOKEN`; the client says `ABORT` then, and is refused. Called
by the login desk; the token is verified elsewhere (`tokens.py`), because it takes a while.
"""

import re
from typing import Final, NamedTuple

from appliance.authentication.refused import LoginRefused

INVALID_TOKEN: Final = '{"status":"invalid_token"}'
ABORT: Final = b"\x01"
LONGEST_MESSAGE: Final = 65_536
"""Bytes: a token has up to some KB."""
_FIRST: Final = re.compile(
    "n,(?:a=(?P<acts_as>(?:[\x01-+.-<>-\x7f\\-]|=2C|=3D)+))?,\x01"
    "(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)", re.ASCII)


class Bearer(NamedTuple):
    """acts_as: the user that the client wants to act as, "": that of its token."""

    acts_as: str
    token: str

    def check_acts_as(self, user: str) -> None:
        """Raises LoginRefused, in Kafka's words."""
        if self.acts_as and self.acts_as != user:
            raise LoginRefused(
                f"Authentication failed: Client requested an authorization id ({self.acts_as}) that"
                f" is different from the token's principal name ({user})"
            )


def parse_bearer(message: bytes) -> Bearer:
    """Raises LoginRefused for what is no such message."""
    match = None
    if len(message) <= LONGEST_MESSAGE:
        match = _FIRST.fullmatch(message.decode(errors="replace"))
    if match is None:
        raise LoginRefused
    pairs = dict(one.split("=", 1) for one in match["pairs"].split("\x01") if one)
    found = _AUTH.fullmatch(pairs.get("auth", ""))
    if found is None or found["scheme"].lower() != "bearer":
        raise LoginRefused
    return Bearer(match["acts_as"] or "", found["token"])
