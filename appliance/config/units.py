"""Times and sizes as people write them: 7d, 1h30m, 10MiB. What is kept, and told to clients, is the
number in the setting's own unit, as Apache Kafka takes it; Kafka's protocol takes numbers alone.

Files, the command line of `penstock up` and the commands that change settings come through here.
"""

import re
from typing import Final

from appliance.base.errors import ConfigError
from appliance.config.setting import DOUBLE, INT, LONG, SHORT, Setting

_NUMBERS: Final = (INT, LONG, SHORT, DOUBLE)
_BY_NAME: Final = {
    "us": "µs", "ms": "ms", "seconds": "s", "secs": "s", "minutes": "min", "hours": "h",
    "bytes": "bytes",
}  # fmt: skip
"""Last word of a setting's name → its unit."""
_SAID: Final = re.compile(r"\bin (bytes per second|bytes|ms|s|µs)\b")
_PER_UNIT_US: Final = {
    "µs": 1, "ms": 1000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000,
}  # fmt: skip
_TYPED_US: Final = {
    "us": 1, "µs": 1, "ms": 1000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000,
    "d": 86_400_000_000, "w": 604_800_000_000,
}  # fmt: skip
_PART: Final = re.compile(r"(\d{1,18})(us|µs|ms|s|m|h|d|w)")
_DURATION: Final = re.compile(r"(?:\d{1,18}(?:us|µs|ms|s|m|h|d|w))+")
_SIZE: Final = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?([kmgt]?)(i?)(b?)(?:/s)?", re.IGNORECASE)
_MONTHS: Final = re.compile(r"\d+M")
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def unit_of(setting: Setting) -> str:
    """ms, s, min, h, µs, bytes or bytes/s, as its name or its meaning says; "" when it counts."""
    return unit_named(setting.name, setting.doc) if setting.type in _NUMBERS else ""


def unit_named(name: str, doc: str = "") -> str:
    """As `unit_of`, of a setting that is a number for all that is known."""
    if name.endswith("bytes.per.second"):
        return "bytes/s"
    if found := _BY_NAME.get(name.rpartition(".")[2]):
        return found
    said = _SAID.search(doc)
    return said[1].replace(" per second", "/s") if said else ""


def in_unit(name: str, unit: str, text: str) -> str:
    """The value of a setting in its own unit: 7d of retention.ms is 604800000, 1MiB of
    segment.bytes 1048576. What has no unit, or none of this setting, stays as it is: parsing it
    says what the setting takes. Raises ConfigError for what may be meant in two ways, and for a
    time or a size that is no whole number of the unit."""
    text = text.strip()
    if unit in _PER_UNIT_US:
        if _MONTHS.fullmatch(text):
            raise _unclear(name, text, f"say {text[:-1]}m for minutes, {text[:-1]}ms, or days: 30d")
        if _DURATION.fullmatch(text):
            return _time(name, unit, text)
    elif unit.startswith("bytes") and (size := _SIZE.fullmatch(text)) is not None:
        return _size(name, text, size)
    return text


def _time(name: str, unit: str, text: str) -> str:
    us = sum(int(number) * _TYPED_US[one] for number, one in _PART.findall(text))
    whole, rest = divmod(us, _PER_UNIT_US[unit])
    if rest:
        raise _unclear(name, text, f"that is not a whole number of {unit}, in which it is kept")
    return str(whole)


def _size(name: str, text: str, size: re.Match[str]) -> str:
    number, letter, binary, is_bytes = size[1], size[2].lower(), size[3], size[4]
    if not letter:
        return number if is_bytes and not binary and "." not in number else text
    power = _POWERS[letter]
    if not (binary or is_bytes):
        upper = "k" if letter == "k" else letter.upper()
        raise _unclear(
            name, text, f"say {number}{upper}B for {_times(number, 1000, power)},"
            f" or {number}{letter.upper()}iB for {_times(number, 1024, power)} bytes",
        )  # fmt: skip
    count = _times(number, 1024 if binary else 1000, power)
    if not count.isdigit():
        raise _unclear(name, text, "that is not a whole number of bytes")
    return count


def _times(number: str, base: int, power: int) -> str:
    """number × base^power, exactly."""
    whole, _, decimals = number.partition(".")
    count, rest = divmod(int(whole + decimals) * base**power, 10 ** len(decimals))
    return f"{count}{'.…' if rest else ''}"


def _unclear(name: str, text: str, why: str) -> ConfigError:
    return ConfigError(f"Invalid value {text} for configuration {name}: {why}")
