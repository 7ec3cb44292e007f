"""Delegation tokens (KIP-48): CreateDelegationToken (API key 38), Renew (39), Expire (40) and
DescribeDelegationToken (41).

A token's HMAC is its password. It is shown once, by `penstock token create`; changes of a token
look it up by the token's id, so that nobody has to type it.
"""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from appliance.base import errors
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check

_CREATE: Final = (38, 3)
_RENEW: Final = (39, 2)
_EXPIRE: Final = (40, 2)
_DESCRIBE: Final = (41, 3)
AT_ONCE: Final = -1
"""The period after which a token is removed instead of ending."""
DEFAULT: Final = -1
"""The period or the lifetime that the broker's settings say."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HINTS: Final = {
    errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "ask a listener with SASL, or with TLS and a"
    " client certificate (--login USER, --command-config FILE), and not as a token",
    errors.DELEGATION_TOKEN_AUTH_DISABLED: "set delegation.token.secret.key on all nodes",
    errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "it takes CREATE_TOKENS on that user, as in"
    " penstock acl add User:me create-tokens --user User:owner",
    errors.DELEGATION_TOKEN_OWNER_MISMATCH: "its owner and its renewers may do it",
}


class Token(NamedTuple):
    """Times in ms since 1970. hmac: as base64, a secret."""

    token: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    hmac: str


def create_token(
    link: Link, owner: str | None, renewers: Sequence[str], lifetime_ms: int = DEFAULT
) -> Token:
    """A new token. owner, renewers: `TYPE:NAME`; None: who asks. Raises Failure."""
    kind, name = (None, None) if owner is None else _parts(owner)
    values = {
        "owner_principal_type": kind, "owner_principal_name": name,
        "renewers": [_row(one) for one in renewers], "max_lifetime": lifetime_ms,
    }  # fmt: skip
    answer = ask_server(link, *_CREATE, values)
    _check(int(answer.error_code), "the token")
    return Token(
        answer.token_id,
        f"{answer.principal_type}:{answer.principal_name}",
        f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}",
        tuple(renewers),
        _ms(answer.issue_timestamp),
        _ms(answer.expiry_timestamp),
        _ms(answer.max_timestamp),
        b64encode(answer.hmac).decode(),
    )


def all_tokens(link: Link, owners: Sequence[str] | None = None) -> list[Token]:
    """Tokens that the caller may see, by their ends. owners: of these, or renewed by them. Raises
    Failure."""
    rows = None if owners is None else [_row(one) for one in owners]
    answer = ask_server(link, *_DESCRIBE, {"owners": rows})
    _check(int(answer.error_code), "the tokens")
    found = [
        Token(
            one.token_id,
            f"{one.principal_type}:{one.principal_name}",
            f"{one.token_requester_principal_type}:{one.token_requester_principal_name}",
            tuple(f"{two.principal_type}:{two.principal_name}" for two in one.renewers),
            one.issue_timestamp,
            one.expiry_timestamp,
            one.max_timestamp,
            b64encode(one.hmac).decode(),
        )
        for one in answer.tokens
    ]
    return sorted(found, key=lambda one: (one.expires_ms, one.token))


def find_token(link: Link, token_id: str) -> Token:
    """The token with this id. Raises Failure."""
    found = next((one for one in all_tokens(link) if one.token == token_id), None)
    if found is None:
        raise Failure(
            f"there is no token {token_id}, or it is not shown to you", "penstock token list",
            name="DELEGATION_TOKEN_NOT_FOUND",
        )  # fmt: skip
    return found


def renew_token(link: Link, token: Token, period_ms: int = DEFAULT) -> int:
    """When the token ends now, in ms since 1970. Raises Failure."""
    values = {"hmac": b64decode(token.hmac), "renew_period": period_ms}
    return _end(link, _RENEW, values, token)


def expire_token(link: Link, token: Token, period_ms: int = AT_ONCE) -> int:
    """When the token ends now, in ms since 1970, negative: it is removed. Raises Failure."""
    values = {"hmac": b64decode(token.hmac), "expiry_time_period": period_ms}
    return _end(link, _EXPIRE, values, token)


def _end(link: Link, api: tuple[int, int], values: dict[str, Any], token: Token) -> int:
    answer = ask_server(link, *api, values)
    _check(int(answer.error_code), f"token {token.token}")
    return _ms(answer.expiry_timestamp)


def _check(code: int, about: str) -> None:
    """Raises Failure for an error code in an answer."""
    try:
        check(code, None, about)
    except Failure as failure:
        failure.hint = _HINTS.get(code, failure.hint)
        raise


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    if kind != "User":
        raise usage(f"{principal} has no tokens", "owners and renewers are users: User:NAME")
    return kind, name


def _row(principal: str) -> dict[str, str]:
    kind, name = _parts(principal)
    return {"principal_type": kind, "principal_name": name}


def _ms(time: datetime | None) -> int:
    return -1 if time is None else round((time - _EPOCH).total_seconds() * 1000)
