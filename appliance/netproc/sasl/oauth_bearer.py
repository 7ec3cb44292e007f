"""Tokens of OAUTHBEARER: verified on a thread, with keys that another thread reads.

A slow issuer holds back only logins whose tokens need its keys. Called by `logins.py`.
"""

from collections.abc import Callable
from typing import Final

from appliance.authentication.tokens import (
    KeyPlace,
    TokenRefused,
    TokenRules,
    UnknownKey,
    Verified,
    verify_token,
)
from appliance.netproc.sasl.credential_hashing import CredentialHashing
from appliance.netproc.sasl.jwks import TokenKeys
from appliance.shell.log import WARNING, Log
from appliance.shell.loop import Loop

Then = Callable[[Verified | None, str], None]
"""Called with what the token says, or None and the reason, which is for the log."""
_BUSY = "too many logins wait for their tokens to be verified"

_MOST_READING: Final = 1024
"""Sets of keys that may wait to be read; there are a few."""


class Bearers:
    """verifying: its thread."""

    def __init__(self, loop: Loop, verifying: CredentialHashing, log: Log) -> None:
        self._verifying = verifying
        self._reading = CredentialHashing(loop, _MOST_READING)
        self._log = log
        self._keys: dict[KeyPlace, TokenKeys] = {}

    def verify_token(self, token: str, rules: TokenRules, place: KeyPlace, then: Then) -> bool:
        """Calls `then` by the loop; False: too many wait."""
        keys = self._keys.get(place)
        if keys is None:
            keys = self._keys[place] = TokenKeys(place, self._report)
        if keys.are_old:
            return self._reading.ask_thread(
                keys.renew, lambda _: self._check_or_refuse(token, rules, keys, then)
            )
        return self._check(token, rules, keys, then, renewed=False)

    def _check_or_refuse(self, token: str, rules: TokenRules, keys: TokenKeys, then: Then) -> None:
        if not self._check(token, rules, keys, then, renewed=True):
            then(None, _BUSY)

    def _check(
        self, token: str, rules: TokenRules, keys: TokenKeys, then: Then, *, renewed: bool
    ) -> bool:
        def work() -> Verified | TokenRefused:
            try:
                return verify_token(token, keys.keys, rules)
            except TokenRefused as why:
                return why

        def on_verified(found: object) -> None:
            if isinstance(found, Verified):
                then(found, "")
            elif isinstance(found, UnknownKey) and not renewed:
                self._renew(token, rules, keys, then, str(found))
            else:
                then(None, str(found) if isinstance(found, TokenRefused) else "it is no token")

        return self._verifying.ask_thread(work, on_verified)

    def _renew(self, token: str, rules: TokenRules, keys: TokenKeys, then: Then, why: str) -> None:
        def on_renewed(changed: object) -> None:
            if changed is True:
                self._check_or_refuse(token, rules, keys, then)
            else:
                then(None, why)

        if not self._reading.ask_thread(keys.renew, on_renewed):
            then(None, _BUSY)

    def _report(self, why: str) -> None:
        """On the thread."""
        self._log.event_seldom(WARNING, "token-keys-not-read", cause=why)
