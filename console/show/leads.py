"""Where a group's lag leads, and when a disk is full, in a few words."""

from console.model.groups.trend import Trend
from console.model.storage.forecast import Forecast
from console.show.figures import age, short


def leads(found: Trend | None) -> str:
    """`drains in 4 min`, `grows 1.2k/s: never drains`, `stays`, `up to date`; "" while too little
    was seen to say."""
    if found is None:
        return ""
    if found.grows_s > 0:
        return f"grows {short(found.grows_s)}/s: never drains"
    if found.drains_s is None:
        return "stays"
    return f"drains in {age(found.drains_s)}" if found.drains_s else "up to date"


def full(forecast: Forecast | None) -> str:
    """`full in 3 d 4 h at the rate of the last 23 h`, `never full at …`."""
    if forecast is None or not forecast.known_s:
        return "too early to say when full"
    rate = f"at the rate of the last {age(forecast.known_s)}"
    if forecast.full_s is not None:
        return f"full in {age(forecast.full_s)} {rate}"
    return f"never full {rate}"
