"""Logins that a listener asks for: its mechanisms, its static users, how long a login holds.

The settings are `sasl.enabled.mechanisms` and `connections.max.reauth.ms`, each also of one
listener, and `listener.name.NAME.MECHANISM.sasl.jaas.config`, or a JAAS file in its place. Called
by the checks of settings and by network processes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final
from urllib.parse import urlsplit

from appliance.authentication import jaas
from appliance.authentication.mechanisms import ABSENT, OAUTHBEARER, PLAIN, SERVED
from appliance.authentication.tokens import KeyPlace, TokenRules
from appliance.base.dataclass import dataclass
from appliance.base.errors import ConfigError
from appliance.config import jaas_file
from appliance.config.broker import BrokerConfig
from appliance.config.broker_settings import BROKER
from appliance.config.listener_settings import key_of, mechanism_of, split

SASL_PLAINTEXT: Final = "SASL_PLAINTEXT"
SASL_SSL: Final = "SASL_SSL"
PROTOCOLS: Final = (SASL_PLAINTEXT, SASL_SSL)
"""Protocols whose clients log in."""
MECHANISMS: Final = "sasl.enabled.mechanisms"
JAAS: Final = "sasl.jaas.config"
REAUTH: Final = "connections.max.reauth.ms"
DELAY: Final = "connection.failed.authentication.delay.ms"
LONGEST_MESSAGE: Final = "sasl.server.max.receive.size"
_MODULES: Final = {PLAIN: jaas.PLAIN_MODULE, OAUTHBEARER: jaas.OAUTH_MODULE}
_OAUTH: Final = "sasl.oauthbearer."
_SCHEMES: Final = ("https", "file")


@dataclass(slots=True, frozen=True)
class Logins:
    """Logins of one listener. mechanisms: that it offers, in the order of the setting. users:
    static ones of PLAIN by name with their passwords, None: those of the metadata. lifetimes: how
    long a login by a mechanism holds, in ms; none there: for ever. longest: bytes of a message.
    tokens: what OAUTHBEARER asks of a token, and where the keys are; None: it is not offered."""

    mechanisms: tuple[str, ...]
    users: Mapping[str, str] | None = field(repr=False)
    lifetimes: Mapping[str, int]
    longest: int
    tokens: tuple[TokenRules, KeyPlace] | None = None


def of_listener(config: BrokerConfig, listener: str) -> Logins | None:
    """The logins of a listener, None where clients need none. Raises ConfigError."""
    if config.protocols().get(listener) not in PROTOCOLS:
        return None
    key = config.key_for(listener, MECHANISMS)
    mechanisms = tuple(dict.fromkeys(config.list(key)))
    for one in mechanisms:
        if one not in SERVED:
            why = ABSENT.get(one, "it is not known")
            default = "" if config.entry(key) else ", the default"
            raise ConfigError(
                f"{key}={one}{default}: {why}; {listener} can offer {', '.join(SERVED)}, for"
                f" example {MECHANISMS}=SCRAM-SHA-512"
            )
    if not mechanisms:
        raise ConfigError(f"{key}: {listener} needs a mechanism: {', '.join(SERVED)}")
    users = None
    for one in mechanisms:
        login = _login(config, listener, one)
        if one == PLAIN and login is not None:
            users = login.users() or None
    lifetimes = {one: _lifetime(config, listener, one) for one in mechanisms}
    return Logins(
        mechanisms,
        users,
        {one: ms for one, ms in lifetimes.items() if ms > 0},
        config.int(config.key_for(listener, LONGEST_MESSAGE)),
        _tokens(config, listener) if OAUTHBEARER in mechanisms else None,
    )


def check(config: BrokerConfig) -> Iterator[str]:
    """Warnings. Raises ConfigError where a listener cannot have the logins that are set."""
    by_token = False
    for one in config.opened():
        found = of_listener(config, one.name)
        by_token = by_token or (found is not None and found.tokens is not None)
        if found is not None and found.users is None and PLAIN in found.mechanisms:
            key = key_of(one.name, f"{PLAIN.lower()}.{JAAS}")
            if jaas_file.is_given(config) and config.entry(key) is None:
                key = f"{jaas_file.place(config)}: {jaas.PLAIN_MODULE}"
            yield (
                f'{key} names no users (user_NAME="PASSWORD"): {one.name} checks passwords of PLAIN'
                " against the SCRAM credentials of users"
            )
    if not by_token:
        for key, setting in BROKER.items():
            if key.startswith(_OAUTH) and not setting.inert and config.entry(key) is not None:
                yield f"{key} has no effect: no listener offers {OAUTHBEARER}"


def has_own(config: BrokerConfig, listener: str, mechanism: str) -> bool:
    """True if a setting says what the login of a listener and mechanism is: no file is asked."""
    return config.entry(key_of(listener, f"{mechanism.lower()}.{JAAS}")) is not None


def concerns_logins(key: str) -> bool:
    """True if the key is a setting of logins, of all listeners or of one."""
    parts = split(key)
    base = key if parts is None else mechanism_of(parts[1])[1]
    own = (MECHANISMS, JAAS, REAUTH, DELAY, LONGEST_MESSAGE, jaas_file.FILE, jaas_file.TEXT)
    return base in own or base.startswith(_OAUTH)


def remark(listener: str, base: str, protocol: str | None, config: BrokerConfig) -> str:
    """Why a setting of logins of that listener has no effect; "" when it has."""
    mechanism, _ = mechanism_of(base)
    if protocol not in PROTOCOLS:
        return f"{listener} has the protocol {protocol}, which has no logins"
    if mechanism and mechanism.upper() not in config.list(config.key_for(listener, MECHANISMS)):
        return f"{listener} does not offer {mechanism.upper()}: {MECHANISMS}"
    return ""


def options(config: BrokerConfig, listener: str, mechanism: str) -> Mapping[str, str]:
    """The options of the JAAS entry of a listener and mechanism; none without one. Raises
    ConfigError."""
    login = _login(config, listener, mechanism)
    return {} if login is None else login.options


def _login(config: BrokerConfig, listener: str, mechanism: str) -> jaas.JaasEntry | None:
    key = key_of(listener, f"{mechanism.lower()}.{JAAS}")
    module = _MODULES.get(mechanism, jaas.SCRAM_MODULE)
    if config.entry(key) is None:
        return jaas_file.find_login(config, listener, module)
    text = config.get_value(key)
    if not text:
        return None
    try:
        login = jaas.parse(str(text))
    except ConfigError as problem:
        raise ConfigError(f"{key}: {problem}") from None
    if login.module != module:
        raise ConfigError(f"{key}: the login module of {mechanism} is {module}")
    return login


def _tokens(config: BrokerConfig, listener: str) -> tuple[TokenRules, KeyPlace]:
    def key(name: str) -> str:
        own = key_of(listener, f"{OAUTHBEARER.lower()}.{_OAUTH}{name}")
        return own if config.entry(own) is not None else f"{_OAUTH}{name}"

    def text(name: str) -> str:
        return str(config.get_value(key(name)) or "")

    url = text("jwks.endpoint.url")
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not (parts.hostname or parts.path):
        raise ConfigError(
            f"{key('jwks.endpoint.url')}={url}: {listener} offers {OAUTHBEARER} and needs the URL"
            " of the issuer's keys there, https://… or file:///…"
        )
    rules = TokenRules(
        audience=tuple(config.list(key("expected.audience"))),
        issuer=text("expected.issuer") or None,
        skew_s=config.int(key("clock.skew.seconds")),
        scope_claim=text("scope.claim.name"),
        user_claim=text("sub.claim.name"),
    )
    times = (
        "jwks.endpoint.refresh.ms",
        "jwks.endpoint.retry.backoff.ms",
        "jwks.endpoint.retry.backoff.max.ms",
    )
    return rules, KeyPlace(url, *(config.int(key(one)) for one in times))


def _lifetime(config: BrokerConfig, listener: str, mechanism: str) -> int:
    own = key_of(listener, f"{mechanism.lower()}.{REAUTH}")
    return config.int(own if config.entry(own) is not None else config.key_for(listener, REAUTH))
