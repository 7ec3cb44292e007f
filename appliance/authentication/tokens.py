"""JSON web tokens (RFC 7519) as Apache Kafka's BrokerJwtValidator checks them (KIP-768).

Only signatures by a public key count: `none` and shared secrets (HMAC) are no algorithms here, and
a key verifies only algorithms of its own kind. PyJWT does the arithmetic; it is loaded with the
first token. Takes some 100 µs, so a thread calls it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from appliance.base.dataclass import dataclass

if TYPE_CHECKING:
    from jwt.algorithms import Algorithm

ALGORITHMS: Final = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""Algorithms by the kind of the key."""
MOST_KEYS: Final = 100
_TRIED: Final = 8
"""Keys that are tried for a token that names none."""
_LEAST_RSA_BITS: Final = 2048
_LATEST_S: Final = 1 << 53
"""Seconds that a number of JSON holds exactly."""

Jwk = Mapping[str, Any]


class TokenRefused(Exception):
    """The text says why, for the log and never for the client."""


class UnknownKey(TokenRefused):
    """No key fits: perhaps the issuer has new ones."""


class Verified(NamedTuple):
    """expires_ms: wall clock, when the token ends."""

    user: str
    expires_ms: int


@dataclass(slots=True, frozen=True)
class TokenRules:
    """Requirements of a token. audience: one of these; () where tokens have none. issuer: None:
    any. skew_s: how far the clocks may be apart."""

    audience: tuple[str, ...] = ()
    issuer: str | None = None
    skew_s: int = 30
    scope_claim: str = "scope"
    user_claim: str = "sub"


@dataclass(slots=True, frozen=True)
class KeyPlace:
    """url: of the keys. refresh_ms: their age from which they are read again. backoff_ms,
    backoff_max_ms: the first and the longest pause between two tries."""

    url: str
    refresh_ms: int
    backoff_ms: int
    backoff_max_ms: int


def parse_keys(data: bytes) -> list[Jwk]:
    """The public keys of a JWK set that can verify signatures. Raises ValueError."""
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError("its brackets are nested too deep") from None
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise ValueError("it is no JWK set: it has no array `keys`")
    if len(keys) > MOST_KEYS:
        raise ValueError(f"it has {len(keys)} keys, more than {MOST_KEYS}")
    return [
        one
        for one in keys
        if isinstance(one, dict)
        and isinstance(kind := one.get("kty"), str)
        and kind in ALGORITHMS
        and one.get("use", "sig") == "sig"
    ]


def verify_token(token: str, keys: Sequence[Jwk], rules: TokenRules) -> Verified:
    """Raises TokenRefused."""
    import jwt

    try:
        head = jwt.get_unverified_header(token)
    except jwt.PyJWTError as why:
        raise TokenRefused(f"it is no token: {why}") from None
    except RecursionError:
        raise TokenRefused("it is no token: its brackets are nested too deep") from None
    algorithm = str(head.get("alg"))
    fitting = [one for one in keys if _fits(one, algorithm, head.get("kid"))]
    if not any(algorithm in names for names in ALGORITHMS.values()):
        raise TokenRefused(f"its algorithm is {algorithm[:20]!r}")
    refusal: TokenRefused = UnknownKey("no key of the issuer fits")
    for one in fitting[:_TRIED]:
        try:
            return _user(_claims(token, one, algorithm, rules), rules)
        except jwt.InvalidSignatureError as wrong:
            refusal = TokenRefused(str(wrong))
        except jwt.PyJWTError as wrong:
            raise TokenRefused(str(wrong)) from None
        except (OverflowError, RecursionError, TypeError, ValueError) as wrong:
            raise TokenRefused(f"a claim of it cannot be used: {wrong}") from None
    raise refusal


def _fits(key: Jwk, algorithm: str, kid: object) -> bool:
    if algorithm not in ALGORITHMS[key["kty"]] or key.get("alg", algorithm) != algorithm:
        return False
    return kid is None or key.get("kid") == kid


def _claims(token: str, key: Jwk, algorithm: str, rules: TokenRules) -> dict[str, Any]:
    import jwt

    made: Algorithm = jwt.get_algorithm_by_name(algorithm)
    try:
        public = made.from_jwk(dict(key))
    except (jwt.PyJWTError, ValueError, TypeError) as why:
        raise TokenRefused(f"a key of the issuer cannot be used: {why}") from None
    public = public.public_key() if hasattr(public, "public_key") else public
    if key["kty"] == "RSA" and public.key_size < _LEAST_RSA_BITS:
        raise TokenRefused(f"a key of the issuer has less than {_LEAST_RSA_BITS} bits")
    found: dict[str, Any] = jwt.decode(
        token, public, algorithms=[algorithm], leeway=rules.skew_s, issuer=rules.issuer,
        audience=list(rules.audience) or None,
        options={"require": ["exp", "iat"], "verify_iat": False, "verify_sub": False},
    )  # fmt: skip
    return found


def _is_time(value: object) -> bool:
    """True for seconds since 1970 as RFC 7519 has them: a finite number, not its digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= _LATEST_S


def _user(claims: Mapping[str, Any], rules: TokenRules) -> Verified:
    user = claims.get(rules.user_claim)
    if not isinstance(user, str) or not user.strip():
        raise TokenRefused(f"its claim {rules.user_claim} is no name")
    scopes = claims.get(rules.scope_claim, [])
    scopes = [scopes] if isinstance(scopes, str) else scopes
    if isinstance(scopes, list) and any(not isinstance(s, str) or not s.strip() for s in scopes):
        raise TokenRefused(f"its claim {rules.scope_claim} has an empty scope")
    for name in ("exp", "iat", "nbf"):
        if name in claims and not _is_time(claims[name]):
            raise TokenRefused(f"its claim {name} is no time")
    begins = max(claims["iat"], claims.get("nbf", 0))
    if claims["exp"] < begins:
        raise TokenRefused("it ends before it begins")
    return Verified(user.strip(), int(claims["exp"] * 1000))
