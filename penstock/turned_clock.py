"""The wall clock of a test's appliance, from outside: a file beside its folder says how far it is
ahead, and the environment names that file to it."""

from datetime import timedelta
from pathlib import Path
from typing import Final

VARIABLE: Final = "PENSTOCK_TEST_CLOCK"
_MOST: Final = timedelta(days=36_525)
_SIZE: Final = 8  # milliseconds, signed, little-endian


class TurnedClock:
    """The shifted clock of the appliance in `data_dir`; starts as far ahead as an earlier one in
    that folder was.
    """

    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir.parent / f"{data_dir.name}.clock"

    def environment(self) -> dict[str, str]:
        """For its supervisor, whose children inherit it. The file is made if there is none."""
        if not self._file.exists():
            self._file.write_bytes(bytes(_SIZE))
        return {VARIABLE: str(self._file.absolute())}

    def advance(self, by: timedelta) -> None:
        """Further ahead. Raises ValueError for a way back and more than a century in all."""
        self.environment()
        before = int.from_bytes(self._file.read_bytes(), "little")
        ahead = timedelta(milliseconds=before) + by
        if not timedelta() <= by <= ahead <= _MOST:
            raise ValueError(f"a clock goes ahead, and a century at most: {by} is refused")
        ahead_ms = ahead // timedelta(milliseconds=1)
        with self._file.open("r+b", buffering=0) as file:  # mapped: never truncated
            file.write(ahead_ms.to_bytes(_SIZE, "little"))
