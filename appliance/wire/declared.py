"""Messages declared as dataclasses of ours: each field says how it looks on the wire.

The class is the table: wire type, first version that has the field, tag, nullable, default. All our
declared messages are flexible from version 0 on, and ids are 16 bytes. Callers:
framed_records.py, control_records.py, and the records of coordinators.
"""

import dataclasses
from functools import cache
from types import UnionType
from typing import Any, TypeVar, dataclass_transform, get_args, get_origin

from appliance.base.dataclass import dataclass
from appliance.wire.fields import Field, Reader, StructLayout, Writer, reader, writer

_Cls = TypeVar("_Cls")


def of(
    kind: str,
    *,
    since: int = 0,
    tag: int = -1,
    nullable: bool = False,
    default: Any = dataclasses.MISSING,
) -> Any:
    """A field: wire type ("[]" before it: array), first version that has it, tag or -1."""
    metadata = {"kind": kind, "since": since, "tag": tag, "nullable": nullable}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(of,))
def record(cls: type[_Cls]) -> type[_Cls]:
    """A frozen dataclass with slots whose fields are given by name."""
    return dataclass(slots=True, frozen=True, kw_only=True)(cls)


@dataclass_transform(kw_only_default=True, field_specifiers=(of,))
def light_record(cls: type[_Cls]) -> type[_Cls]:
    """As `record`, but not frozen: made in half the time, for what is made very often."""
    return dataclass(slots=True, kw_only=True)(cls)


def layout_of(cls: type, version: int) -> StructLayout:
    """The layout of a class in one version; fields that the version lacks keep their default."""
    fields = []
    for item in dataclasses.fields(cls):
        meta = item.metadata
        if meta["since"] > version:
            continue
        kind, array = meta["kind"].removeprefix("[]"), meta["kind"].startswith("[]")
        nested = layout_of(_element(item.type), version) if kind == "struct" else None
        default = None if item.default is dataclasses.MISSING else item.default
        fields.append(Field(item.name, kind, array, meta["nullable"], meta["tag"], default, nested))
    return StructLayout(cls, tuple(fields), True)


@cache
def reader_of(cls: type, version: int) -> Reader:
    """The decoder of a class in one version."""
    return reader(layout_of(cls, version))


@cache
def writer_of(cls: type, version: int) -> Writer:
    """The encoder of a class in one version."""
    return writer(layout_of(cls, version))


def _element(hint: Any) -> Any:
    """The class inside `tuple[cls, ...]`, `cls | None` or `tuple[cls, ...] | None`."""
    while get_origin(hint) in (tuple, UnionType):
        hint = get_args(hint)[0]
    return hint
