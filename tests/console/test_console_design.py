"""What docs/console-design.md says of every view is so."""

import re
from pathlib import Path

import pytest

from console.screens.rows import STYLES, Rows
from console.screens.view import FRAMED, HIGH, WIDE, Words
from console.screens.views import VIEWS
from tests.console.seat import SMALL, sit
from tests.console.test_screens_hostile import told
from tests.console.test_screens_pictures import PLACES, calm_world

PAGE = (Path(__file__).parents[2] / "docs" / "console-design.md").read_text()
AROUND = 4
"""Lines of the terminal that are no part of a view."""


def test_the_page_has_the_sizes_and_the_roles():
    rows = re.findall(r"^\| from ([^|]+) \|", PAGE, re.M)
    assert rows == [
        f"{SMALL[0]} × {SMALL[1]}", f"{FRAMED.width} × {FRAMED.height + AROUND}",
        f"{FRAMED.width} × {HIGH + AROUND}", f"{WIDE} columns",
    ]  # fmt: skip
    assert set(STYLES) == set(re.findall(r"^\| [a-z]+ \| `(\w+)`", PAGE, re.M))


@pytest.mark.parametrize("kind", VIEWS)
def test_every_view_has_frames(kind):
    view = VIEWS[kind]
    assert view.frames, "its parts have no titles"
    assert not view.summary_in or view.summary_in in view.frames


@pytest.mark.parametrize("size", [SMALL, (FRAMED.width, FRAMED.height + AROUND), (WIDE, 40)])
def test_all_text_begins_in_one_column_and_frames_hold_it(appliance, size):
    """Frames where there is room for them, and no text beside the one column of all."""
    wrong = []

    async def act(seat):
        for place in PLACES:
            if place.kind in ("records", "tail"):
                continue  # which ask the broker themselves
            await seat.app.go_to(place)
            source = seat.app.world.main(place)
            await seat.until(lambda source=source: source.shown.value is not None, str(place))
            await seat.settled()
            view = seat.app.view
            assert view.is_large == (size != SMALL) or place.kind == "overview"
            for part in view.query("Words, Rows"):
                if not part.display or not part.size or not isinstance(part, Words | Rows):
                    continue
                if any(not one.display for one in part.ancestors if one is not seat.app):
                    continue
                x = part.content_region.x
                column = 2 if view.is_large else 1
                beside = part.region.x > 0
                if x != column and not beside:
                    wrong.append((place.kind, part.id, x))

    sit(appliance.bootstrap, act, size=size, prepare=told(calm_world.answers()))
    assert not wrong
