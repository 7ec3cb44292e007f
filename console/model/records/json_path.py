"""JSON with exact numbers, and what lies at a path in it."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal, DecimalException
from typing import Any, Final

Step = str | int | None
"""Of a path: a name, an index (from the end when it is below 0), None for any element."""


def number(text: str) -> int | Decimal:
    """A number of JSON, exactly. Raises ValueError when it is beyond all measure."""
    try:
        return Decimal(text) if any(char in text for char in ".eE") else int(text)
    except (DecimalException, ValueError):
        raise ValueError(f"{text[:20]} … is too long a number") from None


# NaN and Infinity are no JSON, but Python's and others' encoders write them: floats, which no
# comparison knows.
_DECODE: Final = json.JSONDecoder(parse_float=number, parse_constant=float).decode


def loaded(data: bytes) -> Any:
    """The value that is written in JSON, UTF-8; whole numbers are int, others Decimal. Raises
    ValueError when it is not JSON, or nested deeper than a thousand or so."""
    try:
        return _DECODE(data.decode())
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def found_at(path: Sequence[Step], value: Any) -> Iterator[Any]:
    """Yields the values at a path: several when it has "any element" in it."""
    for n, step in enumerate(path):
        if step is None:
            inner = value.values() if isinstance(value, dict) else value
            if isinstance(value, dict | list):
                for one in inner:
                    yield from found_at(path[n + 1 :], one)
            return
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return
        elif not isinstance(value, list) or not -len(value) <= step < len(value):
            return
        value = value[step]
    yield value
