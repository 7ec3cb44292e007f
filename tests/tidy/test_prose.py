"""Pages of prose have lines that fit any editor and any diff."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
WIDEST = 120
WIDEST_HEADING = 90
"""A wider one has the paragraph below it in it."""
ROOMS = (
    "appliance",
    "benchmarks",
    "console",
    "docs",
    "penstock",
    "spark_local",
    "systemd",
    "tests",
)


def pages():
    """Every page of the repository: also those of rooms, and those that commands print."""
    yield from sorted(ROOT.glob("*.md"))
    for room in ROOMS:
        yield from sorted((ROOT / room).rglob("*.md"))


def prose(text):
    """Lines with their numbers, without code, tables and what cannot be broken."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
        elif not fenced and not line.startswith(("|", "    ")):
            yield number, line


def test_lines_of_prose_fit():
    wide = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} characters"
        for path in pages()
        for number, line in prose(path.read_text())
        if len(line) > WIDEST and len(re.sub(r"`[^`]*`|\S+", "x", line)) > 1
    ]
    assert not wide, wide


def test_a_heading_stands_alone():
    wide = [
        f"{path.relative_to(ROOT)}:{number}: {line[:40]}"
        for path in pages()
        for number, line in prose(path.read_text())
        if line.startswith("#") and len(line) > WIDEST_HEADING
    ]
    assert not wide, wide


def test_a_wide_line_is_found_and_code_is_not():
    wide = "word " * 30
    text = f"short\n{wide}\n```sh\n{wide}\n```\n| {wide} |\n    {wide}\n{wide}"
    assert [number for number, line in prose(text) if len(line) > WIDEST] == [2, 8]
