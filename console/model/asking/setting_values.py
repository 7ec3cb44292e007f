"""Values of settings as people write them: 7d, 10MiB. Kafka's protocol takes plain numbers, so
these are turned into them before they are sent; `appliance/config/units.py` has the grammar.
"""

from collections.abc import Mapping

from appliance.base.errors import ConfigError
from appliance.config import units
from appliance.config.broker_settings import BROKER
from appliance.config.topic_settings import TOPIC
from console.model.asking.failure import usage


def in_unit(key: str, text: str) -> str:
    """The value in the unit of the setting `key`: 7d of retention.ms is 604800000, 1MiB of
    segment.bytes 1048576. Blanks around it go; whatever has no unit stays as it is and is left to
    the broker. Raises Failure (USAGE) for what may be meant in two ways."""
    known = TOPIC.get(key) or BROKER.get(key)
    unit = units.unit_of(known) if known is not None else units.unit_named(key)
    try:
        return units.in_unit(key, unit, text)
    except ConfigError as unclear:
        raise usage(str(unclear)) from None


def in_units(settings: Mapping[str, str]) -> dict[str, str]:
    """Every value in the unit of its setting."""
    return {key: in_unit(key, text) for key, text in settings.items()}
