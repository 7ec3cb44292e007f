"""How a listener is spoken to by requests of our own: in the clear or over TLS, with a login or
without, as librdkafka's properties say it to librdkafka.

`ssl` is loaded by who needs TLS, and once: the commands that need none stay quick.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from penstock.login import Login, login_of

if TYPE_CHECKING:
    import ssl

_PROTOCOL: Final = "security.protocol"
_OWN: Final = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location")
_NO: Final = frozenset(("false", "f", "0", "no", "off"))

Address = tuple[str, int]


class NotUsable(ValueError):
    """Raised when a TLS property names something that cannot be used; the text says which and
    why.
    """


class Door:
    """properties: librdkafka's, of which those of TLS and SASL count. login: the credentials of
    these requests, None where they need none or cannot log in. Threads may share one."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self._properties = properties
        self._made: ssl.SSLContext | None = None
        protocol = str(properties.get(_PROTOCOL, "plaintext")).lower()
        self.uses_tls = protocol in ("ssl", "sasl_ssl")
        self.uses_sasl = protocol.startswith("sasl")
        self.login: Login | None = login_of(properties)
        self.has_certificate = any(properties.get(key) for key in _OWN)

    def open_connection(self, address: Address, limit_s: float) -> socket.socket:
        """A connection to (host, port), logged in, over which requests go. Raises OSError,
        ssl.SSLError and LoginFailed among it, and NotUsable."""
        context = self.context() if self.uses_tls else None
        peer = socket.create_connection(address, limit_s)
        try:
            if context is not None:
                peer = context.wrap_socket(peer, server_hostname=address[0])
            if self.login is not None:
                self.login.log_in(peer)
        except BaseException:
            peer.close()
            raise
        return peer

    @property
    def can_ask(self) -> bool:
        """False if the listener asks for a login by a mechanism that only librdkafka knows."""
        return self.login is not None or not self.uses_sasl

    def context(self) -> "ssl.SSLContext":
        """The TLS context of these properties. Raises NotUsable."""
        if self._made is None:
            self._made = _context(self._properties)
        return self._made


PLAIN: Final = Door({})


def _context(properties: Mapping[str, Any]) -> "ssl.SSLContext":
    import ssl

    def said(key: str) -> str:
        return str(properties.get(key) or "")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    who = said("ssl.endpoint.identification.algorithm") or "https"
    context.check_hostname = who.lower() != "none"
    if str(properties.get("enable.ssl.certificate.verification", "true")).lower() in _NO:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if ciphers := said("ssl.cipher.suites"):
        with _named("ssl.cipher.suites", ciphers):
            context.set_ciphers(ciphers)
    _trust(context, said("ssl.ca.location"), said("ssl.ca.pem"), said("ssl.crl.location"))
    _show(context, properties)
    return context


def _trust(context: "ssl.SSLContext", location: str, pem: str, revoked: str) -> None:
    """Loads the trusted certificates: the system's where none are named."""
    import ssl

    if pem:
        with _named("ssl.ca.pem", ""):
            context.load_verify_locations(cadata=pem)
    if location and location != "probe":
        with _named("ssl.ca.location", location):
            place = "capath" if os.path.isdir(location) else "cafile"
            context.load_verify_locations(**{place: location})
    elif not pem:
        context.load_default_certs()
    if revoked:
        with _named("ssl.crl.location", revoked):
            context.load_verify_locations(cafile=revoked)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _show(context: "ssl.SSLContext", properties: Mapping[str, Any]) -> None:
    """The client's own certificate, where it has one. What comes as text gets no file that others
    could read: it goes through memory."""

    def said(key: str) -> str:
        return str(properties.get(key) or "")

    password = said("ssl.key.password")
    if store := said("ssl.keystore.location"):
        with _named("ssl.keystore.location", store):
            pem = _opened(store, said("ssl.keystore.password"))
            with _in_memory(pem) as file:
                context.load_cert_chain(file, password="")
        return
    chain, chain_pem = said("ssl.certificate.location"), said("ssl.certificate.pem")
    key, key_pem = said("ssl.key.location"), said("ssl.key.pem")
    if not chain and not chain_pem:
        return
    with (
        _named("ssl.certificate.* and ssl.key.*", chain and f"{chain} {key}"),
        _in_memory(chain_pem.encode()) as chain_file,
        _in_memory(key_pem.encode()) as key_file,
    ):
        context.load_cert_chain(
            chain if chain else chain_file,
            key_file if key_pem else key or None,
            password=lambda: password,  # else OpenSSL asks at the terminal
        )


def _opened(path: str, password: str) -> bytes:
    """Key and certificates of a PKCS #12 file, as PEM. Raises OSError, ValueError."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    with open(path, "rb") as file:
        found = pkcs12.load_pkcs12(file.read(), password.encode() or None)
    if found.key is None or found.cert is None:
        raise ValueError("there is no key with a certificate in it")
    key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = [one.certificate for one in (found.cert, *found.additional_certs)]
    return key + b"".join(one.public_bytes(Encoding.PEM) for one in chain)


@contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    """The path of a file that is nowhere."""
    fd = os.memfd_create("penstock-client")
    try:
        os.write(fd, data)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


@contextmanager
def _named(key: str, value: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as problem:
        raise NotUsable(f"{key}{'=' if value else ''}{value}: {_why(problem)}") from None


def _why(problem: Exception) -> str:
    reason = getattr(problem, "reason", None)  # of OpenSSL: PEM_LIB, BAD_DECRYPT
    if isinstance(reason, str):
        return reason.replace("_", " ").lower()
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    told = problem.args[0] if problem.args else problem
    return str(told[0] if isinstance(told, tuple) else told).rstrip(".")
