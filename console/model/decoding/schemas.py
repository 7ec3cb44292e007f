"""Schemas: what Avro and Protobuf need beside the bytes. From a file, or from a registry.

The libraries are an extra: without them a sentence says what to install.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from console.model.asking.failure import Failure, usage
from console.model.decoding import plain_forms
from console.model.decoding.decoded import AVRO, JSON, PROTOBUF, Decoded, Unfit

_T = TypeVar("_T")
AVRO_ENDINGS: Final = (".avsc", ".json")
SETS: Final = (".desc", ".pb", ".protoset", ".fds", ".bin")
ENDINGS: Final = AVRO_ENDINGS + SETS
"""Of files with a schema in them."""
INSTALL: Final = "pip install '.[schemas]'"


class Schema(Protocol):
    """A declared schema of values. kind: AVRO, PROTOBUF or JSON."""

    kind: str

    def decode(self, data: bytes) -> Decoded:
        """A value. Raises Unfit."""

    def decode_framed(self, data: bytes, rest: bytes) -> Decoded:
        """A value behind the wire format's head. data: with it; rest: without. Raises Unfit."""


class JsonSchema:
    """A registry's JSON Schema: the bytes are JSON, whatever it demands of them."""

    kind = JSON

    def decode(self, data: bytes) -> Decoded:
        """Any JSON."""
        return plain_forms.json(data)

    def decode_framed(self, data: bytes, rest: bytes) -> Decoded:
        """JSON behind the head."""
        return Decoded(JSON, plain_forms.json(rest).text, data)


def load(path: str, message: str = "") -> Schema:
    """The schema in a file: `.avsc`, or a set of Protobuf descriptors as protoc writes it. message:
    which one of its messages. Raises Failure (USAGE)."""
    if path.endswith(".proto"):
        raise usage(
            f"{path} is Protobuf's source: its descriptors are needed",
            "protoc --include_imports --descriptor_set_out=FILE.desc FILE.proto",
        )
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise usage(f"{path} cannot be read: {problem.strerror}") from None
    try:
        if path.endswith(AVRO_ENDINGS):
            return avro(json.loads(data))
        if path.endswith(SETS):
            return protobuf_set(data, message)
    except Unfit as wrong:
        raise usage(f"{path}: {wrong}") from None
    except (ValueError, RecursionError) as wrong:
        raise usage(f"{path} is no Avro schema: {wrong}") from None
    raise usage(
        f"{path}: its name does not show the kind of schema",
        f"{' '.join(AVRO_ENDINGS)} for Avro, {' '.join(SETS)} for Protobuf's descriptors",
    )


def avro(schema: Any, references: tuple[Any, ...] = ()) -> Schema:
    """An Avro schema as JSON's objects; references: those that it names, in an order in which each
    is complete. Raises Unfit."""

    def make_schema() -> Schema:
        from console.model.decoding.avro_values import AvroSchema

        return AvroSchema(schema, references)

    return _with_library(AVRO, make_schema)


def protobuf_set(data: bytes, message: str) -> Schema:
    """A FileDescriptorSet. Raises Unfit."""

    def make_schema() -> Schema:
        from console.model.decoding.protobuf_values import ProtobufSchema

        return ProtobufSchema.of_set(data, message)

    return _with_library(PROTOBUF, make_schema)


def protobuf_files(files: dict[str, bytes], main: str) -> Schema:
    """FileDescriptorProtos by their names. Raises Unfit."""

    def make_schema() -> Schema:
        from console.model.decoding.protobuf_values import ProtobufSchema

        return ProtobufSchema(files, main)

    return _with_library(PROTOBUF, make_schema)


def _with_library(kind: str, make: Callable[[], _T]) -> _T:
    try:
        return make()
    except ImportError as missing:
        raise Unfit(f"{kind} needs {missing.name}, which is not here: {INSTALL}") from None


def failed(failure: Failure) -> Unfit:
    """Why a schema file that was chosen earlier is of no use now."""
    return Unfit(failure.message + (f" ({failure.hint})" if failure.hint else ""))
