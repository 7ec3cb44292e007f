"""A screen of the console as SVG that is the same in every run: no port, no age, no number that the
drawing library makes up, and no font from elsewhere."""

import re
import shutil
import subprocess
from pathlib import Path

from textual.widgets import Input

from tests.console.seat import LARGE, SMALL

SIZES = (SMALL, (120, 40), LARGE)
THEMES = {"dark": "penstock-dark", "light": "penstock-light"}
_CELL = 12.2
_LED = re.compile(
    r'x="([0-9.]+)"( y="[0-9.]+") textLength="([0-9.]+)"([^>]*)>((?:&#160;)+)(?=[^<&])'
)
_FONTS = re.compile(r"\s*@font-face \{[^}]*\}")
_NAMED = re.compile(r"terminal-\d+")
_SHOWN = "localhost:9092"


def photograph(app, path):
    """path: of the file to write."""
    app._age = lambda now: app._age_words.show_parts(("● 0 s", "green"))
    app._age(0.0)
    for box in app.screen.query(Input):
        box.cursor_blink = False
    picture = app.export_screenshot(title="penstock console", simplify=True)
    address = app.world.link.bootstrap
    picture = picture.replace(address, _SHOWN + "&#160;" * (len(address) - len(_SHOWN)))
    picture = _NAMED.sub("terminal", _FONTS.sub("", picture))
    picture = picture.replace("Fira Code, monospace", "ui-monospace, 'DejaVu Sans Mono', monospace")
    picture = _LED.sub(_moved, picture)
    path.write_text("\n".join(line.rstrip() for line in picture.splitlines()) + "\n")


def words_of(picture):
    """The words of an SVG, line by line as they are drawn."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


def convert(path):
    """A PNG beside the SVG, where something is installed that can make one."""
    to = path.with_suffix(".png")
    if tool := shutil.which("chromium"):  # alone keeps each word in its column
        _by_chromium(tool, path, to)
    elif tool := shutil.which("rsvg-convert"):
        subprocess.run([tool, "-o", to, path], check=True)


def _by_chromium(tool, path, to):
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', path.read_text()).groups()
    size = f"--window-size={round(float(width))},{round(float(height))}"
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    words = [tool, *options, size, f"--screenshot={to}", Path(path).resolve().as_uri()]
    subprocess.run(words, stderr=subprocess.DEVNULL, check=True)


def _moved(text):
    """Without the blanks in front, and where it begins without them: some who draw drop them."""
    x, y, length, rest, blanks = text.groups()
    wide = _CELL * blanks.count(";")
    x, length = (round(float(one) + by, 1) for one, by in ((x, wide), (length, -wide)))
    return f'x="{x:g}"{y} textLength="{length:g}"{rest}>'
