"""Reads the golden files beside this module: lines of words, `#` begins a comment."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "golden"


def golden(name: str) -> list[list[str]]:
    """The words of each line of golden/`name`."""
    lines = (_FOLDER / name).read_text().splitlines()
    return [line.split() for line in lines if not line.startswith("#")]
