"""Which version of Penstock this process is, as its installation says.

Read once, by the supervisor before the first fork: whoever upgrades replaces the installation under
an appliance that runs, which is the old one until it is restarted, its successors of dead processes
too.
"""

import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

UNINSTALLED: Final = "0+uninstalled"
"""A checkout that is on the path without having been installed."""


@cache
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
