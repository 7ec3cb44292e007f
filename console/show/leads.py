"""Where a group's lag leads, in a few words."""

from console.model.trend import Trend
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
