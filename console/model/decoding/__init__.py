"""Decodes the bytes of keys and values: text, JSON, MessagePack, Kafka's own records, Avro and
Protobuf, or their hexadecimal digits.

    bytes of a record → `choosing.Decoders` → Decoded: the decoder that fits, and what it says

Invariants: what is shown is made of the original bytes and never replaces them; nothing here raises
because of bytes, whoever sent them; time and memory are linear in their length, and beyond
`decoded.MOST` they are not taken apart. Callers: `penstock consume`, and the
screens that show records.
"""
