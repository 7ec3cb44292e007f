"""Properties with which a client logs in, in librdkafka's words or in Java's."""

import os
import socket
from collections.abc import Callable
from typing import Final, NamedTuple

from appliance.authentication.jaas import PLAIN_MODULE, SCRAM_MODULE
from appliance.authentication.mechanisms import PLAIN, SCRAMS
from console.model.asking.configs import BROKER, values_of
from console.model.asking.link import Link
from console.model.cluster import cluster

_ADVERTISED: Final = "advertised.listeners"
_LISTENERS: Final = "listeners"
_PROTOCOLS: Final = "listener.security.protocol.map"
_TRUSTED: Final = "ssl.truststore.location"
_BEST: Final = ("SASL_SSL", "SASL_PLAINTEXT")
_PATIENCE_S: Final = 3.0
_MODULES: Final = {PLAIN: PLAIN_MODULE} | {one.name: SCRAM_MODULE for one in SCRAMS}


class Place(NamedTuple):
    """A listener that asks for a login. protocol: SASL_SSL or SASL_PLAINTEXT. ca: the file of the
    authority that clients trust; empty: not known."""

    address: str
    protocol: str
    ca: str = ""


def place(link: Link) -> Place | None:
    """The listener of the first broker where clients log in, one with TLS before others; None when
    there is none. Raises Failure."""
    number = str(min(cluster.read_cluster(link).brokers))
    keys = (_ADVERTISED, _LISTENERS, _PROTOCOLS, _TRUSTED)
    told = values_of(link, BROKER, (number,), keys).get(number, {})
    pairs = (one.partition(":") for one in (told.get(_PROTOCOLS) or "").split(","))
    protocols = {name.strip().upper(): protocol.strip() for name, _, protocol in pairs}
    found: dict[str, Place] = {}
    for one in (told.get(_ADVERTISED) or told.get(_LISTENERS) or "").split(","):
        name, _, address = one.strip().partition("://")
        protocol = protocols.get(name.upper(), name.upper())
        if address.startswith(":"):  # at every address: it is reached as this broker is
            address = link.bootstrap.split(",")[0].strip().rpartition(":")[0] + address
        if address.endswith(":0"):  # the port was free when it started: only the broker knows it
            address = link.bootstrap.split(",")[0].strip()
        ca = link.properties.get("ssl.ca.location", "")
        found.setdefault(protocol, Place(address, protocol, os.path.abspath(ca) if ca else ""))
    best = next((found[one] for one in _BEST if one in found), None)
    if best is not None and best.protocol == _BEST[0] and not best.ca:
        return best._replace(ca=_proven(best.address, told.get(_TRUSTED) or ""))
    return best


def _proven(address: str, file: str) -> str:
    """The file of a broker on this host if the certificate at that address is proved by it, else
    "": a broker elsewhere has other files, and who signs its clients may not have signed it."""
    import ssl

    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not os.path.isfile(file) or not port.isdigit():
        return ""
    try:
        context = ssl.create_default_context(cafile=file)
        with (
            socket.create_connection((host, int(port)), _PATIENCE_S) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return os.path.abspath(file)
    except (OSError, ValueError):
        return ""


def librdkafka(at: Place, mechanism: str, user: str, password: str) -> str:
    """A file for librdkafka's clients, kcat -F and penstock --command-config."""
    lines = [*_head(at, mechanism), f"sasl.username={user}", f"sasl.password={password}"]
    if at.protocol == _BEST[0]:
        lines.append(f"ssl.ca.location={at.ca}" if at.ca else "#ssl.ca.location=/path/of/ca.pem")
    return "".join(f"{line}\n" for line in lines)


def java(at: Place, mechanism: str, user: str, password: str, *, by_token: bool = False) -> str:
    """A file for Java's clients and Kafka's own tools. by_token: the user is the id of a delegation
    token, and the password its HMAC."""
    login = f"{_MODULES[mechanism]} required username={_quoted(user)} password={_quoted(password)}"
    login += ' tokenauth="true";' if by_token else ";"
    lines = [*_head(at, mechanism), f"sasl.jaas.config={_escaped(login)}"]
    if at.protocol == _BEST[0]:
        mark, ca = ("", at.ca) if at.ca else ("#", "/path/of/ca.pem")
        lines += [f"{mark}ssl.truststore.type=PEM", f"{mark}ssl.truststore.location={ca}"]
    return "".join(f"{line}\n" for line in lines)


def _head(at: Place, mechanism: str) -> list[str]:
    return [
        f"bootstrap.servers={at.address}",
        f"security.protocol={at.protocol}",
        f"sasl.mechanism={mechanism}",
    ]


def _quoted(text: str) -> str:
    """As a JAAS text has it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    """As a properties file of Java has it."""
    return text.replace("\\", "\\\\")


FORMS: Final[dict[str, Callable[[Place, str, str, str], str]]] = {
    "librdkafka": librdkafka,
    "java": java,
}
"""Form of a file by whose it is."""
