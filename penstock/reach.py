"""Checks at once, by connections of our own, that a broker can be reached: clients need half a
minute to say less.

Used by the Python client and by every client command.
"""

import socket
import struct
from typing import Final, NamedTuple

from penstock.door import PLAIN, Address, Door
from penstock.frames import exchange
from penstock.login import LoginFailed, offered
from penstock.tokens import NoToken

DEFAULT_PORT: Final = 9092
LIMIT_S: Final = 3.0
"""Seconds that one connection may take, unless told."""
_METADATA: Final = struct.pack(">hhihi", 3, 1, 1, -1, 0)
"""Metadata (API key 3) version 1, no client id, of no topic: the brokers alone."""
_MOST: Final = 1 << 20
SPEAKS_TLS: Final = "security.protocol=SSL"
_CA: Final = "ssl.ca.location=FILE"
_CERTIFICATE: Final = ("ssl.certificate.location=FILE", "ssl.key.location=FILE")
_ASKS: Final = frozenset(
    (
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        "SSLV3_ALERT_HANDSHAKE_FAILURE",  # before TLS 1.3
        "SSLV3_ALERT_BAD_CERTIFICATE",  # what Java says then
    )
)


class Trouble(NamedTuple):
    """Why clients will not be served: what is so, one sentence. options: properties of the client
    that mend it; elsewhere: it is not the client's way to speak, but where it is sent; login: its
    credentials are missing or wrong."""

    what: str
    options: tuple[str, ...] = ()
    elsewhere: bool = False
    login: bool = False


def unreachable(bootstrap: str, limit_s: float = LIMIT_S) -> str:
    """Why none of the servers (HOST:PORT, with commas between) accepts a connection within so many
    seconds; "" when one does. Raises ValueError for what is not HOST:PORT."""
    problem = "no server is named"
    for server in bootstrap.split(","):
        try:
            socket.create_connection(address_of(server), limit_s).close()
        except OSError as refused:
            problem = f"{server.strip()} cannot be reached: {refused.strerror or refused}"
        else:
            return ""
    return problem


def barred(bootstrap: str, door: Door = PLAIN, limit_s: float = LIMIT_S) -> Trouble | None:
    """Why clients that speak as the door does will not be served: it is another protocol, one does
    not trust the other, or brokers are not where they say. None when they will be, or when it
    cannot be known. Raises door.NotUsable. Only for a door that can ask."""
    if door.uses_tls:
        door.context()  # what cannot be used is no server's fault
    problem = None
    for server in bootstrap.split(","):
        try:
            told = _brokers(address_of(server), door, limit_s)
        except (OSError, ValueError, struct.error) as silence:
            problem = unspoken(server, door, silence, limit_s) or problem
            continue
        why = ""
        for host, port in told:
            why = _trouble((host, port), door, limit_s)
            if not why:
                return None
        if why:
            problem = Trouble(f"{server.strip()} answers, but it says {why}", elsewhere=True)
        else:
            return None
    return problem


def unspoken(
    server: str, door: Door, problem: Exception, limit_s: float = LIMIT_S
) -> Trouble | None:
    """Explains a failed connection to HOST:PORT by a mismatch of TLS or by a login; None when it is
    something else. limit_s: seconds for each connection that looks."""
    where = server.strip()
    if isinstance(problem, NoToken):
        return Trouble(str(problem))
    if isinstance(problem, LoginFailed):
        return Trouble(f"{where}: {problem}", login=True)
    if not door.uses_tls:
        if not _broke_off(problem):
            return None
        if _is_tls(address_of(server), limit_s):
            return Trouble(f"{where} is a listener with TLS", (SPEAKS_TLS, _CA))
    elif (why := _no_tls(address_of(server), door, problem, limit_s)) is not None:
        return Trouble(f"{where} {why.what}", why.options)
    if (
        door.uses_sasl
        or not _broke_off(problem)
        or not (known := _mechanisms(server, door, limit_s))
    ):
        return None
    protocol = "SASL_SSL" if door.uses_tls else "SASL_PLAINTEXT"
    best = max(known)  # SCRAM-SHA-512 before SCRAM-SHA-256 before PLAIN
    options = (f"security.protocol={protocol}", f"sasl.mechanism={best}")
    return Trouble(f"{where} asks clients to log in ({', '.join(known)})", options, login=True)


