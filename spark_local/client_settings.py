"""How a job's Kafka clients connect and log in: librdkafka's properties, and the same for Spark.

Spark's options stand in plans, in its log and in its UI, so they hold no secret: what a client
file says is written to a file of the runner's user alone, and the options name its lines. Clients
replace `${file:PATH:KEY}` themselves (KIP-297, FileConfigProvider).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from spark_local.cause import JobError

_BOOTSTRAP: Final = "bootstrap.servers"
_PROTOCOL: Final = "security.protocol"
_PROVIDER: Final = {
    "kafka.config.providers": "file",
    "kafka.config.providers.file.class": (
        "org.apache.kafka.common.config.provider.FileConfigProvider"
    ),
}
_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_BEARER: Final = "OAUTHBEARER"
_BEARER_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_BEARER_HANDLER: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
)
_TOKENS_FROM: Final = "sasl.oauthbearer.token.endpoint.url"
_IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"
_MAY_BE_TOLD: Final = (_PROTOCOL, "sasl.mechanism")
_FILE: Final = "kafka.properties"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """bootstrap: HOST:PORT, several with commas. properties: librdkafka's, in
    pairs, without bootstrap.servers. options: Spark's options that stand for them, of `written`."""

    bootstrap: str
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    options: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, bootstrap: str, properties: Mapping[str, str]) -> "ClientSettings":
        """The settings of a client file whose bootstrap.servers does not count."""
        return cls(
            bootstrap, tuple(sorted((k, v) for k, v in properties.items() if k != _BOOTSTRAP))
        )

    @property
    def uses_tls(self) -> bool:
        """True if the connection is encrypted."""
        return self._protocol in ("SSL", "SASL_SSL")

    @property
    def is_secured(self) -> bool:
        """True if the connection is encrypted or begins with a login."""
        return self._protocol != "PLAINTEXT"

    def librdkafka(self, **more: Any) -> dict[str, Any]:
        """Settings of a client of librdkafka; `more` (with `_` for `.`) wins."""
        given = {name.replace("_", "."): value for name, value in more.items()}
        return {**dict(self.properties), _BOOTSTRAP: self.bootstrap} | given

    def spark(self) -> dict[str, str]:
        """Options of Spark's reader or writer. A secured connection needs `written` before."""
        assert self.options or not self.is_secured
        return {f"kafka.{_BOOTSTRAP}": self.bootstrap, **self.options}

    def written(self, folder: Path) -> "ClientSettings":
        """These settings with `options`, whose secrets stand in a file in `folder` that its owner
        alone may read. Raises JobError for properties that Java's clients do not have, OSError."""
        if not self.is_secured:
            return self
        said = java_properties(dict(self.properties))
        file = folder / _FILE
        _write_private(file, "".join(f"{key}={escaped(said[key])}\n" for key in said))
        named = {key: f"${{file:{file.absolute()}:{key}}}" for key in said}
        told = named | {key: said[key] for key in _MAY_BE_TOLD if key in said}
        return replace(self, options=_PROVIDER | {f"kafka.{k}": v for k, v in told.items()})

    @property
    def _protocol(self) -> str:
        return dict(self.properties).get(_PROTOCOL, "PLAINTEXT").upper()


def java_properties(said: Mapping[str, str]) -> dict[str, str]:
    """Properties of TLS and SASL in the words of Java's clients. Raises JobError for a mechanism or
    a file that they cannot use."""
    protocol = said.get(_PROTOCOL, "PLAINTEXT").upper()
    found = {_PROTOCOL: protocol}
    if protocol.startswith("SASL_"):
        found |= _login(said)
    if protocol.endswith("SSL"):
        found |= _trust(said) | _own(said)
        if _IDENTIFICATION in said:
            who = said[_IDENTIFICATION]
            found[_IDENTIFICATION] = "" if who.lower() == "none" else who
        if said.get("enable.ssl.certificate.verification", "true").lower() in ("false", "f", "0"):
            raise JobError(
                "jobs verify the broker's certificate, and the client file says"
                " enable.ssl.certificate.verification=false",
                "write ssl.ca.location=FILE instead",
            )
    return found


