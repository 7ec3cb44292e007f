"""Credentials of users that there are not, so that nobody can tell which users there are.

The same user gets the same salt again, and salts and iterations look like those of users that there
are: a client cannot tell whether it is a stand-in.
"""

import hmac
from collections.abc import Sequence
from hashlib import shake_256
from string import ascii_lowercase, digits
from typing import Final

from appliance.authentication.mechanisms import LEAST_ITERATIONS, Scram
from appliance.authentication.scram import Credential

_LETTERS: Final = (digits + ascii_lowercase).encode()
_USUAL_SALT: Final = 25
"""Bytes, digits and letters, as Kafka's own tools make them."""


def stand_in(
    scram: Scram, user: str, secret: bytes, likes: Sequence[tuple[bytes, int]]
) -> Credential:
    """secret: known here alone. likes: (salt, iterations) of users that there are."""
    seed = hmac.digest(secret, f"{scram.name}\0{user}".encode(), "sha256")
    like, iterations = (b"0" * _USUAL_SALT, LEAST_ITERATIONS)
    if likes:
        like, iterations = likes[int.from_bytes(seed[:4], "big") % len(likes)]
    salt = shake_256(seed + b"salt").digest(len(like))
    if all(byte in _LETTERS for byte in like):
        salt = bytes(_LETTERS[byte % len(_LETTERS)] for byte in salt)
    size = 32 if scram.digest == "sha256" else 64
    key = shake_256(seed + b"key").digest(2 * size)
    return Credential(salt, key[:size], key[size:], iterations)
