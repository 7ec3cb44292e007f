"""The brokers' own records: keys and values of their internal topics, as JSON.

The schemas are those that the appliance writes and replays by (`appliance.coordinators`), which are
Kafka's. Caller: `choosing`; `log_files` shows records of the metadata log with `fields`.
"""

import base64
import dataclasses
from importlib import import_module
from typing import Any, Final

from appliance.base.errors import PeerError
from appliance.base.ids import OFFSETS_TOPIC
from appliance.wire.uuids import format_uuid
from console.model.decoding import json_text
from console.model.decoding.decoded import KAFKA, MOST, PARTS_MOST, Decoded, Unfit
from console.model.decoding.plain_forms import too_long

TOPICS: Final = {
    OFFSETS_TOPIC: ("groups.records", "groups.consumer_records"),
    "__transaction_state": ("transactions.records",),
}
"""Topic → the modules of `appliance.coordinators` that declare its records, in the first one's
RECORDS."""
_CONSUMER: Final = "consumer"


def kafka_key(topic: str, key: bytes) -> Decoded:
    """The key of a record of one of TOPICS. Raises Unfit."""
    found, _ = _read(topic, key, None)
    return _told(found, "Key", key)


def kafka_value(topic: str, key: bytes | None, value: bytes) -> Decoded:
    """The value, which only its key explains. Raises Unfit."""
    if key is None:
        raise Unfit("its record has no key, which would say what it is")
    _, found = _read(topic, key, value)
    assert found is not None, "a value was given"
    return _told(found, "Value", value)


def _read(topic: str, key: bytes, value: bytes | None) -> tuple[Any, Any]:
    first, *_ = [import_module(f"appliance.coordinators.{name}") for name in TOPICS[topic]]
    for part in (key, value or b""):
        if len(part) > MOST:
            raise too_long(part)
    try:
        found: tuple[Any, Any] | None = first.RECORDS.decode(key, value)
    except PeerError as wrong:
        raise Unfit(wrong.message) from None
    if found is None:
        raise Unfit(f"no record of type {int.from_bytes(key[:2], 'big', signed=True)} is known")
    return found


def _told(message: Any, ending: str, data: bytes) -> Decoded:
    row = {"type": type(message).__name__.removesuffix(ending)} | fields(message)
    if row.get("protocol_type") == _CONSUMER:
        for shown, member in zip(row["members"], message.members, strict=True):
            _open(shown, member)
    try:
        return Decoded(KAFKA, json_text.written(row, PARTS_MOST), data)
    except ValueError as wrong:
        raise Unfit(str(wrong)) from None


def _open(shown: dict[str, Any], member: Any) -> None:
    """Decodes the bytes that consumers of a classic group embed."""
    from appliance.coordinators.groups.embedded import assignment, subscription

    try:
        shown["subscription"] = dataclasses.asdict(subscription(member.subscription))
        shown["assignment"] = assignment(member.assignment)
    except PeerError:
        return  # then as bytes


def fields(message: Any) -> dict[str, Any]:
    """The fields of a declared message as JSON knows them: ids as Kafka writes them, other bytes in
    base64."""
    return {
        field.name: _plain(getattr(message, field.name))
        for field in dataclasses.fields(message)
        if field.name != "version"
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return format_uuid(value) if len(value) == 16 else base64.b64encode(value).decode()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value):
        return fields(value)
    return value