def _login(said: Mapping[str, str]) -> dict[str, str]:
    mechanism = (said.get("sasl.mechanism") or said.get("sasl.mechanisms") or "GSSAPI").upper()
    if mechanism == _BEARER:
        return _bearer(said)
    module = _MODULES.get(mechanism)
    if module is None:
        known = ", ".join((*_MODULES, _BEARER))
        raise JobError(
            f"jobs do not log in with sasl.mechanism={mechanism}", f"write one of {known}"
        )
    user, password = said.get("sasl.username", ""), said.get("sasl.password", "")
    login = f"{module} required username={_quoted(user)} password={_quoted(password)};"
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": login}


def _bearer(said: Mapping[str, str]) -> dict[str, str]:
    """A login by tokens of the client credentials grant, which Java's clients fetch themselves."""
    if not said.get(_TOKENS_FROM):
        raise JobError(
            f"a login by {_BEARER} has no {_TOKENS_FROM}", "write it, and the client's id"
        )
    options = {
        "clientId": said.get("sasl.oauthbearer.client.id", ""),
        "clientSecret": said.get("sasl.oauthbearer.client.secret", ""),
        "scope": said.get("sasl.oauthbearer.scope", ""),
    }
    if ca := said.get("https.ca.location"):  # of the provider, not of the broker
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": os.path.abspath(ca)}
    words = " ".join(f"{key}={_quoted(value)}" for key, value in options.items() if value)
    return {
        "sasl.mechanism": _BEARER,
        "sasl.jaas.config": f"{_BEARER_MODULE} required {words};",
        "sasl.login.callback.handler.class": _BEARER_HANDLER,
        _TOKENS_FROM: said[_TOKENS_FROM],
    }


def _trust(said: Mapping[str, str]) -> dict[str, str]:
    pem = said.get("ssl.ca.pem") or _text_of("ssl.ca.location", said)
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem} if pem else {}


def _own(said: Mapping[str, str]) -> dict[str, str]:
    """The client's own certificate and key."""
    if store := said.get("ssl.keystore.location"):
        password = said.get("ssl.keystore.password", "")
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": os.path.abspath(store),
            "ssl.keystore.password": password,
        }
    chain = said.get("ssl.certificate.pem") or _text_of("ssl.certificate.location", said)
    key = said.get("ssl.key.pem") or _text_of("ssl.key.location", said)
    if not chain or not key:
        return {}
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": chain,
        "ssl.keystore.key": _pkcs8(key, said.get("ssl.key.password")),
    }


def _text_of(key: str, said: Mapping[str, str]) -> str:
    """The text of the file that a property names; "" when it names none."""
    path = said.get(key, "")
    try:
        return Path(path).read_text().strip() if path else ""
    except (OSError, UnicodeDecodeError) as problem:
        raise JobError(f"{key}={path} cannot be read: {problem}") from None


def _pkcs8(pem: str, password: str | None) -> str:
    """A private key in the only form that Java reads as PEM."""
    from cryptography.hazmat.primitives import serialization as s

    try:
        key = s.load_pem_private_key(pem.encode(), password.encode() if password else None)
    except (ValueError, TypeError) as problem:
        raise JobError(f"the key of ssl.key.location cannot be used: {problem}") from None
    shape = s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption()
    return key.private_bytes(*shape).decode()


def _quoted(text: str) -> str:
    """As a JAAS text has it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def escaped(text: str) -> str:
    """A value as a properties file of Java has it: ASCII, one line."""
    lines = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    units = lines.encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    told = "".join(chr(one) if 0x20 <= one < 0x7F else f"\\u{one:04x}" for one in codes)
    return f"\\{told}" if told.startswith(" ") else told


def _write_private(file: Path, text: str) -> None:
    """The whole file or none, readable by its owner alone; a link there is replaced."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(fd, "w", encoding="ascii") as out:
        out.write(text)
    os.replace(fresh, file)
