"""SCRAM (RFC 5802, 7677) as Apache Kafka's server has it: no channel binding, and of extensions
only `tokenauth`, which says that the user name is the id of a delegation token (KIP-48).

A value machine: a client's messages go in, ours come out; chance comes from outside. Who is not
known gets a stand-in (`stand_in.py`) and fails where a wrong password does.
"""

import base64
import binascii
import hmac
import re
from hashlib import new, pbkdf2_hmac
from typing import Final, NamedTuple

from appliance.authentication.mechanisms import LEAST_ITERATIONS, Scram
from appliance.authentication.refused import LoginRefused

LONGEST_MESSAGE: Final = 16_384
"""Bytes: a name, a nonce and a proof have hundreds."""
_NAME: Final = r"(?:[^\x00=,]|=2C|=3D)+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS: Final = r"(?:,[A-Za-z]+=[^\x00,]+)*"
_BASE64: Final = r"(?:[A-Za-z0-9/+]{4})*(?:[A-Za-z0-9/+]{3}=|[A-Za-z0-9/+]{2}==)?"
_FIRST = re.compile(
    rf"n,(?:a=(?P<acts_as>{_NAME}))?,(?P<bare>(?:m=[^\x00,]+,)?"
    rf"n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(
    rf"(?P<unproved>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)
_BY_TOKEN: Final = "tokenauth"


class Credential(NamedTuple):
    """The form in which a password is kept."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def salted(scram: Scram, password: str, salt: bytes, iterations: int) -> bytes:
    """The salted password: 1 ms for 4,096 iterations and more, without the interpreter's lock."""
    return pbkdf2_hmac(scram.digest, password.encode(), salt, iterations)


def of_salted(scram: Scram, salted_password: bytes, salt: bytes, iterations: int) -> Credential:
    """The credential of a salted password."""
    client_key = hmac.digest(salted_password, b"Client Key", scram.digest)
    server_key = hmac.digest(salted_password, b"Server Key", scram.digest)
    return Credential(salt, new(scram.digest, client_key).digest(), server_key, iterations)


def made(scram: Scram, password: str, salt: bytes, iterations: int) -> Credential:
    """The credential of a password. Takes milliseconds."""
    return of_salted(scram, salted(scram, password, salt, iterations), salt, iterations)


def is_password(scram: Scram, credential: Credential, password: str) -> bool:
    """True if this is the password of the credential. Takes milliseconds."""
    found = made(scram, password, credential.salt, credential.iterations)
    return hmac.compare_digest(found.stored_key, credential.stored_key)


class First(NamedTuple):
    """The client's first message. bare: the part that is signed. by_token: the user is the id of a
    delegation token."""

    user: str
    nonce: str
    bare: str
    by_token: bool = False


def parse_first(message: bytes) -> First:
    """Raises LoginRefused for what is no such message."""
    match = _FIRST.fullmatch(_text(message))
    if match is None:
        raise LoginRefused
    user = _plain_name(match["name"])
    acts_as = match["acts_as"]
    if acts_as is not None and _plain_name(acts_as) != user:
        raise LoginRefused(
            "Authentication failed: Client requested an authorization id that is different from"
            " username"
        )
    pairs = (one.partition("=") for one in match["extensions"].split(","))
    extensions = {key: value for key, _, value in pairs}
    by_token = extensions.get(_BY_TOKEN, "").lower() == "true"
    return First(user, match["nonce"], match["bare"], by_token)


class ScramServer:
    """The server's side of one login, between the client's two messages."""

    __slots__ = (
        "_credential",
        "_exists",
        "_first",
        "_nonce",
        "_scram",
        "_told",
        "by_token",
        "user",
    )

    def __init__(
        self, scram: Scram, first: First, credential: Credential, exists: bool, nonce: str
    ) -> None:
        """nonce: ours, printable, without a comma. exists: False for a stand-in, with which nobody
        logs in."""
        assert "," not in nonce and nonce.isprintable(), "a nonce is printable"
        self._scram = scram
        self._first = first
        self._credential = credential
        self._exists = exists and credential.iterations >= LEAST_ITERATIONS
        self._nonce = first.nonce + nonce
        salt = base64.b64encode(credential.salt).decode()
        self._told = f"r={self._nonce},s={salt},i={credential.iterations}"
        self.user = first.user
        self.by_token = first.by_token

    def challenge(self) -> bytes:
        """The answer to the client's first message."""
        return self._told.encode()

    def finish(self, message: bytes) -> bytes:
        """The answer to its last one: the client is the user. Raises LoginRefused."""
        match = _FINAL.fullmatch(_text(message))
        if match is None or not match["nonce"].endswith(self._nonce):
            raise LoginRefused
        try:
            proof = base64.b64decode(match["proof"], validate=True)
        except binascii.Error as cause:
            raise LoginRefused from cause
        digest, kept = self._scram.digest, self._credential
        signed = f"{self._first.bare},{self._told},{match['unproved']}".encode()
        signature = hmac.digest(kept.stored_key, signed, digest)
        whole = len(proof) == len(signature)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        same = hmac.compare_digest(new(digest, client_key).digest(), kept.stored_key)
        if not (same and whole and self._exists):
            raise LoginRefused
        ours = hmac.digest(kept.server_key, signed, digest)
        return b"v=" + base64.b64encode(ours)


def _text(message: bytes) -> str:
    if len(message) > LONGEST_MESSAGE:
        raise LoginRefused
    try:
        return message.decode()
    except UnicodeDecodeError as cause:
        raise LoginRefused from cause


def _plain_name(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
