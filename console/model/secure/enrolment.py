"""Enrolment: a new node gets its certificate of the host that has the authority's key, over a
connection of its own, by a token that works once.

The token names where to connect, the SHA-256 of the authority's certificate, and 192 random bits.
Who serves sends the authority's certificate in the clear (as in `penstock/frames.py`), which the
new node holds against the token; then both speak TLS 1.3, by a certificate of that authority for
the host that the token names. Inside each sends one message in JSON: the new node the secret
and a signing request, and is sent a certificate and what it joins with, or an error. The names in
the certificate are those that were invited, whatever the request says.
"""

import hmac
import json
import os
import secrets
import socket
import ssl
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from console.model.asking.failure import UNREACHABLE, Failure, usage
from console.model.secure.authority import fingerprint_of, new_request
from penstock.frames import exchange, receive_message, send_message

_MOST: Final = 1 << 20
"""Bytes of a message."""
_FINGERPRINT: Final = 32
_SECRET: Final = 24
_CONVERSATION_S: Final = 10.0
"""How long one who connects may take in all: others wait for it."""
_WAITING: Final = 64
_REMEDY: Final = "penstock cluster invite, on the host that keeps ca.key, prints another line"

Offer = dict[str, Any]
"""What the new node is sent: certificate (PEM, the authority's behind it), and what else it needs.
Plain JSON."""
Sign = Callable[[bytes], Offer]
"""Makes the offer for a signing request (PEM). Raises ValueError for one that cannot be signed."""


class Token(NamedTuple):
    """host, port: where to connect. fingerprint: SHA-256 of the authority's certificate."""

    host: str
    port: int
    fingerprint: bytes
    secret: bytes

    def __str__(self) -> str:
        from appliance.config.listeners import in_url

        told = urlsafe_b64encode(self.fingerprint + self.secret).decode().rstrip("=")
        return f"{in_url(self.host)}:{self.port}/{told}"


def new_token(host: str, port: int, fingerprint: bytes) -> Token:
    """A token with a fresh secret."""
    return Token(host, port, fingerprint, secrets.token_bytes(_SECRET))


def parse(text: str) -> Token:
    """The token that somebody typed. Raises Failure, which does not show it."""
    from appliance.base.errors import ConfigError
    from appliance.config.listeners import parse_endpoint

    place, _, told = text.strip().partition("/")
    try:
        at = parse_endpoint("the token", place)
        both = urlsafe_b64decode(told + "=" * (-len(told) % 4))
        if len(both) == _FINGERPRINT + _SECRET:
            return Token(at.host, at.port, both[:_FINGERPRINT], both[_FINGERPRINT:])
    except (ConfigError, ValueError):
        pass
    raise usage("the token is not whole", "copy the line that penstock cluster invite printed")


# The host that has the authority's key ------------------------------------------------------------


