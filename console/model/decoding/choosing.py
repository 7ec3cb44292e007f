"""Which decoder fits: the one that was chosen for a topic, or else the first one that fits of all
that there are, with the reason for each that does not.

Callers: `penstock consume --decode`, and screens that show records. A Decoders is used by one
thread at a time, which may have to wait for a registry.
"""

from collections.abc import Callable
from typing import Final

from console.model.asking.failure import Failure
from console.model.decoding import kafka_records, message_pack, plain_forms, schemas
from console.model.decoding.decoded import (
    AUTO,
    AVRO,
    HEX,
    JSON,
    KAFKA,
    KEY,
    MSGPACK,
    PROTOBUF,
    TEXT,
    VALUE,
    Decoded,
    Tried,
    Unfit,
    hexed,
)
from console.model.decoding.memory import Choice, Choices
from console.model.decoding.registry import Registry, framed
from console.model.decoding.schemas import Schema

Attempt = tuple[str, Callable[[], Decoded]]
"""A decoder's name, and what it makes of some bytes; it raises Unfit."""

REGISTRY: Final = "registry"
"""How the attempt is called that follows the number of a schema in the bytes."""
_PLAIN: Final[dict[str, Callable[[bytes], Decoded]]] = {
    TEXT: plain_forms.text,
    JSON: plain_forms.json,
    MSGPACK: message_pack.message_pack,
    HEX: hexed,
}
_LIKELY: Final[dict[str, Callable[[bytes], Decoded]]] = {
    JSON: plain_forms.likely_json,
    TEXT: plain_forms.likely_text,
    MSGPACK: message_pack.likely_message_pack,
}
"""In the order in which they are tried."""
_TELLING: Final = (JSON, MSGPACK)
"""A topic with objects of these has its numbers and words in them, too."""


class Decoders:
    """Everything that can decode. choices: what holds for which topic. registry: None when nobody
    has named one."""

    def __init__(self, choices: Choices, registry: Registry | None = None) -> None:
        self.choices = choices
        self.registry = registry
        self._schemas: dict[tuple[str, str], Schema | Unfit] = {}

    def forget_schemas(self) -> None:
        """Schema files are read again when they are needed: they may say something else now."""
        self._schemas = {}

    def key(self, topic: str, key: bytes | None) -> Decoded | None:
        """Decodes a key; None for null."""
        return None if key is None else self._decoded(topic, KEY, key, key)

    def value(self, topic: str, key: bytes | None, value: bytes | None) -> Decoded | None:
        """Decodes a value; None for null. key: of its record, which explains Kafka's own."""
        return None if value is None else self._decoded(topic, VALUE, value, key)

    def why(self, topic: str, part: str, key: bytes | None, value: bytes | None) -> list[Tried]:
        """Every decoder with what became of it, those that were asked first in front. part: KEY or
        VALUE of the record; there is nothing to say of null."""
        data = key if part == KEY else value
        if data is None:
            return []
        choice = self.choices.of(topic, part)
        attempts = self._automatic(topic, part, data, key, choice)
        if choice.decoder != AUTO:
            attempts.insert(0, self._chosen(choice, data))
        found = []
        for name, attempt in attempts:
            try:
                found.append(Tried(name, True, _said(attempt())))
            except Unfit as why:
                found.append(Tried(name, False, str(why)))
        return [*found, Tried(HEX, True, "the digits of any bytes")]

    def _decoded(self, topic: str, part: str, data: bytes, key: bytes | None) -> Decoded:
        choice = self.choices.of(topic, part)
        if choice.decoder != AUTO:
            name, attempt = self._chosen(choice, data)
            try:
                return attempt()
            except Unfit as why:
                return hexed(data, f"{name}: {why}")
        for name, attempt in self._automatic(topic, part, data, key, choice):
            try:
                found = attempt()
            except Unfit:
                continue
            if name in _TELLING:
                self.choices.found(topic, part, name)
            return found
        return hexed(data, "no decoder fits")

    def _chosen(self, choice: Choice, data: bytes) -> Attempt:
        name = choice.decoder
        if name in _PLAIN:
            return name, lambda: _PLAIN[name](data)
        return name, lambda: self._by_schema(choice, data)

    def _automatic(
        self, topic: str, part: str, data: bytes, key: bytes | None, choice: Choice
    ) -> list[Attempt]:
        found: list[Attempt] = []
        if topic in kafka_records.TOPICS:
            of_key = part == KEY
            found.append((
                KAFKA,
                lambda: kafka_records.kafka_key(topic, data)
                if of_key
                else kafka_records.kafka_value(topic, key, data),
            ))  # fmt: skip
        if framed(data) is not None:
            found.append((REGISTRY, lambda: self._by_registry(data)))
        likely = [(name, _attempt(decode, data)) for name, decode in _LIKELY.items()]
        if choice.seen in _TELLING:
            likely = [one for one in likely if one[0] != choice.seen]
            likely.insert(0, (choice.seen, _attempt(_PLAIN[choice.seen], data)))
        return found + likely

    def _by_schema(self, choice: Choice, data: bytes) -> Decoded:
        if not choice.schema:
            found = self._by_registry(data)
            if found.decoder != choice.decoder:
                raise Unfit(f"its schema is of {found.decoder}")
            return found
        schema = self._schema(choice)
        if schema.kind != choice.decoder:
            raise Unfit(f"{choice.schema} is a schema of {schema.kind}")
        try:
            return schema.decode(data)
        except Unfit as why:
            behind = framed(data)
            if behind is None:
                raise
            try:
                return schema.decode_framed(data, behind[1])
            except Unfit:
                raise why from None

    def _schema(self, choice: Choice) -> Schema:
        which = choice.schema, choice.message
        found = self._schemas.get(which)
        if found is None:
            try:
                found = schemas.load(*which)
            except Failure as failure:
                found = schemas.failed(failure)
            self._schemas[which] = found
        if isinstance(found, Unfit):
            raise Unfit(str(found))
        return found

    def _by_registry(self, data: bytes) -> Decoded:
        head = framed(data)
        if head is None:
            raise Unfit(
                "it needs a schema: --schema FILE, or --registry URL for values that begin with the"
                " number of theirs"
            )
        number, rest = head
        if self.registry is None:
            raise Unfit(
                f"it begins as the wire format of a schema registry does, with schema {number}:"
                " --registry URL, or $PENSTOCK_REGISTRY, says what that is"
            )
        return self.registry.schema(number).decode_framed(data, rest)


def _attempt(decode: Callable[[bytes], Decoded], data: bytes) -> Callable[[], Decoded]:
    return lambda: decode(data)


def _said(found: Decoded) -> str:
    return "it fits" if found.decoder not in (AVRO, PROTOBUF) else f"it fits, as {found.decoder}"
