"""Every place of the console as a picture, of an appliance whose answers never change:
`python -m tests.console.draw DIR [PLACE …]` draws them in three sizes and both themes, as SVG, and
as PNG where rsvg-convert or cairosvg is there. docs/console-design.md says what to look for.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from benchmarks.console import photograph
from penstock.local import Appliance
from tests.console import calm_world
from tests.console.seat import sit
from tests.console.test_screens_pictures import IN_A_CLUSTER, PLACES, fill, prepared

SIZES = ((80, 24), (120, 40), (200, 50))
THEMES = {"dark": "textual-dark", "light": "textual-light"}


def main(folder, wanted):
    os.environ["TZ"] = "UTC"
    time.tzset()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, Appliance(Path(home) / "data") as appliance:
        fill(appliance.bootstrap)
        with mock.patch.object(time, "time", return_value=calm_world.NOW_S):
            for size in SIZES:
                sit(appliance.bootstrap, drawing(folder, size, wanted), size=size, prepare=prepared)
    for path in folder.glob("*.svg"):
        convert(path)


def drawing(folder, size, wanted):
    async def act(seat):
        async def draw(place, named):
            if wanted and named not in wanted:
                return
            await seat.app.go_to(place)
            source = seat.app.world.main(place)
            await seat.until(lambda: source.shown.value is not None, str(place))
            for theme, name in THEMES.items():
                seat.app.theme = name
                await seat.settled()
                await seat.settled()
                path = folder / f"{named}-{size[0]}x{size[1]}-{theme}.svg"
                photograph(seat.app, path)

        for place in PLACES:
            await draw(place, place.kind)
        calm_world.in_a_cluster(seat.app)
        for place in IN_A_CLUSTER:
            await draw(place, f"{place.kind}-in-a-cluster")

    return act


def convert(path):
    to = path.with_suffix(".png")
    if tool := shutil.which("rsvg-convert"):
        subprocess.run([tool, "-o", to, path], check=True)
        return
    try:
        import cairosvg
    except ImportError:
        return
    cairosvg.svg2png(url=str(path), write_to=str(to))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
