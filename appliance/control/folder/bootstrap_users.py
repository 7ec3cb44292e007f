"""Users of SCRAM that a new cluster begins with: the words of Apache Kafka's `kafka-storage format
--add-scram` (KIP-900), as records for the first snapshot.

    SCRAM-SHA-512=[name=admin,password=secret]
    SCRAM-SHA-256=[name=alice,iterations=8192,salt="BASE64",saltedpassword="BASE64"]
    @FILE, which has one of these on each line
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from appliance.authentication.mechanisms import BY_NAME, LEAST_ITERATIONS, MOST_ITERATIONS
from appliance.base.errors import NONE, ConfigError
from appliance.controller.decision import Record
from appliance.controller.scram import Upsertion, alter
from appliance.metadata.image import MetadataImage

FLAG: Final = "--add-scram"
_SHAPE: Final = re.compile(r"([A-Z0-9-]+)=\[(.*)\]", re.DOTALL)
_WORD: Final = re.compile(r'(\w+)=("[^"]*"|[^",]*)(?:,|\Z)')
_WORDS: Final = ("name", "password", "iterations", "salt", "saltedpassword")
_SALT_BYTES: Final = 24
_EXAMPLE: Final = "SCRAM-SHA-512=[name=admin,password=SECRET]"


def records(texts: Iterable[str], random: Callable[[int], bytes]) -> list[Record]:
    """Returns the records of these users. random(n): n random bytes, for salts. Raises ConfigError,
    whose text has no password."""
    said = [line for one in texts for line in (_lines(one[1:]) if one.startswith("@") else [one])]
    found = [_upsertion(one, random) for one in said]
    keys = [(one.name, one.mechanism) for one in found]
    for name, number in keys:
        if keys.count((name, number)) > 1:
            raise ConfigError(f"{FLAG}: {name} is named twice for the same mechanism")
    made: list[Record] = []
    for one in found:  # a request names a user once
        given, results = alter(MetadataImage(), [], [one])
        for name, result in results.items():
            if result.code != NONE:
                raise ConfigError(f"{FLAG}: user {name}: {result.message}")
        made += given
    return made


def _lines(file: str) -> list[str]:
    """Raises ConfigError."""
    try:
        return [line for line in Path(file).read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise ConfigError(f"{FLAG}: {file} cannot be read: {why}") from None


def _upsertion(text: str, random: Callable[[int], bytes]) -> Upsertion:
    match = _SHAPE.fullmatch(text.strip())
    if match is None or match[1] not in BY_NAME:
        raise ConfigError(f"{FLAG} takes {_EXAMPLE}, with {' or '.join(BY_NAME)}")
    mechanism = BY_NAME[match[1]]
    words = _words(match[2])
    iterations = words.get("iterations", str(LEAST_ITERATIONS))
    if not iterations.isdigit() or not LEAST_ITERATIONS <= int(iterations) <= MOST_ITERATIONS:
        most = f"from {LEAST_ITERATIONS} to {MOST_ITERATIONS}"
        raise ConfigError(f"{FLAG}: iterations={iterations[:20]} must be a number {most}")
    salt = _bytes(words, "salt") if "salt" in words else random(_SALT_BYTES)
    if ("password" in words) == ("saltedpassword" in words):
        raise ConfigError(f"{FLAG}: you must supply one of password and saltedpassword")
    if "password" in words:
        secret = words["password"].encode()
        if not secret:
            raise ConfigError(f"{FLAG}: the password of {words['name']} is empty")
        salted = hashlib.pbkdf2_hmac(mechanism.digest, secret, salt, int(iterations))
    else:
        salted = _bytes(words, "saltedpassword")
    return Upsertion(words["name"], mechanism.number, int(iterations), salt, salted)


def _words(text: str) -> dict[str, str]:
    """Raises ConfigError."""
    found, at = {}, 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None or match[1] not in _WORDS or match[1] in found:
            raise ConfigError(f"{FLAG} takes each of {', '.join(_WORDS)} once, as KEY=VALUE")
        found[match[1]] = match[2].strip('"')
        at = match.end()
    if not found.get("name"):
        raise ConfigError(f"{FLAG}: you must supply a name, for example {_EXAMPLE}")
    return found


def _bytes(words: dict[str, str], key: str) -> bytes:
    try:
        return base64.b64decode(words[key], validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{FLAG}: {key} is not base64") from None
