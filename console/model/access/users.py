"""Users that log in by SCRAM, and by PLAIN where a listener names none: credentials in the metadata
(KIP-554, API keys 50 and 51). The broker never sees a password, only what is derived of it.
"""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from appliance.authentication.mechanisms import BY_NAME, LEAST_ITERATIONS, SCRAMS
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check

_DESCRIBE: Final = (50, 0)
_ALTER: Final = (51, 0)
NUMBERS: Final = {one.name: one.number for one in SCRAMS}
"""Mechanism → its number in requests."""
_NAMES: Final = {one.number: one.name for one in SCRAMS}
ITERATIONS: Final = LEAST_ITERATIONS
_SALT_BYTES: Final = 24
_PASSWORD_BYTES: Final = 24


class User(NamedTuple):
    """mechanisms: name → iterations."""

    name: str
    mechanisms: dict[str, int]


def all_users(link: Link) -> list[User]:
    """Every user with credentials, by name. Raises Failure."""
    answer = ask_server(link, *_DESCRIBE, {"users": None})
    check(int(answer.error_code), answer.error_message, "users")
    found = []
    for row in answer.results:
        check(int(row.error_code), row.error_message, f"user {row.user}")
        kinds = {_NAMES.get(int(one.mechanism), str(one.mechanism)): one.iterations
                 for one in row.credential_infos}  # fmt: skip
        found.append(User(row.user, kinds))
    return sorted(found)


def user_named(link: Link, name: str) -> User | None:
    """The user, None when there is none. Raises Failure."""
    return next((one for one in all_users(link) if one.name == name), None)


def generated_password() -> str:
    """A new password of 192 random bits, of letters, digits, `-` and `_`."""
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def set_password(link: Link, name: str, password: str, mechanisms: Sequence[str]) -> None:
    """Put credentials by these mechanisms in the place of those that there are. Raises Failure."""
    for mechanism in mechanisms:  # a request names a user once
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(BY_NAME[mechanism].digest, password.encode(), salt, ITERATIONS)
        row = {
            "name": name, "mechanism": NUMBERS[mechanism], "iterations": ITERATIONS,
            "salt": salt, "salted_password": salted,
        }  # fmt: skip
        _alter(link, name, {"deletions": [], "upsertions": [row]})


def remove(link: Link, user: User) -> None:
    """Remove all credentials of a user. Raises Failure."""
    for one in user.mechanisms:
        if one in NUMBERS:
            row = {"name": user.name, "mechanism": NUMBERS[one]}
            _alter(link, user.name, {"deletions": [row], "upsertions": []})


def _alter(link: Link, name: str, values: dict[str, Any]) -> None:
    answer = ask_server(link, *_ALTER, values)
    for row in answer.results:
        check(int(row.error_code), row.error_message, f"user {name}")
