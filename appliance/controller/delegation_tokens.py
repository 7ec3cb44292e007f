"""Delegation tokens: create, renew, expire and describe them (KIP-48, KIP-373).

Invariant: `issued <= expires <= max` of every token, in ms since 1970. A token that has expired
counts as none at once; its record is removed later (`expired_records`). As Apache Kafka's
DelegationTokenControlManager decides.
"""

import hmac
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from appliance.authentication.delegation import hmac_of
from appliance.base import errors
from appliance.base.caller import Principal
from appliance.config.delegation import TokenLimits
from appliance.controller.decision import Record
from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft

KIND: Final = "token"
"""First word of the identity of a token's record in the metadata."""
USER: Final = "User"
"""The only type of principals that owns or renews tokens."""

_LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the latest time that an answer can tell."""

Token = kraft.DelegationTokenRecord


class TokenOutcome(NamedTuple):
    """The result of a change.

    expires_ms: the token's new end; with an error code 0 or -1, and for a removed token the period
    that was asked for, as Apache Kafka answers. token: the changed one.
    """

    code: int
    records: list[Record]
    expires_ms: int = 0
    token: Token | None = None


def all_tokens(image: MetadataImage) -> Iterator[Token]:
    """Every token with a record, the expired ones too."""
    for record in image.kept.values():
        if isinstance(record, Token):
            yield record


def find_token(image: MetadataImage, token_id: str) -> Token | None:
    """The token with this id."""
    found = image.kept.get((KIND, token_id))
    return found if isinstance(found, Token) else None


def is_expired(token: Token, now_ms: int) -> bool:
    """True if the token's end is in the past."""
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def parse_principal(text: str) -> Principal:
    """The principal of `TYPE:NAME`, as records have it."""
    kind, _, name = text.partition(":")
    return Principal(kind, name)


def format_principal(principal: Principal) -> str:
    """`TYPE:NAME`."""
    return f"{principal.type}:{principal.name}"


def create_token(
    limits: TokenLimits | None,
    owner: Principal,
    requester: Principal,
    renewers: Sequence[Principal],
    lifetime_ms: int,
    now_ms: int,
    token_id: str,
) -> TokenOutcome:
    """A new token. lifetime_ms: with its renewals; 0 or less: the longest that the settings
    allow."""
    if any(one.type != USER for one in renewers):
        return TokenOutcome(errors.INVALID_PRINCIPAL_TYPE, [], -1)
    if limits is None:
        return TokenOutcome(errors.DELEGATION_TOKEN_AUTH_DISABLED, [])
    longest = limits.max_lifetime_ms
    lifetime_ms = min(lifetime_ms, longest) if lifetime_ms > 0 else longest
    max_ms = min(now_ms + lifetime_ms, _LATEST_MS)
    token = Token(
        owner=format_principal(owner),
        requester=format_principal(requester),
        renewers=tuple(map(format_principal, renewers)),
        issue_timestamp=now_ms,
        max_timestamp=max_ms,
        expiration_timestamp=min(max_ms, now_ms + limits.expiry_ms),
        token_id=token_id,
    )
    return TokenOutcome(errors.NONE, [token], token.expiration_timestamp, token)


def renew_token(
    image: MetadataImage,
    limits: TokenLimits | None,
    token_hmac: bytes,
    caller: Principal,
    period_ms: int,
    now_ms: int,
) -> TokenOutcome:
    """The token lives on for `period_ms`; 0 or less: for delegation.token.expiry.time.ms."""
    token, code = _token_of(image, limits, token_hmac, caller, now_ms)
    if token is None or limits is None:
        return TokenOutcome(code, [])
    period_ms = min(period_ms, limits.expiry_ms) if period_ms > 0 else limits.expiry_ms
    return _end_at(token, now_ms + period_ms)


def expire_token(
    image: MetadataImage,
    limits: TokenLimits | None,
    token_hmac: bytes,
    caller: Principal,
    period_ms: int,
    now_ms: int,
) -> TokenOutcome:
    """The token ends in `period_ms`; a negative one removes it."""
    token, code = _token_of(image, limits, token_hmac, caller, now_ms)
    if token is None:
        return TokenOutcome(code, [])
    if period_ms < 0:
        gone = kraft.RemoveDelegationTokenRecord(token_id=token.token_id)
        return TokenOutcome(errors.NONE, [gone], period_ms, token)
    return _end_at(token, now_ms + period_ms)


def expired_records(image: MetadataImage, now_ms: int) -> list[Record]:
    """Records that remove the tokens that have expired."""
    return [
        kraft.RemoveDelegationTokenRecord(token_id=one.token_id)
        for one in all_tokens(image)
        if is_expired(one, now_ms)
    ]


def described_tokens(
    image: MetadataImage,
    owners: Sequence[Principal] | None,
    caller: Principal,
    may_see_token: Callable[[str], bool],
    may_see_owner: Callable[[str], bool],
) -> list[Token]:
    """Tokens that the caller may see. owners: of these principals, or renewed by them; None: of
    all. may_see_token: by the token's id. may_see_owner: by its owner as `TYPE:NAME`."""
    wanted = None if owners is None else [format_principal(one) for one in owners]
    me = format_principal(caller)
    return [
        one
        for one in all_tokens(image)
        if (wanted is None or any(_concerns(one, who) for who in wanted))
        and (_concerns(one, me) or may_see_token(one.token_id) or may_see_owner(one.owner))
    ]


def _concerns(token: Token, principal: str) -> bool:
    return principal in (token.owner, token.requester) or principal in token.renewers


def _token_of(
    image: MetadataImage,
    limits: TokenLimits | None,
    token_hmac: bytes,
    caller: Principal,
    now_ms: int,
) -> tuple[Token | None, int]:
    """The token with this HMAC that the caller may change now, or why not."""
    if limits is None:
        return None, errors.DELEGATION_TOKEN_AUTH_DISABLED
    found = None
    for one in all_tokens(image):
        if hmac.compare_digest(hmac_of(limits.secret, one.token_id), token_hmac):
            found = one
    if found is None:
        return None, errors.DELEGATION_TOKEN_NOT_FOUND
    if is_expired(found, now_ms):
        return None, errors.DELEGATION_TOKEN_EXPIRED
    me = format_principal(caller)
    if me != found.owner and me not in found.renewers:
        return None, errors.DELEGATION_TOKEN_OWNER_MISMATCH
    return found, errors.NONE


def _end_at(token: Token, expires_ms: int) -> TokenOutcome:
    expires_ms = min(token.max_timestamp, expires_ms)
    renewed = replace(token, expiration_timestamp=expires_ms)
    return TokenOutcome(errors.NONE, [renewed], expires_ms, renewed)
