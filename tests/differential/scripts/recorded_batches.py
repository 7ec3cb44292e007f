"""Produce: batches as the encoders of clients of the last ten years made them, and by which times
their records are found.

Each holds the same three records: (0 s, "a", "one", a header), (5 s, no key, "two") and (2 s, "b",
no value). What several versions made byte for byte alike is there once. A head that is wrong, as
some versions of other clients send it, is in `produced_heads.py`.
"""

from tests.differential.registry import script
from tests.differential.scripts.produced_heads import ask, found, stored

FIRST_MS = 1_700_000_000_000
NEWEST = -3
RECORDED = {
    "kafka-clients 0.11.0.3, 1.0.2, 2.0.1, 2.8.2": (
        "000000000000000000000054ffffffff02a4c8ef490000000000020000018bcfe568000000018bcfe57b"
        "88ffffffffffffffffffffffffffff000000031c0000000261066f6e6502026802781400904e02010674"
        "776f001000a01f0402620100"
    ),
    "the same, gzip": (
        "000000000000000000000068ffffffff02e240c1840001000000020000018bcfe568000000018bcfe57b"
        "88ffffffffffffffffffffffffffff000000031f8b08000000000000ff93616060604a64cbcf4b6562ca"
        "60aa106198e0c7c4c856529ecf20c0b0409e852989910100004a5e9d23000000"
    ),
    "kafka-python 1.4.3, 1.4.7, 2.0.2, 2.2.15": (
        "0000000000000000000000540000000002a4c8ef490000000000020000018bcfe568000000018bcfe57b"
        "88ffffffffffffffffffffffffffff000000031c0000000261066f6e6502026802781400904e02010674"
        "776f001000a01f0402620100"
    ),
    "kafkajs 1.8.1, 1.16.0, 2.2.4": (
        "0000000000000000000000540000000002624921a30000000000020000018bcfe568000000018bcfe57b"
        "88ffffffffffffffff000000000000000000031c0000000261066f6e6502026802781400904e02010674"
        "776f001000a01f0402620100"
    ),
    "kafkajs of these versions, gzip": (
        "00000000000000000000006800000000028851dc480001000000020000018bcfe568000000018bcfe57b"
        "88ffffffffffffffff000000000000000000031f8b080000000000000393616060604a64cbcf4b6562ca"
        "60aa106198e0c7c4c856529ecf20c0b0409e852989910100004a5e9d23000000"
    ),
}


@script("Produce", versions=(9, 13))
def recorded_batches(s):
    for number, (client, encoded) in enumerate(RECORDED.items()):
        topic = s.topic(f"topic{number}")
        ask(s, f"{client}: appended", topic, [bytes.fromhex(encoded)])
        for after_ms in (-1, 0, 1, 2000, 2001, 5000, 5001):
            found(s, f"{client}: {after_ms} ms", topic, FIRST_MS + after_ms)
        found(s, f"{client}: newest", topic, NEWEST)
        stored(s, f"{client}: fetched", topic)
