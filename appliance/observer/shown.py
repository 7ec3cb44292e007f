"""The certificate that a TLS listener presents, and whether it requests one from clients.

Nothing is verified: who looks at a host's own listeners wants to know what they show, trusted or
not. `ssl` and `cryptography` are loaded by who looks.
"""

import ipaddress
import socket
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import ssl

ANYWHERE: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where a listener at every address is reached."""
_REQUIRED: Final = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
_ASKS: Final = (_REQUIRED, "SSLV3_ALERT_HANDSHAKE_FAILURE", "SSLV3_ALERT_BAD_CERTIFICATE")
"""The first since TLS 1.3, the others before it: of OpenSSL and of Java."""
_HANDSHAKE: Final = 22
_CERTIFICATE: Final = 11
_CHUNK: Final = 1 << 14


class ShownCertificate(NamedTuple):
    """begins_s, ends_s: since 1970. names: host names and addresses that it covers. subject: whose
    it is, by RFC 4514."""

    begins_s: float
    ends_s: float
    names: tuple[str, ...]
    subject: str

    def covers(self, host: str) -> bool:
        """True if the certificate covers this host name: RFC 6125, with a wildcard for one whole
        leftmost label."""
        with suppress(ValueError):
            wanted = str(ipaddress.ip_address(host))
            return wanted in self.names
        name = host.rstrip(".").lower()
        _, dot, parent = name.partition(".")
        star = f"*.{parent}" if dot else name
        return any(one.lower() in (name, star) for one in self.names)


@cache
def unverified() -> "ssl.SSLContext":
    """For a client that believes whoever is there."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def wrapped(sock: socket.socket) -> "ssl.SSLSocket":
    """TLS over a connection. Raises OSError: AsksForCertificate where it ends with that, as it does
    before TLS 1.3."""
    import ssl

    tls = unverified().wrap_socket(sock, do_handshake_on_connect=False)
    try:
        tls.do_handshake()
    except ssl.SSLError as problem:
        # With a cipher chosen, the listener has said who it is: what it lacks is who we are.
        asks = tls.cipher() is not None and problem.reason in _ASKS
        tls.close()
        if asks:
            raise AsksForCertificate(0, "it asks for a certificate") from None
        raise
    except BaseException:
        tls.close()
        raise
    return tls


class AsksForCertificate(OSError):
    """Only who has a certificate is served."""


def asks_for_certificate(problem: OSError) -> bool:
    """True if a TLS connection ended because the client has no certificate. In TLS 1.3 that is told
    after the handshake, by the first read."""
    asks = isinstance(problem, AsksForCertificate)
    return asks or getattr(problem, "reason", None) == _REQUIRED


def send_all(sock: socket.socket, data: bytes) -> None:
    """Send all of it. Raises OSError: what the other side said before it hung up, if anything."""
    try:
        sock.sendall(data)
    except OSError:
        sock.recv(1)  # raises that; there is nothing to wait for any more
        raise


def certificate(host: str, port: int, limit_s: float) -> ShownCertificate:
    """Returns the certificate of the listener at that address. Raises OSError; ValueError for what
    is none that can be read.

    The handshake is broken off when it is known: so it takes no certificate of ours, and nobody is
    refused, who would be told of."""
    where = ANYWHERE.get(host, host), port
    with socket.create_connection(where, limit_s) as sock:
        der = _overheard(sock)
    if der is None:
        raise ValueError(f"{host}:{port} shows no certificate")
    return read(der)


def read(der: bytes) -> ShownCertificate:
    """A certificate's DER. Raises ValueError."""
    from cryptography import x509

    found = x509.load_der_x509_certificate(der)
    names: tuple[str, ...] = ()
    with suppress(x509.ExtensionNotFound):
        said = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = said.get_values_for_type(x509.DNSName)
        names = (*hosts, *map(str, said.get_values_for_type(x509.IPAddress)))
    return ShownCertificate(
        found.not_valid_before_utc.timestamp(),
        found.not_valid_after_utc.timestamp(),
        names,
        found.subject.rfc4514_string(),
    )


def _overheard(sock: socket.socket) -> bytes | None:
    """The certificate out of a handshake that is not finished: before TLS 1.3 it comes in the clear
    (RFC 5246, 7.4.2), since then with all that the listener has to say (RFC 8446, 2)."""
    import ssl

    heard, said, data = ssl.MemoryBIO(), ssl.MemoryBIO(), bytearray()
    asking = unverified().wrap_bio(heard, said)
    while True:
        with suppress(ssl.SSLWantReadError):
            asking.do_handshake()
            return asking.getpeercert(binary_form=True)
        if (der := first_certificate(data)) is not None:
            return der
        if answer := said.read():
            sock.sendall(answer)
        part = sock.recv(_CHUNK)
        if not part:
            raise ConnectionAbortedError("it hung up before it had shown a certificate")
        data += part
        heard.write(part)


def first_certificate(records: bytes | bytearray) -> bytes | None:
    """Out of TLS records (RFC 5246, 6.2.1) as far as they have come; None while it is not whole."""
    said = bytearray()
    at = 0
    while at + 5 <= len(records):
        size = int.from_bytes(records[at + 3 : at + 5], "big")
        if records[at] == _HANDSHAKE:
            said += records[at + 5 : at + 5 + size]
        at += 5 + size
    at = 0
    while at + 4 <= len(said):
        size = int.from_bytes(said[at + 1 : at + 4], "big")
        if said[at] == _CERTIFICATE:
            first = int.from_bytes(said[at + 7 : at + 10], "big")
            whole = bytes(said[at + 10 : at + 10 + first])
            return whole if first and len(whole) == first else None
        at += 4 + size
    return None
