"""Every place of the console as a picture, of an appliance whose answers never change.

`python -m tests.console.draw DIR [PLACE …]` draws them in three sizes and both themes, as SVG, and
as PNG where chromium or rsvg-convert is installed; `python -m tests.console.draw --docs` draws
those of the documentation anew. docs/console-design.md says what to look for.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from console.screens.places import Place
from penstock.local import Appliance
from tests.console import calm_world
from tests.console.photograph import SIZES, THEMES, convert, photograph
from tests.console.seat import sit

DOCS = Path(__file__).parents[2] / "docs" / "console"
_USUAL, _WIDE = (110, 32), (200, 36)
SELECTED = (
    ("overview", Place("overview"), (150, 44), "dark"),
    ("overview-light", Place("overview"), (150, 44), "light"),
    ("overview-small", Place("overview"), (80, 24), "dark"),
    ("topics", Place("topics"), _WIDE, "dark"),
    ("group", Place("group", "reports"), _USUAL, "dark"),
    ("records", Place("records", "orders"), _WIDE, "dark"),
    ("topology", Place("topology"), _USUAL, "dark"),
    ("heat", Place("heat"), _USUAL, "dark"),
    ("quotas", Place("quotas"), _USUAL, "dark"),
    ("txns", Place("txns"), _USUAL, "dark"),
    ("log", Place("log"), _USUAL, "dark"),
    ("delete", Place("topic", "orders"), _USUAL, "dark"),
    ("nodes", Place("nodes"), _USUAL, "dark"),
)  # fmt: skip
"""(file, place, size, theme) of those in docs/console."""


async def show_place(seat, place, theme="dark"):
    """Goes there and waits until it is painted."""
    await seat.app.go_to(place)
    source = seat.app.world.main(place)
    await seat.until(lambda: source.shown.value is not None, str(place))
    seat.app.theme = THEMES[theme]
    await seat.settled()
    await seat.settled()


def drawing_selected(wanted_size):
    """Those of the documentation that have this size."""

    async def act(seat):
        for name, place, size, theme in SELECTED:
            if size != wanted_size:
                continue
            if name == "nodes":
                calm_world.in_a_cluster(seat.app)
            await show_place(seat, place, theme)
            if name == "delete":
                await seat.press("D")
                await seat.plan()
                await seat.type("ord")
            await seat.still_picture(seat.text)
            photograph(seat.app, DOCS / f"{name}.svg")
            if name == "delete":
                await seat.press("escape")
                await seat.back()

    return act


def drawing(folder, size, wanted, places, in_a_cluster):
    async def act(seat):
        async def draw(place, named):
            for theme in THEMES if not wanted or named in wanted else ():
                await show_place(seat, place, theme)
                photograph(seat.app, folder / f"{named}-{size[0]}x{size[1]}-{theme}.svg")

        for place in places:
            await draw(place, place.kind)
        calm_world.in_a_cluster(seat.app)
        for place in in_a_cluster:
            await draw(place, f"{place.kind}-in-a-cluster")

    return act


def main(folder, wanted):
    from tests.console.test_screens_pictures import IN_A_CLUSTER, PLACES, fill, prepared

    os.environ["TZ"] = "UTC"
    time.tzset()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, Appliance(Path(home) / "data") as appliance:
        fill(appliance.bootstrap)
        with mock.patch.object(time, "time", return_value=calm_world.NOW_S):
            if folder == DOCS:
                for size in sorted({size for _, _, size, _ in SELECTED}):
                    act = drawing_selected(size)
                    sit(appliance.bootstrap, act, size=size, prepare=prepared)
                return
            for size in SIZES:
                act = drawing(folder, size, wanted, PLACES, IN_A_CLUSTER)
                sit(appliance.bootstrap, act, size=size, prepare=prepared)
    for path in folder.glob("*.svg"):
        convert(path)


if __name__ == "__main__":
    is_docs = sys.argv[1] == "--docs"
    main(DOCS if is_docs else Path(sys.argv[1]), sys.argv[2:])
