"""Logins by delegation tokens (KIP-48): which tokens hold, and their credentials of SCRAM.

A token's password is its HMAC, so its credential is made when somebody first logs in by it: a
millisecond and more, in the thread of passwords. Invariant: whether a token holds is asked of the
metadata each time; what is remembered here is only what its HMAC gives. Called by `logins.py`.
"""

import secrets
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from appliance.authentication.delegation import hmac_of, password_of
from appliance.authentication.mechanisms import LEAST_ITERATIONS, Scram
from appliance.authentication.scram import Credential, made
from appliance.config.broker import BrokerConfig
from appliance.config.delegation import read_limits
from appliance.controller.delegation_tokens import find_token, is_expired, parse_principal
from appliance.metadata.image import MetadataImage
from appliance.netproc.sasl.credential_hashing import CredentialHashing

_SALT_BYTES: Final = 24
_MOST: Final = 4096
"""Credentials that are remembered, of 0.3 KiB each."""


class ValidToken(NamedTuple):
    """owner: the name of the user that its holder is. left_ms: until it ends, 1 or more."""

    owner: str
    left_ms: int


class DelegationTokens:
    """The tokens as one network process knows them. config(), image(): in force now."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        image: Callable[[], MetadataImage],
        hashing: CredentialHashing,
    ) -> None:
        self._config = config
        self._image = image
        self._hashing = hashing
        self._credentials: dict[tuple[str, str], Credential] = {}

    def find_valid(self, token_id: str) -> ValidToken | None:
        """The token with this id; None when there is none, or it has expired."""
        token, now_ms = find_token(self._image(), token_id), time.time_ns() // 1_000_000
        if token is None or is_expired(token, now_ms) or read_limits(self._config()) is None:
            return None
        left_ms = max(token.expiration_timestamp - now_ms, 1)
        return ValidToken(parse_principal(token.owner).name, left_ms)

    def get_credential(self, token_id: str, scram: Scram) -> Credential | None:
        """The credential that an earlier login by this token and mechanism made, or None."""
        return self._credentials.get((token_id, scram.name))

    def make_credential(
        self, token_id: str, scram: Scram, then: Callable[[Credential | None], None]
    ) -> bool:
        """Calls `then` by the loop with the credential, None when it fails. False: too many wait
        for the thread."""
        limits = read_limits(self._config())
        assert limits is not None, "no token holds without a secret"
        password = password_of(hmac_of(limits.secret, token_id))
        salt = secrets.token_bytes(_SALT_BYTES)

        def keep_credential(credential: Credential | bool) -> None:
            if not isinstance(credential, Credential):
                then(None)
                return
            while len(self._credentials) >= _MOST:
                del self._credentials[next(iter(self._credentials))]
            self._credentials[token_id, scram.name] = credential
            then(credential)

        return self._hashing.ask_thread(
            lambda: made(scram, password, salt, LEAST_ITERATIONS), keep_credential
        )

    def forget_removed(self, token_id: str) -> None:
        """The record of this token has changed: its credentials go if it is removed."""
        if find_token(self._image(), token_id) is None:
            for key in [key for key in self._credentials if key[0] == token_id]:
                del self._credentials[key]
