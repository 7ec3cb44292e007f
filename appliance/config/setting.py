"""One declaration per setting: Kafka's name, type, default, range, what it does, and whether it may
change at run time.

A declaration is data. `parse` turns text into a checked value; its errors name the key, the value,
the range and the remedy. Everything that loads, alters or describes settings goes through it.
"""

from math import isfinite
from re import fullmatch
from typing import Final

from appliance.base.dataclass import dataclass
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
    why the setting is accepted and has no effect. pattern: of each value of a list, as a regular
    expression.
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
    pattern: str = ""

    @property
    def sensitive(self) -> bool:
        """Its value is never shown."""
        return self.type == PASSWORD

    def parse(self, text: str) -> Value:
        """The checked value of `text`. Raises ConfigError, which begins with Kafka's own words."""
        value = self._convert(text.strip())
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            low, high = self._bounds()
            if low is not None and value < low:
                raise self._wrong(text, f"Value must be at least {low}", self._range())
            if high is not None and value > high:
                raise self._wrong(text, f"Value must be no more than {high}", self._range())
        elif self.choices:
            for item in value if isinstance(value, tuple) else (value,):
                if item not in self.choices:
                    known = ", ".join(self.choices)
                    raise self._wrong(item, f"String must be one of: {known}")
        elif self.pattern and isinstance(value, tuple):
            for item in value:
                if not fullmatch(self.pattern, item):
                    raise self._wrong(text, f"{item} is none of these", f": {self.doc}")
        return value

    def _convert(self, text: str) -> Value:
        if self.type == BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise self._wrong(text, "Expected value to be either true or false")
            return text.lower() == "true"
        if self.type in (INT, SHORT, LONG):
            digits = text[1:] if text[:1] in ("-", "+") else text
            whole = int(text) if _whole(digits) else None
            lowest, highest = _BOUNDS[self.type]
            if whole is None or not lowest <= whole <= highest:
                raise self._wrong(text, self._not_a_number(), self._range())
            return whole
        if self.type == DOUBLE:
            try:
                number = float("" if "_" in text else text)
            except ValueError:
                raise self._wrong(text, self._not_a_number(), self._range()) from None
            if not isfinite(number):
                raise self._wrong(text, self._not_a_number(), self._range())
            return number
        if self.type == LIST:
            return tuple(item.strip() for item in text.split(",") if item.strip())
        return text

    def _bounds(self) -> tuple[float | None, float | None]:
        lowest, highest = _BOUNDS.get(self.type, (None, None))
        low = self.low if self.low is not None else lowest
        high = self.high if self.high is not None else highest
        return low, high

    def _not_a_number(self) -> str:
        return f"Not a number of type {TYPE_NAMES[self.type].upper()}"

    def _range(self) -> str:
        kind = "a whole number" if self.type != DOUBLE else "a number"
        low, high = self._bounds()
        between = f" from {low} to {high}" if low is not None and high is not None else ""
        return f"; it takes {kind}{between}"

    def _wrong(self, text: str, why: str, takes: str = "") -> ConfigError:
        shown = "(hidden)" if self.sensitive else text[:_SHOWN]
        return ConfigError(f"Invalid value {shown} for configuration {self.name}: {why}{takes}")


def _whole(digits: str) -> bool:
    return digits.isascii() and digits.isdigit() and len(digits) < _DIGITS


def shown(value: Value) -> str | None:
    """The text of a value as Kafka shows it; None for no value."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).replace("e+", "E") if isinstance(value, float) else str(value)
