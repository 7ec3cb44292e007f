"""SCRAM credentials of users: alter them, describe them (KIP-554).

Invariant: what is written names a user and a known mechanism, with a number of iterations that
Apache Kafka takes. The password itself never comes here: a client sends it salted.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from appliance.authentication.mechanisms import BY_NUMBER, LEAST_ITERATIONS, MOST_ITERATIONS
from appliance.authentication.scram import of_salted
from appliance.base import errors
from appliance.controller.decision import OK, Record, Result
from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft

_KIND: Final = "scram"


class Deletion(NamedTuple):
    """mechanism: its number."""

    name: str
    mechanism: int


class Upsertion(NamedTuple):
    """mechanism: its number. salted_password: of PBKDF2."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


def alter(
    image: MetadataImage, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]
) -> tuple[list[Record], dict[str, Result]]:
    """The records, and a result for each user. A user that is named twice is not altered."""
    wanted: dict[str, Deletion | Upsertion] = {}
    wrong: dict[str, Result] = {}
    asked: list[Deletion | Upsertion] = [*deletions, *upsertions]
    for one in asked:
        if one.name in wrong:
            continue
        if wanted.pop(one.name, None) is not None:
            text = "A user credential cannot be altered twice in the same request"
            wrong[one.name] = Result(errors.DUPLICATE_RESOURCE, text)
            continue
        result = _check(image, one)
        if result is OK:
            wanted[one.name] = one
        else:
            wrong[one.name] = result
    return [_record(one) for one in wanted.values()], dict.fromkeys(wanted, OK) | wrong


def credentials(image: MetadataImage) -> dict[str, list[tuple[int, int]]]:
    """User → (number of the mechanism, iterations) of all that there are."""
    found: dict[str, list[tuple[int, int]]] = {}
    for one in image.kept.values():
        if isinstance(one, kraft.UserScramCredentialRecord):
            found.setdefault(one.name, []).append((one.mechanism, one.iterations))
    return {name: sorted(rows) for name, rows in found.items()}


def _check(image: MetadataImage, one: Deletion | Upsertion) -> Result:
    if not one.name:
        return Result(errors.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if one.mechanism not in BY_NUMBER:
        return Result(errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(one, Deletion):
        if (_KIND, one.name, str(one.mechanism)) in image.kept:
            return OK
        text = "Attempt to delete a user credential that does not exist"
        return Result(errors.RESOURCE_NOT_FOUND, text)
    if one.iterations < LEAST_ITERATIONS:
        return Result(errors.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if one.iterations > MOST_ITERATIONS:
        return Result(errors.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return OK


def _record(one: Deletion | Upsertion) -> Record:
    if isinstance(one, Deletion):
        return kraft.RemoveUserScramCredentialRecord(name=one.name, mechanism=one.mechanism)
    scram = BY_NUMBER[one.mechanism]
    made = of_salted(scram, one.salted_password, one.salt, one.iterations)
    return kraft.UserScramCredentialRecord(
        name=one.name,
        mechanism=one.mechanism,
        salt=made.salt,
        stored_key=made.stored_key,
        server_key=made.server_key,
        iterations=made.iterations,
    )
