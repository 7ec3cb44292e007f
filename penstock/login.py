"""A login over a connection of our own: SASL/PLAIN, SCRAM and OAUTHBEARER from the client's side
(RFC 4616, RFC 5802, RFC 7677, RFC 7628), in SaslHandshake 1 and SaslAuthenticate 0 (API keys 17 and
36, KIP-43, KIP-152).

Passwords and tokens are in no message of an error.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final

from penstock.frames import exchange
from penstock.tokens import OAUTHBEARER, TokenSource, source_of

SCRAMS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Mechanism → hashlib's name of its digest."""
PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *SCRAMS)
_MOST: Final = 1 << 20
_MOST_ITERATIONS: Final = 1 << 20  # a server that is not who it says must not keep us busy
_HANDSHAKE: Final = 17
_AUTHENTICATE: Final = 36
_UNSUPPORTED_MECHANISM: Final = 33
_FAILED: Final = 58
_HEADER: Final = "n,,"
_HEADER_64: Final = "biws"


class LoginFailed(OSError):
    """Raised when the server does not accept the login, or does not prove that it knows the
    password."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.strerror = what


class Login:
    """The credentials of a client. mechanism: one of MECHANISMS, or OAUTHBEARER with the source of
    its tokens."""

    def __init__(
        self, mechanism: str, user: str, password: str, tokens: TokenSource | None = None
    ) -> None:
        self.mechanism = mechanism
        self.user = user
        self._password = password
        self._tokens = tokens

    def __repr__(self) -> str:
        return f"Login({self.mechanism}, {self.user})"

    def log_in(self, peer: socket.socket) -> None:
        """Log in over a connection that has carried nothing yet. Raises OSError, LoginFailed among
        it."""
        try:
            self._choose(peer)
            if self._tokens is not None:
                _bear(peer, self._tokens.token())
            elif self.mechanism == PLAIN:
                _authenticate(peer, f"\0{self.user}\0{self._password}".encode())
            else:
                self._scram(peer)
        except (ValueError, struct.error, KeyError, binascii.Error) as problem:
            raise LoginFailed(f"the login was answered as no broker does: {problem}") from None

    def _choose(self, peer: socket.socket) -> None:
        name = self.mechanism.encode()
        answer = _ask(peer, _HANDSHAKE, 1, struct.pack(">h", len(name)) + name)
        (code,) = struct.unpack_from(">h", answer)
        if code:
            if code != _UNSUPPORTED_MECHANISM:
                raise LoginFailed("that listener has no SASL: it takes no logins")
            offered = ", ".join(_texts(answer, 2)) or "none"
            raise LoginFailed(f"sasl.mechanism={self.mechanism} is not offered there: {offered}")

    def _scram(self, peer: socket.socket) -> None:
        """Raises LoginFailed, ValueError, KeyError."""
        digest = SCRAMS[self.mechanism]
        name = self.user.replace("=", "=3D").replace(",", "=2C")
        nonce = secrets.token_urlsafe(24)
        bare = f"n={name},r={nonce}"
        challenge = _authenticate(peer, f"{_HEADER}{bare}".encode()).decode()
        told = _attributes(challenge)
        count = int(told["i"])
        if not told["r"].startswith(nonce) or not 1 <= count <= _MOST_ITERATIONS:
            raise ValueError("a nonce or a number of iterations that cannot be")
        salt = base64.b64decode(told["s"], validate=True)
        salted = hashlib.pbkdf2_hmac(digest, self._password.encode(), salt, count)
        unproved = f"c={_HEADER_64},r={told['r']}"
        signed = f"{bare},{challenge},{unproved}".encode()
        key = hmac.digest(salted, b"Client Key", digest)
        signature = hmac.digest(hashlib.new(digest, key).digest(), signed, digest)
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        final = f"{unproved},p={base64.b64encode(proof).decode()}".encode()
        said = _attributes(_authenticate(peer, final).decode())
        server_key = hmac.digest(salted, b"Server Key", digest)
        expected = base64.b64encode(hmac.digest(server_key, signed, digest)).decode()
        if not hmac.compare_digest(said.get("v", ""), expected):
            raise LoginFailed("the server does not prove that it knows the password")


def login_of(properties: Mapping[str, Any]) -> Login | None:
    """The login that librdkafka's properties ask for; None where they ask for none, or for one that
    these requests cannot do."""
    if not str(properties.get("security.protocol", "")).lower().startswith("sasl"):
        return None
    mechanism = str(properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or "")
    if mechanism.upper() == OAUTHBEARER:
        tokens = source_of(properties)
        return None if tokens is None else Login(OAUTHBEARER, "", "", tokens)
    if mechanism not in MECHANISMS:
        return None
    user, password = properties.get("sasl.username"), properties.get("sasl.password")
    return Login(mechanism, str(user or ""), str(password or ""))


def offered(peer: socket.socket) -> list[str]:
    """The mechanisms that a server offers to a client that has said nothing yet; none where nobody
    logs in. Raises OSError and ValueError for what is no broker."""
    try:
        answer = _ask(peer, _HANDSHAKE, 1, struct.pack(">h", 0))
        (code,) = struct.unpack_from(">h", answer)
        return _texts(answer, 2) if code == _UNSUPPORTED_MECHANISM else []
    except struct.error as problem:
        raise ValueError(str(problem)) from None


def _bear(peer: socket.socket, token: str) -> None:
    """Raises LoginFailed with the status that the server tells."""
    refused = _authenticate(peer, f"{_HEADER}\x01auth=Bearer {token}\x01\x01".encode())
    if refused:
        status = re.search(r'"status"\s*:\s*"([\w ]{1,40})"', refused.decode(errors="replace"))
        why = status[1] if status else "the server says no more"
        raise LoginFailed(f"the token is not accepted: {why}")


def _authenticate(peer: socket.socket, message: bytes) -> bytes:
    """The server's message. Raises LoginFailed."""
    answer = _ask(peer, _AUTHENTICATE, 0, struct.pack(">i", len(message)) + message)
    code, size = struct.unpack_from(">hh", answer)
    at = 4 + max(size, 0)
    if code == _FAILED:
        raise LoginFailed(answer[4:at].decode(errors="replace"))
    if code:
        raise LoginFailed(f"the login is answered with error {code}")
    (size,) = struct.unpack_from(">i", answer, at)
    return answer[at + 4 : at + 4 + max(size, 0)]


def _ask(peer: socket.socket, key: int, version: int, body: bytes) -> bytes:
    """The answer behind its correlation id."""
    head = struct.pack(">hhih", key, version, 1, -1)
    return exchange(peer, head + body, least=6, most=_MOST)[4:]


def _texts(data: bytes, at: int) -> list[str]:
    (count,) = struct.unpack_from(">i", data, at)
    at += 4
    found = []
    for _ in range(min(count, 32)):
        (size,) = struct.unpack_from(">h", data, at)
        found.append(data[at + 2 : at + 2 + max(size, 0)].decode(errors="replace"))
        at += 2 + max(size, 0)
    return found


def _attributes(message: str) -> dict[str, str]:
    """Raises ValueError for what is no list of attributes."""
    return {part[0]: part[2:] for part in message.split(",") if part[1:2] == "="}