def _mechanisms(server: str, door: Door, limit_s: float) -> list[str]:
    """The SASL mechanisms of a listener that asks for a login; none where it does not."""
    try:
        with door.open_connection(address_of(server), limit_s) as peer:
            return offered(peer)
    except (OSError, ValueError):
        return []


def _no_tls(server: Address, door: Door, problem: Exception, limit_s: float) -> Trouble | None:
    """Why TLS did not come about."""
    why = _mistrust(problem, door)
    if why is not None or not _broke_off(problem) or not _is_plain(server, limit_s):
        return why
    return Trouble("is a listener without TLS", ("security.protocol=PLAINTEXT",))


def _broke_off(problem: Exception) -> bool:
    """True if a server was there and broke the connection off, or may have."""
    import ssl

    away = (TimeoutError, ConnectionRefusedError, socket.gaierror)
    spoke = (ConnectionError, ssl.SSLError, ValueError, struct.error)
    return isinstance(problem, spoke) and not isinstance(problem, away)


def _mistrust(problem: Exception, door: Door) -> Trouble | None:
    """Why one of the two does not believe the other."""
    import ssl

    if isinstance(problem, ssl.SSLCertVerificationError):
        text = problem.verify_message.rstrip(".")
        if "mismatch" in text.lower() or "doesn't match" in text.lower():
            return Trouble(f"has a certificate for another name: {text}")
        if "expired" in text or "not yet valid" in text:
            return Trouble(f"has a certificate that is not valid now: {text}")
        return Trouble(f"has a certificate that is not trusted: {text}", (_CA,))
    reason = str(getattr(problem, "reason", "") or "")
    if reason in _ASKS and not door.has_certificate:
        return Trouble("asks clients for a certificate", _CERTIFICATE)
    if "_ALERT_" in reason:  # the other side has said no
        said = reason.rpartition("_ALERT_")[2].replace("_", " ").lower()
        return Trouble(f"refuses this client's TLS: {said}")
    return None


def address_of(server: str) -> Address:
    """(host, port) of `[PROTOCOL://]HOST[:PORT]`. Raises ValueError."""
    text = server.strip().rpartition("://")[2]
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, port = text, str(DEFAULT_PORT)
    if not host or " " in host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{server!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _trouble(server: Address, door: Door, limit_s: float) -> str:
    it_is_at = "it is at {}:{}".format(*server)
    try:
        door.open_connection(server, limit_s).close()
    except socket.gaierror:
        return f"{it_is_at}, which this host cannot resolve"
    except OSError as refused:
        why = _no_tls(server, door, refused, limit_s) if door.uses_tls else None
        if why is not None:
            return f"{it_is_at}, which {why.what}"
        return f"{it_is_at}, which cannot be reached from here: {refused.strerror or refused}"
    return ""


def _brokers(server: Address, door: Door, limit_s: float) -> list[Address]:
    with door.open_connection(server, limit_s) as peer:
        data = exchange(peer, _METADATA, least=8, most=_MOST)
    (count,) = struct.unpack_from(">i", data, 4)
    found, at = [], 8
    for _ in range(count):
        at += 4  # the broker's id
        host, at = _text(data, at)
        (port,) = struct.unpack_from(">i", data, at)
        _, at = _text(data, at + 4)  # its rack
        found.append((host, port))
    return found


def _text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", data, at)
    end = at + 2 + max(0, size)
    return data[at + 2 : end].decode(), end


def _is_plain(server: Address, limit_s: float) -> bool:
    try:
        _brokers(server, PLAIN, limit_s)
    except (OSError, ValueError, struct.error):
        return False
    return True


def _is_tls(server: Address, limit_s: float) -> bool:
    """True if a TLS handshake begins there, however it ends: an alert is TLS too."""
    import ssl

    anyone = Door({"security.protocol": "ssl", "enable.ssl.certificate.verification": "false"})
    try:
        anyone.open_connection(server, limit_s).close()
    except ssl.SSLError as told:
        return "_ALERT_" in str(told.reason or "")
    except (OSError, ValueError):
        return False
    return True
