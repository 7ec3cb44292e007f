"""The client's side of SASL/PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677): this node logs in at
another one.

A value machine: a server's messages go in, ours come out; chance comes from outside. No message of
an error shows a password.
"""

import base64
import binascii
import hmac
from dataclasses import field
from functools import lru_cache
from hashlib import new
from typing import Final

from appliance.authentication.mechanisms import BY_NAME, MOST_ITERATIONS, PLAIN
from appliance.authentication.refused import LoginRefused
from appliance.authentication.scram import salted
from appliance.base.dataclass import dataclass

_HEADER: Final = "n,,"
_HEADER_64: Final = "biws"
_salted = lru_cache(maxsize=4)(salted)
"""A reconnect hashes nothing: the salt of a user seldom changes."""


@dataclass(slots=True, frozen=True)
class NodeCredentials:
    """The login of this node at other nodes. mechanism: PLAIN or one of SCRAM."""

    mechanism: str
    user: str
    password: str = field(repr=False)


class ClientLogin:
    """One login over one connection."""

    __slots__ = ("_awaits", "_bare", "_credentials", "_nonce", "_proof_of_server")

    def __init__(self, credentials: NodeCredentials, nonce: str) -> None:
        """nonce: ours, printable, without a comma."""
        assert "," not in nonce and nonce.isprintable(), "a nonce is printable"
        name = credentials.user.replace("=", "=3D").replace(",", "=2C")
        self._credentials = credentials
        self._nonce = nonce
        self._bare = f"n={name},r={nonce}"
        self._proof_of_server = ""
        self._awaits = 1 if credentials.mechanism == PLAIN else 2

    def first_message(self) -> bytes:
        """The message that begins the login."""
        one = self._credentials
        if one.mechanism == PLAIN:
            return f"\0{one.user}\0{one.password}".encode()
        return f"{_HEADER}{self._bare}".encode()

    def answer_message(self, message: bytes) -> bytes | None:
        """The answer to a message of the server; None: the login is over. Raises LoginRefused for
        a server that says what none says, or that does not know the password itself."""
        assert self._awaits, "the login is over"
        self._awaits -= 1
        if self._credentials.mechanism == PLAIN:
            return None
        try:
            if self._awaits:
                return self._prove(message.decode())
            said = _attributes(message.decode()).get("v", "")
        except (ValueError, KeyError) as cause:
            raise LoginRefused("its answer is none of SCRAM") from cause
        if not hmac.compare_digest(said.encode(), self._proof_of_server.encode()):
            raise LoginRefused("it does not prove that it knows the password")
        return None

    def _prove(self, challenge: str) -> bytes:
        """Raises ValueError and KeyError."""
        told = _attributes(challenge)
        count, salt = int(told["i"]), _decoded(told["s"])
        if not told["r"].startswith(self._nonce) or told["r"] == self._nonce:
            raise ValueError("a nonce of somebody else")
        if not 1 <= count <= MOST_ITERATIONS:
            raise ValueError(f"{count} iterations")
        scram = BY_NAME[self._credentials.mechanism]
        hashed = _salted(scram, self._credentials.password, salt, count)
        unproved = f"c={_HEADER_64},r={told['r']}"
        signed = f"{self._bare},{challenge},{unproved}".encode()
        key = hmac.digest(hashed, b"Client Key", scram.digest)
        signature = hmac.digest(new(scram.digest, key).digest(), signed, scram.digest)
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        server_key = hmac.digest(hashed, b"Server Key", scram.digest)
        expected = hmac.digest(server_key, signed, scram.digest)
        self._proof_of_server = base64.b64encode(expected).decode()
        return f"{unproved},p={base64.b64encode(proof).decode()}".encode()


def _attributes(message: str) -> dict[str, str]:
    return {part[0]: part[2:] for part in message.split(",") if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as cause:
        raise ValueError(str(cause)) from cause
