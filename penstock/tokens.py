"""Tokens of an identity provider for a login of our own: OAuth's client credentials grant (RFC
6749, section 4.4), as librdkafka's properties say it (`sasl.oauthbearer.method=oidc`), or the
`oauth_cb` that librdkafka would call.

Secrets and tokens are in no message of an error.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    import ssl

OAUTHBEARER: Final = "OAUTHBEARER"
METHOD: Final = "sasl.oauthbearer.method"
URL: Final = "sasl.oauthbearer.token.endpoint.url"
_CALLBACK: Final = "oauth_cb"
_CONFIG: Final = "sasl.oauthbearer.config"
_IDS: Final = (
    "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id",
)  # fmt: skip
_SECRETS: Final = (
    "sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret",
)  # fmt: skip
_OK: Final = 200
_LIMIT_S: Final = 10.0
_MOST: Final = 1 << 20
_RENEWED: Final = 0.8
"""Part of a token's life after which another one is asked for."""
_UNTOLD_S: Final = 60.0
"""How long a token serves whose end the provider does not tell."""


class NoToken(OSError):
    """Raised when no token can be had; the text says of whom and why."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.strerror = what


class TokenSource:
    """Tokens, each used until most of its life is over. Threads may share one."""

    def __init__(self, fetch: Callable[[], tuple[str, float]]) -> None:
        """fetch(): a token, and for how many seconds it is good. Raises NoToken."""
        self._fetch = fetch
        self._token = ""
        self._until_s = 0.0
        self._lock = threading.Lock()

    def token(self) -> str:
        """A token that is good. Raises NoToken."""
        with self._lock:
            now_s = time.monotonic()
            if now_s >= self._until_s:
                self._token, life_s = self._fetch()
                self._until_s = now_s + life_s * _RENEWED
            return self._token


def source_of(properties: Mapping[str, Any]) -> TokenSource | None:
    """Where librdkafka's properties say that tokens come from; None where they do not."""
    if callable(callback := properties.get(_CALLBACK)):
        config = str(properties.get(_CONFIG) or "")
        return TokenSource(lambda: _called(callback, config))
    if not properties.get(URL) or str(properties.get(METHOD, "oidc")).lower() != "oidc":
        return None
    return TokenSource(lambda: _granted(properties))


def completed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties with what librdkafka needs beside a token endpoint, and Java's clients do not."""
    found = dict(properties)
    mechanism = str(found.get("sasl.mechanism") or found.get("sasl.mechanisms") or "")
    if mechanism.upper() == OAUTHBEARER and found.get(URL) and _CALLBACK not in found:
        found.setdefault(METHOD, "oidc")
    return found


def _called(callback: Callable[[str], Any], config: str) -> tuple[str, float]:
    try:
        told = callback(config)
        return str(told[0]), max(0.0, float(told[1]) - time.time())
    except Exception as bug:
        raise NoToken(f"oauth_cb raised {type(bug).__name__}") from bug


def _granted(properties: Mapping[str, Any]) -> tuple[str, float]:
    """Raises NoToken."""
    from http.client import HTTPException

    url = str(properties[URL])
    try:
        status, data = _post(url, properties)
        told = json.loads(data) if status == _OK else _error(data)
    except (OSError, HTTPException) as problem:
        why = problem.strerror if isinstance(problem, OSError) else type(problem).__name__
        raise NoToken(f"{URL}={url} gives no token: {why or problem}") from None
    except ValueError:
        raise NoToken(f"{URL}={url} gives no token: its answer is no JSON") from None
    told = told if isinstance(told, dict) else {}
    token = told.get("access_token")
    if status != _OK or not isinstance(token, str) or not token:
        why = str(told.get("error") or "")[:80]
        raise NoToken(f"{URL}={url} gives no token: HTTP {status}{why and f', {why}'}")
    life_s = told.get("expires_in")
    if isinstance(life_s, int | float) and life_s > 0:
        return token, float(life_s)
    return token, _UNTOLD_S


def _error(data: bytes) -> Any:
    """The answer of a provider that gives no token."""
    try:
        return json.loads(data)
    except ValueError:
        return {}


def _post(url: str, properties: Mapping[str, Any]) -> tuple[int, bytes]:
    """(status, body) of the provider's answer. A redirect is none: it would tell the secret to
    somebody else. Raises OSError, HTTPException, ValueError for a URL that is none."""
    from http.client import HTTPConnection, HTTPSConnection

    at = urlsplit(url)
    if at.scheme not in ("https", "http") or not at.hostname:
        raise NoToken(f"{URL}={url} is no https://… or http://…")
    if at.scheme == "https":
        peer: HTTPConnection = HTTPSConnection(
            at.hostname, at.port, timeout=_LIMIT_S, context=_trusting(properties)
        )
    else:
        peer = HTTPConnection(at.hostname, at.port, timeout=_LIMIT_S)
    form = {"grant_type": "client_credentials"}
    if scope := properties.get("sasl.oauthbearer.scope"):
        form["scope"] = str(scope)
    known = f"{_first(properties, _IDS)}:{_first(properties, _SECRETS)}".encode()
    headers = {
        "Authorization": f"Basic {base64.b64encode(known).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    try:
        path = (at.path or "/") + (f"?{at.query}" if at.query else "")
        peer.request("POST", path, urlencode(form), headers)
        answer = peer.getresponse()
        return answer.status, answer.read(_MOST)
    finally:
        peer.close()


def _trusting(properties: Mapping[str, Any]) -> "ssl.SSLContext":
    import ssl

    location = str(properties.get("https.ca.location") or "")
    if location and location != "probe":
        return ssl.create_default_context(cafile=location)
    if pem := str(properties.get("https.ca.pem") or ""):
        return ssl.create_default_context(cadata=pem)
    return ssl.create_default_context()


def _first(properties: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((str(properties[key]) for key in keys if properties.get(key)), "")
