"""Which version of Penstock this is, as its installation says."""

import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

UNINSTALLED: Final = "0+uninstalled"
"""A checkout that is on the path without having been installed."""


def current() -> str:
    """As pip knows it: what pages/release/version.py found when it was installed."""
    for folder in sys.path:
        for found in sorted(Path(folder).glob("penstock-*.dist-info/METADATA")):
            if told := _told(found):
                return told
    # Otherwise: an appliance would keep what this brings along, a parser of mail and 40 more.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("penstock")
    except PackageNotFoundError:
        return UNINSTALLED


def _told(metadata: Path) -> str:
    """By an installation; "" when it does not."""
    with suppress(OSError), metadata.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("Version:"):
                return line.partition(":")[2].strip()
    return ""


def compiled() -> bool:
    """Whether the modules that every request passes are machine code (setup.py)."""
    found = find_spec("appliance.wire.batch")
    return found is not None and not (found.origin or "").endswith(".py")
