"""Points in time as text, exact to the unit that they are counted in."""

from datetime import UTC, datetime, timedelta
from typing import Final

MILLIS: Final = 1_000
MICROS: Final = 1_000_000
NANOS: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def moment(count: int, per_second: int, zone: str = "Z") -> str:
    """2013-01-01T05:17:00.120Z. count: since 1970. What no calendar has stays a number."""
    seconds, rest = divmod(count, per_second)
    try:
        told = (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds")
    except OverflowError:
        return str(count)
    digits = len(str(per_second)) - 1
    return f"{told}.{rest:0{digits}d}{zone}" if rest else f"{told}{zone}"


def day(count: int) -> str:
    """2013-01-01. count: days since 1970. What no calendar has stays a number."""
    try:
        return (_EPOCH + timedelta(days=count)).date().isoformat()
    except OverflowError:
        return str(count)
