"""Delegation tokens (KIP-48): the HMAC of a token, which proves that its holder was given it.

The HMAC is that of the token's id under the cluster's secret key, so it is computed wherever it is
needed and kept nowhere. Its base64 form is the password with which a client logs in by SCRAM; the
token's id is the user name.
"""

import hmac
from base64 import b64encode
from functools import lru_cache
from typing import Final

DIGEST: Final = "sha512"
_REMEMBERED: Final = 1 << 14
"""Tokens whose HMAC is not computed again: a token is found by comparing all of them."""


@lru_cache(maxsize=_REMEMBERED)
def hmac_of(secret: str, token_id: str) -> bytes:
    """The HMAC of the token with this id, 64 bytes. secret: delegation.token.secret.key."""
    assert secret, "tokens are signed with a secret"
    return hmac.digest(secret.encode(), token_id.encode(), DIGEST)


def password_of(token_hmac: bytes) -> str:
    """The password of SCRAM that a token's HMAC is."""
    return b64encode(token_hmac).decode()
