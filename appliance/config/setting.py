"""One declaration per setting: Kafka's name, type, default, range, what it does, and whether it may
change at run time.

A declaration is data. `parse` turns text into a checked value; its errors name the key, the value,
the range and the remedy. Everything that loads, alters or describes settings goes through it.
"""

from dataclasses import dataclass
from math import isfinite
from typing import Final

from appliance.base.errors import ConfigError

BOOLEAN: Final = 1
STRING: Final = 2
INT: Final = 3
SHORT: Final = 4
LONG: Final = 5
DOUBLE: Final = 6
LIST: Final = 7
CLASS: Final = 8
PASSWORD: Final = 9
TYPE_NAMES: Final = {
    BOOLEAN: "boolean", STRING: "string", INT: "int", SHORT: "short", LONG: "long",
    DOUBLE: "double", LIST: "list", CLASS: "class", PASSWORD: "password",
}  # fmt: skip
"""The numbers are those of DescribeConfigs (API key 32, version 3)."""

READ_ONLY: Final = "read-only"
PER_BROKER: Final = "per-broker"
CLUSTER_WIDE: Final = "cluster-wide"

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
_SHOWN: Final = 200  # characters of a wrong value in an error
_DIGITS: Final = (
    40  # more are out of every range, and int() takes time that grows with their square
)
_BOUNDS: Final = {
    INT: (-INT_MAX - 1, INT_MAX),
    SHORT: (-32768, 32767),
    LONG: (-LONG_MAX - 1, LONG_MAX),
}

Value = bool | int | float | str | tuple[str, ...] | None


@dataclass(slots=True, frozen=True)
class Setting:
    """A declaration. low and high bound a number, both included; choices bound a string or the
    items of a list.

    mode: READ_ONLY, PER_BROKER or CLUSTER_WIDE (may also be set per broker). synonyms: other keys
    that set the same thing, weaker ones later, each with what its value is multiplied by. inert:
    why the setting is accepted and has no effect.
    """

    name: str
    type: int
    default: Value
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    mode: str = READ_ONLY
    synonyms: tuple[tuple[str, int], ...] = ()
    inert: str = ""

    @property
    def sensitive(self) -> bool:
        """Its value is never shown."""
        return self.type == PASSWORD

    def parse(self, text: str) -> Value:
        """The checked value of `text`. Raises ConfigError."""
        value = self._convert(text.strip())
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            low = self.low if self.low is not None else _BOUNDS.get(self.type, (value, value))[0]
            high = self.high if self.high is not None else _BOUNDS.get(self.type, (value, value))[1]
            if not low <= value <= high:
                raise self._wrong(text, f"takes {self._range()}")
        elif self.choices:
            for item in value if isinstance(value, tuple) else (value,):
                if item not in self.choices:
                    raise self._wrong(text, f"takes {self._range()}")
        return value

    def _convert(self, text: str) -> Value:
        if self.type == BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise self._wrong(text, "takes true or false")
            return text.lower() == "true"
        if self.type in (INT, SHORT, LONG):
            digits = text[1:] if text[:1] in ("-", "+") else text
            if not (digits.isascii() and digits.isdigit() and len(digits) < _DIGITS):
                raise self._wrong(text, f"takes {self._range()}")
            return int(text)
        if self.type == DOUBLE:
            try:
                number = float("" if "_" in text else text)
            except ValueError:
                raise self._wrong(text, f"takes {self._range()}") from None
            if not isfinite(number):
                raise self._wrong(text, f"takes {self._range()}")
            return number
        if self.type == LIST:
            return tuple(item.strip() for item in text.split(",") if item.strip())
        return text

    def _range(self) -> str:
        if self.choices:
            several = "a list of " if self.type == LIST else "one of "
            return several + ", ".join(self.choices)
        kind = "a whole number" if self.type != DOUBLE else "a number"
        lowest, highest = _BOUNDS.get(self.type, (None, None))
        low = self.low if self.low is not None else lowest
        high = self.high if self.high is not None else highest
        return f"{kind} from {low} to {high}" if low is not None and high is not None else kind

    def _wrong(self, text: str, takes: str) -> ConfigError:
        shown = "(hidden)" if self.sensitive else repr(text[:_SHOWN])
        return ConfigError(f"Invalid value {shown} for configuration {self.name}: it {takes}")


def shown(value: Value) -> str | None:
    """The text of a value as Kafka shows it; None for no value."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)
