"""Protobuf, as JSON: by Google's library, which bounds how deeply messages are nested.

Fields have the names of the schema, numbers all their digits, and fields that the schema does not
know their numbers for names, so that nothing is missing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.unknown_fields import UnknownFieldSet

from console.model.decoding import json_text
from console.model.decoding.decoded import MOST, PARTS_MOST, PROTOBUF, Decoded, Unfit
from console.model.decoding.plain_forms import too_long

_WELL_KNOWN: Final = re.compile(
    r"google/protobuf/"
    r"(any|api|descriptor|duration|empty|field_mask|source_context|struct|timestamp|type|wrappers)"
    r"\.proto"
)
"""The files that come with the library, and that nobody sends along."""
_GROUP: Final = 3
_DEEPEST: Final = 100
_MOST_INDEXES: Final = 100


class ProtobufSchema:
    """Messages as descriptors declare them."""

    kind = PROTOBUF

    def __init__(self, files: Mapping[str, bytes], main: str, message: str = "") -> None:
        """files: FileDescriptorProtos by name. main: the file whose messages are meant. message:
        the one that is meant, with its package; "" when there is but one. Raises Unfit."""
        self._pool = DescriptorPool()
        try:
            _add_all(self._pool, files)
            self._file = self._pool.FindFileByName(main)
            found = self._pool.FindMessageTypeByName(message) if message else None
        except Unfit:
            raise
        except Exception as wrong:  # whatever the library finds wrong with them
            raise Unfit(f"these are no Protobuf descriptors: {_told(wrong)}") from None
        names = list(self._file.message_types_by_name)
        self._only = found or (
            self._file.message_types_by_name[names[0]] if len(names) == 1 else None
        )

    @classmethod
    def of_set(cls, data: bytes, message: str) -> "ProtobufSchema":
        """A FileDescriptorSet as protoc writes it. Raises Unfit."""
        try:
            found = descriptor_pb2.FileDescriptorSet.FromString(data)
        except Exception as wrong:
            raise Unfit(f"this is no set of Protobuf descriptors: {_told(wrong)}") from None
        if not found.file:
            raise Unfit("there are no Protobuf descriptors in it")
        files = {one.name: one.SerializeToString() for one in found.file}
        made = cls(files, found.file[-1].name, message)
        if made._only is None:
            names = sorted(_messages(found))
            told = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
            raise Unfit(f"it has several messages: say which, --message NAME: {told}")
        return made

    def decode(self, data: bytes) -> Decoded:
        """A message. Raises Unfit."""
        if self._only is None:
            raise Unfit("its schema has several messages")
        return self._decode(data, data, self._only)

    def decode_framed(self, data: bytes, rest: bytes) -> Decoded:
        """A message behind the indexes that say which one of the file it is."""
        indexes, at = message_indexes(rest)
        return self._decode(data, rest[at:], self._found(indexes))

    def _found(self, indexes: Sequence[int]) -> Any:
        kinds = list(self._file.message_types_by_name.values())
        found = None
        for index in indexes:
            if not 0 <= index < len(kinds):
                raise Unfit(f"its schema has no message {'.'.join(map(str, indexes))}")
            found = kinds[index]
            kinds = list(found.nested_types)
        return found

    def _decode(self, data: bytes, rest: bytes, kind: Any) -> Decoded:
        if len(rest) > MOST:
            raise too_long(rest)
        try:
            message = message_factory.GetMessageClass(kind).FromString(rest)
            return Decoded(PROTOBUF, json_text.written(_Walk().tree(message), PARTS_MOST), data)
        except Unfit:
            raise
        except Exception as wrong:  # whatever the library finds wrong with them
            raise Unfit(f"as {kind.full_name}: {_told(wrong)}") from None


class _Walk:
    """A message as JSON's objects, up to so many parts."""

    def __init__(self) -> None:
        self._parts = 0

    def tree(self, message: Any) -> dict[str, Any]:
        """Its fields by name, then those that the schema does not know by number."""
        found = {field.name: self._field(field, value) for field, value in message.ListFields()}
        return found | self._unknown(UnknownFieldSet(message), 0)

    def _field(self, field: Any, value: Any) -> Any:
        if _is_map(field):
            kind = field.message_type.fields_by_name["value"]
            return {key: self._one(kind, value[key]) for key in sorted(value)}
        if field.is_repeated:
            return [self._one(field, one) for one in value]
        return self._one(field, value)

    def _one(self, field: Any, value: Any) -> Any:
        self._parts += 1
        if self._parts > PARTS_MOST:
            raise Unfit(f"it has more than {PARTS_MOST} parts")
        if field.message_type is not None:
            return self.tree(value)
        if field.enum_type is not None:
            known = field.enum_type.values_by_number.get(value)
            return known.name if known is not None else value
        return value

    def _unknown(self, fields: Any, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if depth > _DEEPEST:
            raise Unfit("it is nested too deeply")
        for field in fields:
            self._parts += 1
            if self._parts > PARTS_MOST:
                raise Unfit(f"it has more than {PARTS_MOST} parts")
            value = field.data
            if field.wire_type == _GROUP:
                value = self._unknown(value, depth + 1)
            found.setdefault(str(field.field_number), []).append(value)
        return {name: all_[0] if len(all_) == 1 else all_ for name, all_ in found.items()}


def message_indexes(data: bytes) -> tuple[list[int], int]:
    """(the path to a message among those of its file, where the message begins): the count and each
    index as zigzag varints; one byte 0 is short for the first message. Raises Unfit."""
    count, at = _varint(data, 0)
    if not 0 <= count <= _MOST_INDEXES:
        raise Unfit(f"it has {count} message indexes")
    found = []
    for _ in range(count):
        index, at = _varint(data, at)
        found.append(index)
    return found or [0], at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            raise Unfit("its message indexes are cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise Unfit("its message indexes are no varints")


def _is_map(field: Any) -> bool:
    kind = field.message_type
    return bool(field.is_repeated and kind is not None and kind.GetOptions().map_entry)


def _add_all(pool: Any, files: Mapping[str, bytes]) -> None:
    """Each file behind those that it imports."""
    added: set[str] = set()

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in added:
            return
        if name in above:
            raise Unfit(f"{name} imports itself")
        proto = descriptor_pb2.FileDescriptorProto.FromString(_bytes_of(name, files))
        proto.name = name
        for one in proto.dependency:
            add(one, (*above, name))
        pool.AddSerializedFile(proto.SerializeToString())
        added.add(name)

    for name in files:
        add(name, ())


def _bytes_of(name: str, files: Mapping[str, bytes]) -> bytes:
    if name in files:
        return files[name]
    if known := _WELL_KNOWN.fullmatch(name):
        found: bytes = import_module(f"google.protobuf.{known[1]}_pb2").DESCRIPTOR.serialized_pb
        return found
    raise Unfit(f"{name} is imported and not there: protoc --include_imports puts it in")


def _messages(found: Any) -> Iterator[str]:
    for file in found.file:
        package = f"{file.package}." if file.package else ""
        yield from (f"{package}{one.name}" for one in file.message_type)


def _told(wrong: Exception) -> str:
    return str(wrong) or type(wrong).__name__
