"""Times on the command line as the house writes them: 20s, 500ms, 1h30m; a plain number is seconds.

Sizes need no type of their own: no flag takes bytes, and settings have their units by their names.
"""

from typing import TYPE_CHECKING, Any, Final

import click

from appliance.base.errors import ConfigError
from appliance.config.units import in_unit

_US: Final = 1_000_000
_SHAPES: Final = "say for example 20s, 500ms, 1h30m or 2.5, which is seconds"


if TYPE_CHECKING:
    _Type = click.ParamType[float]
else:
    _Type = click.ParamType  # which older versions of click cannot take apart


class Seconds(_Type):
    """A time of at least `least` and at most `most` seconds; the command gets seconds."""

    name = "time"

    def __init__(self, least: float, most: float | None = None) -> None:
        self._least = least
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = value if isinstance(value, int | float) else self._read(str(value), param, ctx)
        if found < self._least or (self._most is not None and found > self._most):
            most = "" if self._most is None else f" and at most {in_words(self._most)}"
            self.fail(f"{value} is not at least {in_words(self._least)}{most}", param, ctx)
        return float(found)

    def _read(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return _seconds(text)
        except ConfigError as why:
            return self.fail(f"{text!r}: {str(why).partition(': ')[2]}", param, ctx)
        except ValueError:
            return self.fail(f"{text!r} is no time: {_SHAPES}", param, ctx)


def _seconds(text: str) -> float:
    """Raises ValueError, ConfigError."""
    try:
        found = float(text)
    except ValueError:
        return int(in_unit("", "µs", text)) / _US
    if found - found:  # infinite, or no number
        raise ValueError(text)
    return found


def in_words(seconds: float) -> str:
    """The largest unit that it is a whole number of: 500ms, 90s, 1h."""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s" if seconds >= 1 or not seconds else f"{seconds * 1000:g}ms"
