"""The SASL mechanisms by their names and, of SCRAM, by Kafka's numbers (KIP-554)."""

from typing import Final, NamedTuple

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"

SERVED: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)
"""What a listener can offer."""
ABSENT: Final = {
    "GSSAPI": "Kerberos is not served",
}
"""Mechanisms of Apache Kafka that no listener can offer, each with what is said of it."""

LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16384
"""What AlterUserScramCredentials takes, both included."""


class Scram(NamedTuple):
    """A SCRAM mechanism. number: on the wire and in records. digest: hashlib's name."""

    name: str
    number: int
    digest: str


SCRAMS: Final = (Scram(SCRAM_SHA_256, 1, "sha256"), Scram(SCRAM_SHA_512, 2, "sha512"))
BY_NAME: Final = {one.name: one for one in SCRAMS}
BY_NUMBER: Final = {one.number: one for one in SCRAMS}
