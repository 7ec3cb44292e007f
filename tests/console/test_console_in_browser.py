"""The console in a browser, at the sizes of a desktop and of a telephone: what it shows, that keys
and fingers reach it, and that nothing is asked of any other host. `PENSTOCK_TEST_PICTURES=DIR`
keeps what was seen."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.console.browser import find_browser, opened
from tests.console_process import PENSTOCK

pytest.importorskip("textual_serve")
pytestmark = pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed")
LIMIT_S = 60.0


@pytest.fixture
def address(alone):
    """Where the console is served."""
    command = [*PENSTOCK, "console", "--web", "--port", "0", "-b", alone.bootstrap]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process.stderr.readline().strip()
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT_S) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("name", "width", "height", "is_phone"),
    [("desktop", 1280, 800, False), ("phone", 390, 844, True)],
)
def test_it_is_whole_and_takes_keys(address, name, width, height, is_phone):
    plain = address.partition("?")[0]

    async def look():
        async with opened(width, height, is_phone=is_phone) as page:
            await page.go_to(address)
            await page.hears("Requests")
            inside = "document.documentElement.scroll{0} <= window.inner{0}"
            for side in ("Width", "Height"):
                assert await page.value(inside.format(side)), f"it is not scrolled: {side}"
            shown = await page.value("document.querySelector('.xterm-screen').offsetWidth")
            assert 0.9 * width < shown <= width
            assert await page.value("document.activeElement.tagName") == "TEXTAREA"
            await page.press("2")
            await page.hears("PARTS")
            if folder := os.environ.get("PENSTOCK_TEST_PICTURES"):
                await page.photograph(Path(folder) / f"{name}.png")
            await page.press("1")
            assert all(one.startswith((plain, "data:")) for one in page.asked), page.asked
            assert f"{plain}static/css/xterm.css" in page.asked
            assert any("fonts/RobotoMono" in one for one in page.asked)
            cell = await page.value("parseFloat(document.activeElement.style.width)")
            assert shown / cell >= 79, "a telephone shows a whole line"
            assert not page.wrong
            assert await page.value("location.href") == plain, "no token for who looks on"
            assert await page.value("document.cookie") == ""
            await page.value("window.before = true")
            await page.go_to(plain)  # as when it is loaded again
            await page.until(
                f"!window.before && location.href == '{plain}'"
                " && !!document.querySelector('.xterm-screen')"
            )

    asyncio.run(look())
