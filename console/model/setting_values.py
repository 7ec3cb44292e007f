"""Values of settings as people write them: 7d, 10MiB. Kafka's settings take plain numbers, so these
are turned into them before they are sent; a properties file takes numbers only, as Kafka's does.
"""

import re
from collections.abc import Mapping
from typing import Final

from console.model.offsets import UNITS_MS, duration_ms, is_duration

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)([kmgt])(i?)b?", re.IGNORECASE)
_UNITS: Final = {"k": 1, "m": 2, "g": 3, "t": 4}
_PER: Final = {
    "ms": 1, "seconds": UNITS_MS["s"], "secs": UNITS_MS["s"], "minutes": UNITS_MS["m"],
    "hours": UNITS_MS["h"],
}  # fmt: skip
"""The last word of a setting's name → ms of its unit."""


def in_unit(key: str, text: str) -> str:
    """The value in the unit of the setting `key`: 7d of retention.ms is 604800000, 1MiB of
    segment.bytes 1048576. Blanks around it go; whatever has no unit, or does not come out whole,
    stays as it is and is left to the broker."""
    text = text.strip()
    unit = key.rpartition(".")[2]
    if unit in _PER and is_duration(text):
        whole, rest = divmod(duration_ms(text), _PER[unit])
        return text if rest else str(whole)
    size = _SIZE.fullmatch(text) if unit == "bytes" else None
    if size is None:
        return text
    number = float(size[1]) * (1024 if size[3] else 1000) ** _UNITS[size[2].lower()]
    return str(round(number)) if number == round(number) else text


def in_units(settings: Mapping[str, str]) -> dict[str, str]:
    """Every value in the unit of its setting."""
    return {key: in_unit(key, text) for key, text in settings.items()}
