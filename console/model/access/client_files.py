"""Properties with which a client logs in, in librdkafka's words or in Java's."""

import os
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
_BEST: Final = ("SASL_SSL", "SASL_PLAINTEXT")
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
    keys = (_ADVERTISED, _LISTENERS, _PROTOCOLS)
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
    return next((found[one] for one in _BEST if one in found), None)


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