class Enrolling:
    """Serves one new node. Use it as a context manager."""

    def __init__(self, port: int, server: str, authority: bytes) -> None:
        """port: 0 takes a free one. server: file with this host's key and certificate. authority:
        its certificate (PEM). Raises Failure."""
        self._authority = authority
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            self._context.load_cert_chain(server)
            dual = socket.has_dualstack_ipv6()
            family = socket.AF_INET6 if dual else socket.AF_INET
            self._door = socket.create_server(
                ("", port), family=family, backlog=_WAITING, dualstack_ipv6=dual
            )
        except OSError as problem:
            raise Failure(f"the new node cannot be served at port {port}: {problem}") from None
        self.port: int = self._door.getsockname()[1]

    def __enter__(self) -> "Enrolling":
        return self

    def __exit__(self, *_: object) -> None:
        self._door.close()

    def serve(
        self, token: Token, sign: Sign, until: float, refused: Callable[[str, str], None]
    ) -> Offer | None:
        """Waits for the new node, and sends it what `sign` makes; the token is spent by the first
        request that has it. until: on the monotonic clock. refused: told who (address) was not
        served, and why. Returns the offer, None if nobody came in time. Raises Failure where the
        offer was not made or did not arrive."""
        while (left_s := until - time.monotonic()) > 0:
            self._door.settimeout(left_s)
            try:
                peer, address = self._door.accept()
            except TimeoutError:
                break
            with peer:
                try:
                    request, tls = self._heard(peer, token)
                except (OSError, ValueError) as problem:
                    refused(str(address[0]), _why(problem))
                    continue
                with tls:
                    return _answer(tls, request, sign)
        return None

    def _heard(self, peer: socket.socket, token: Token) -> tuple[bytes, ssl.SSLSocket]:
        """The signing request of who has the token. Raises OSError, ValueError."""
        end = time.monotonic() + _CONVERSATION_S
        peer.settimeout(_CONVERSATION_S)
        send_message(peer, self._authority)
        tls = self._context.wrap_socket(peer, server_side=True)
        try:
            asked = json.loads(receive_message(tls, least=2, most=_MOST, until=end))
            if not hmac.compare_digest(bytes.fromhex(asked["secret"]), token.secret):
                raise ValueError("it has another token")
            return str(asked["request"]).encode(), tls
        except (KeyError, TypeError):
            tls.close()
            raise ValueError("it sends no request") from None
        except BaseException:
            tls.close()
            raise


def _answer(tls: ssl.SSLSocket, request: bytes, sign: Sign) -> Offer:
    try:
        offer = sign(request)
    except (ValueError, Failure) as problem:
        send_message(tls, json.dumps({"error": str(problem)}).encode())
        raise Failure(f"the new node was refused: {problem}", _REMEDY) from None
    try:
        send_message(tls, json.dumps(offer).encode())
    except OSError as problem:
        raise Failure(f"the certificate did not arrive: {_why(problem)}", _REMEDY) from None
    return offer


# The new node -------------------------------------------------------------------------------------


class Enrolled(NamedTuple):
    """key, authority: PEM. offer: what the host with the authority's key has sent."""

    key: bytes
    authority: bytes
    offer: Offer


def enrol(token: Token) -> Enrolled:
    """Makes a key and gets its certificate. Raises Failure."""
    made = new_request()
    end = time.monotonic() + 3 * _CONVERSATION_S
    where = f"{token.host}:{token.port}"
    try:
        with socket.create_connection((token.host, token.port), _CONVERSATION_S) as plain:
            plain.settimeout(3 * _CONVERSATION_S)
            authority = receive_message(plain, least=1, most=_MOST, until=end)
            if not hmac.compare_digest(fingerprint_of(authority), token.fingerprint):
                raise Failure(
                    f"{where} shows another authority than the token names: nothing was sent there",
                    _REMEDY,
                )
            context = ssl.create_default_context(cadata=authority.decode())
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            with context.wrap_socket(plain, server_hostname=token.host) as tls:
                asked = {"secret": token.secret.hex(), "request": made.certificate.decode()}
                told = exchange(tls, json.dumps(asked).encode(), least=2, most=_MOST, until=end)
                offer = json.loads(told)
    except ConnectionRefusedError:
        raise _lost(
            where, "no invitation is open there: it was used, withdrawn, or expired"
        ) from None
    except (OSError, ValueError) as problem:
        raise _lost(where, _why(problem)) from None
    if not isinstance(offer, dict) or "certificate" not in offer:
        why = offer.get("error") if isinstance(offer, dict) else None
        raise Failure(f"{where} refuses this node: {why or 'it sends no certificate'}", _REMEDY)
    return Enrolled(made.key, authority, offer)


def _lost(where: str, why: str) -> Failure:
    return Failure(f"no certificate of {where}: {why}", _REMEDY, where=where, code=UNREACHABLE)


def _why(problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return "it is too slow"
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {problem.verify_message}"
    if isinstance(problem, ssl.SSLError):
        return f"no agreement on TLS: {(problem.reason or '').lower().replace('_', ' ')}"
    if isinstance(problem, OSError) and problem.errno:
        return os.strerror(problem.errno)
    return str(problem)
