"""How quotas are named and written: `produce=10MB/s` or `producer_byte_rate=10000000`, and back."""

import re
from decimal import Decimal
from typing import Final

from appliance.quotas.limits import CONNECTION, FETCH, MUTATION, PRODUCE, REQUEST
from console.model.asking.failure import Failure, usage

_SHORT: Final = {
    "produce": PRODUCE,
    "fetch": FETCH,
    "consume": FETCH,
    "request": REQUEST,
    "requests": REQUEST,
    "mutations": MUTATION,
    "connections": CONNECTION,
}
KINDS: Final = (PRODUCE, FETCH, REQUEST, MUTATION, CONNECTION)
_BYTES: Final = (PRODUCE, FETCH)
_UNITS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SHAPE: Final = re.compile(r"([0-9.]+)\s*(%|([kmgt]?)(i?)b?(/s)?)", re.IGNORECASE)


def kind_of(name: str) -> str:
    """The quota's name in Kafka. Raises Failure (USAGE)."""
    kind = _SHORT.get(name, name)
    if kind not in KINDS:
        raise usage(f"{name!r} is not a quota", f"quotas are {', '.join(KINDS)}")
    return kind


def read(kind: str, text: str) -> float:
    """A value: 10MB/s, 1.5MiB, 500000, 25%, 5/s. Raises Failure (USAGE)."""
    match = _SHAPE.fullmatch(text.strip())
    try:
        number = float(match[1]) if match else -1.0
    except ValueError:
        number = -1.0
    if match is None or number < 0:
        raise _wrong(kind, text)
    percent, letter, binary = match[2] == "%", (match[3] or "").lower(), bool(match[4])
    if percent != (kind == REQUEST) and (percent or match[2]):
        raise _wrong(kind, text)
    if binary and not letter:
        raise _wrong(kind, text)
    if kind not in _BYTES and (letter or "b" in match[2].lower()):
        raise _wrong(kind, text)
    if number == 0:
        raise usage(f"{kind}={text}: a quota must be greater than 0", "unset takes it away")
    value = number * (1024 if binary else 1000) ** _UNITS[letter]
    return float(round(value)) if kind in _BYTES else value


def shown(kind: str, value: float | None) -> str | None:
    """For people: 10 MB/s, 25 %, 5/s."""
    if value is None:
        return None
    if kind == REQUEST:
        return f"{value:.4g} %"
    if kind not in _BYTES:
        return f"{value:.4g}/s"
    for unit in ("B/s", "kB/s", "MB/s", "GB/s"):
        if value < 1000 or unit == "GB/s":
            return f"{value:.4g} {unit}"
        value /= 1000
    return None


def exact(kind: str, value: float | None) -> str:
    """As it can be typed, and `read` gives back: 10MB/s, 25%, 5/s, 12345678; "" for None."""
    if value is None:
        return ""
    told = (shown(kind, value) or "").replace(" ", "")
    try:
        if read(kind, told) == value:
            return told
    except Failure:
        pass
    digits = format(Decimal(value), "f")
    return f"{digits}%" if kind == REQUEST else digits


def brief(kind: str) -> str:
    """The short name of a quota, its own when it has none."""
    return next((short for short, one in _SHORT.items() if one == kind), kind)


def example(kind: str) -> str:
    """A value of it as it is typed."""
    return {REQUEST: "25%", MUTATION: "5/s", CONNECTION: "10/s"}.get(kind, "10MB/s")


def _wrong(kind: str, text: str) -> Failure:
    what = "a percentage" if kind == REQUEST else "a rate"
    return usage(
        f"{brief(kind)}={text} is not {what}", f"for example {brief(kind)}={example(kind)}"
    )
