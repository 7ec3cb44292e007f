"""Where metrics are pushed by OpenTelemetry's protocol (OTLP/HTTP): our settings, else the
variables of the environment that every OpenTelemetry exporter knows.

Sources: the OpenTelemetry specification, "OpenTelemetry Protocol Exporter" and "Environment
Variable Specification".
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from appliance.base.errors import ConfigError
from appliance.config.broker import BrokerConfig

_PATH: Final = "/v1/metrics"
_ENDPOINT: Final = "penstock.otlp.endpoint"
_HEADERS: Final = "penstock.otlp.headers"
_PORTS: Final = {"http": 4318, "https": 443}


class Target(NamedTuple):
    """The collector that receives pushed metrics. path: begins with a slash. headers: (name,
    value), of every request."""

    secure: bool
    host: str
    port: int
    path: str
    headers: tuple[tuple[str, str], ...]
    interval_ms: int

    @property
    def url(self) -> str:
        """As a person reads it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.secure}://{host}:{self.port}{self.path}"


def target(config: BrokerConfig, environ: Mapping[str, str]) -> Target | None:
    """Returns the collector, None without one. Raises ConfigError."""
    key, url = _ENDPOINT, str(config.get_value(_ENDPOINT) or "")
    whole = False
    if not url and _may(environ):
        key = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
        whole = bool(url := environ.get(key, ""))
        if not whole:
            key = "OTEL_EXPORTER_OTLP_ENDPOINT"
            url = environ.get(key, "")
    if not url:
        return None
    secure, host, port, path = _parse(key, url)
    if not whole and (key != _ENDPOINT or path in ("", "/")):
        path = path.rstrip("/") + _PATH
    return Target(
        secure, host, port, path or "/", _headers(config, environ),
        config.int("penstock.otlp.interval.ms"),
    )  # fmt: skip


def check(config: BrokerConfig) -> Iterator[str]:
    """Warnings. Raises ConfigError."""
    target(config, {})
    yield from ()


def _may(environ: Mapping[str, str]) -> bool:
    """True if the environment selects a protocol that is served here."""
    protocol = environ.get("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL") or environ.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL", ""
    )
    return (
        protocol in ("", "http/protobuf")
        and environ.get("OTEL_METRICS_EXPORTER", "otlp") == "otlp"
        and environ.get("OTEL_SDK_DISABLED", "").lower() != "true"
    )


def _parse(key: str, url: str) -> tuple[bool, str, int, str]:
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise _wrong(key) from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.username or parts.query:
        raise _wrong(key)
    return parts.scheme == "https", parts.hostname, port or _PORTS[parts.scheme], parts.path


def _wrong(key: str) -> ConfigError:
    return ConfigError(
        f"{key}: it takes http://HOST:PORT or https://HOST:PORT, with a path where the receiver has"
        " another one than /v1/metrics"
    )


def _headers(config: BrokerConfig, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """NAME=VALUE,…; what came by the environment is percent-encoded there, as W3C baggage is."""
    key, own = _HEADERS, config.get_value(_HEADERS)
    if own is None:
        key = "OTEL_EXPORTER_OTLP_METRICS_HEADERS"
        if not environ.get(key):
            key = "OTEL_EXPORTER_OTLP_HEADERS"
    found = []
    for pair in (environ.get(key, "") if own is None else str(own)).split(","):
        name, sign, value = pair.partition("=")
        if not pair.strip():
            continue
        if own is None:
            value = unquote(value)
        name, value = name.strip(), value.strip()
        if not sign or not name.isascii() or not name.replace("-", "").isalnum():
            raise ConfigError(f"{key}: it takes NAME=VALUE,…")
        if not value.isprintable():
            raise ConfigError(
                f"{key}: the value of {name} has characters that a header cannot have"
            )
        found.append((name, value))
    return tuple(found)
