"""TLS and logins as a properties file of Java's clients says them, in librdkafka's words: who comes
from Apache Kafka has such a file, and its stores.

Stores of the form PKCS12, and PEM, are read; of a trust store its certificates are passed on. What
librdkafka has no word for, and what asks for nothing that is not so anyway, is left out.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from console.model.asking.failure import unreadable, usage

_WHO: Final = "ssl.endpoint.identification.algorithm"
_INLINE: Final = {
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
_TOKENS: Final = {
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
_LEFT_OUT: Final = (
    "ssl.enabled.protocols", "ssl.protocol", "ssl.provider", "ssl.keystore.type",
    "ssl.truststore.type", "ssl.truststore.password", "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm", "ssl.secure.random.implementation",
    "sasl.login.callback.handler.class", "sasl.oauthbearer.jwt.retriever.class",
)  # fmt: skip
_JAAS: Final = "sasl.jaas.config"
_BY_TOKEN: Final = "tokenauth"
_EXTENSION: Final = "extension_"
_STORES: Final = ("ssl.keystore.location", "ssl.truststore.location")


def as_librdkafkas(said: Mapping[str, str]) -> dict[str, str]:
    """Properties of a file, as it says them, with those of TLS and SASL in librdkafka's words.

    Raises Failure for a store or a JAAS text that cannot be read, and for what a JAAS text wants
    that librdkafka cannot do: it would log in as somebody else, or as nobody."""
    found = {key: value for key, value in said.items() if key not in _LEFT_OUT}
    if found.get(_WHO) == "":  # what Java takes for: anybody
        found[_WHO] = "none"
    for theirs, ours in _INLINE.items():
        if theirs in found:
            found[ours] = _folded(found.pop(theirs))
    for theirs, ours in _TOKENS.items():
        if theirs in found:
            found[ours] = found.pop(theirs)
    for key in _STORES:
        if location := found.pop(key, ""):
            found |= _store(key, location, said)
    if text := found.pop(_JAAS, ""):
        found = _login(text) | found
    return found


def _login(text: str) -> dict[str, str]:
    from appliance.authentication.jaas import parse
    from appliance.base.errors import ConfigError

    try:
        options = parse(text).options
    except ConfigError as problem:
        raise usage(f"{_JAAS}: {problem}") from None
    for option in options:
        if option == _BY_TOKEN and options[option].lower() == "true":
            raise usage(
                f"{_JAAS} has {_BY_TOKEN}={options[option]}: librdkafka, by which this connects,"
                " does not log in by delegation tokens",
                "name a user with a password; Java's clients take tokens",
            )
        if option.startswith(_EXTENSION):
            raise usage(
                f"{_JAAS} has {option}, and no extension is sent with a token",
                "leave it out; Java's clients send it",
            )
    pairs = (
        ("username", "sasl.username"),
        ("password", "sasl.password"),
        ("clientId", "sasl.oauthbearer.client.id"),
        ("clientSecret", "sasl.oauthbearer.client.secret"),
        ("scope", "sasl.oauthbearer.scope"),
    )
    return {ours: options[theirs] for theirs, ours in pairs if theirs in options}


def _store(key: str, location: str, said: Mapping[str, str]) -> dict[str, str]:
    from appliance.base.errors import ConfigError
    from appliance.certificates.stores import key_store, pem_blocks, trusted

    try:
        data = Path(location).read_bytes()
    except OSError as problem:
        raise unreadable(location, problem) from None
    is_pem, where = bool(pem_blocks(data)), f"{key}={location}"
    try:
        if key == _STORES[0]:
            password = said.get("ssl.keystore.password")
            key_store(data, where, password, said.get("ssl.key.password"))
            if is_pem:
                return {"ssl.certificate.location": location, "ssl.key.location": location}
            return {key: location}
        certificates = trusted(data, where, said.get("ssl.truststore.password"))
    except ConfigError as problem:
        raise usage(str(problem)) from None
    if is_pem:
        return {"ssl.ca.location": location}
    return {"ssl.ca.pem": "".join(map(_pem, certificates))}


def _pem(certificate: object) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import Certificate

    assert isinstance(certificate, Certificate)
    return certificate.public_bytes(Encoding.PEM).decode()


def _folded(text: str) -> str:
    """PEM as OpenSSL reads it; a properties file may have it on one line."""
    from appliance.certificates.stores import pem_blocks

    return b"".join(one.text for one in pem_blocks(text.encode())).decode() or text
