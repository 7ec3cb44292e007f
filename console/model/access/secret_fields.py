"""Metadata records without their secrets, for dumps, which are sent along and read by others."""

from typing import Any, Final

from appliance.metadata.effective import definition
from appliance.metadata.image import BROKER, CLIENT_METRICS, GROUP, TOPIC
from appliance.wire import kraft_records as kraft
from console.model.bundle.secrets import HIDDEN, is_telling
from console.model.decoding.kafka_records import fields

_KINDS: Final = (TOPIC, BROKER, GROUP, CLIENT_METRICS)
_OF_PASSWORDS: Final = ("salt", "stored_key", "server_key")


def shown_fields(message: object) -> dict[str, Any]:
    """The fields of a record by name; the value of a secret setting, and what is derived of a
    user's password, as "(hidden)"."""
    told = fields(message)
    if isinstance(message, kraft.ConfigRecord) and message.value is not None:
        known = message.resource_type in _KINDS
        setting = definition(message.resource_type, message.name) if known else None
        if setting.sensitive if setting is not None else is_telling(message.name):
            told["value"] = HIDDEN
    if isinstance(message, kraft.UserScramCredentialRecord):
        told |= dict.fromkeys(_OF_PASSWORDS, HIDDEN)
    return told
