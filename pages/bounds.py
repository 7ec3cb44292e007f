"""The page of bounds: what clients may use at most, and how an operator sees that it is reached."""

from typing import Final

from appliance.config.bounds import BOUNDS, Bound
from appliance.config.broker_settings import BROKER
from appliance.config.setting import READ_ONLY
from pages.markdown import NOTE, anchored, code, plain, table

_INTRO: Final = f"""\
# Bounds

{NOTE}

No client may use more of the appliance than these bounds allow. Each time one is reached, the metric
`penstock_bound_reached_total{{bound="NAME"}}` counts, and the event of its row has the field `bound=NAME`, at most one
line a second. `penstock doctor` warns of bounds that were reached in the last hour, and notes earlier ones until the
next start. Settings marked *dynamic* apply at once (`penstock config set broker`), the others after a restart.
"""


def text() -> str:
    """All of it, as Markdown."""
    rows = [
        (
            anchored(one.name),
            plain(one.what),
            *_setting(one),
            f"[{code(one.event)}](events.md)",
            plain(one.effect),
            plain(one.remedy),
        )
        for one in BOUNDS
    ]
    head = ("bound", "of what", "setting", "default", "event", "the client", "what to do")
    return f"{_INTRO}\n{table(head, rows)}"


def _setting(one: Bound) -> tuple[str, str]:
    if one.of_host:
        return f"{code(one.of_host)} of the host", ""
    found = BROKER[one.setting]
    dynamic = "" if found.mode == READ_ONLY else ", dynamic"
    return f"[{code(one.setting)}](settings.md){dynamic}", code(str(found.default))
