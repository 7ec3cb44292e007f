"""The settings that have changed in the file while the appliance runs, in shared memory: from the
supervisor, which reads the file again, to every process.

There are two places, so that who reads one is not written over: number n of what was read lies in
place n & 1. It is all that has changed since the start, whoever missed one in between misses
nothing. `ProcessTable.settings` says which number counts, and moves last (x86-64 order assumed).
"""

from typing import Final

from appliance.ring.process_table import ProcessTable

MOST: Final = 1 << 18
"""Bytes that the changed settings may have, encoded."""
_HEAD: Final = 8
_TRIES: Final = 1000


class SettingsArea:
    """Over a memory of `BYTES` bytes, all zero at first; what nobody writes costs nothing."""

    BYTES: Final = 2 * (_HEAD + MOST)

    __slots__ = ("_memory", "_table")

    def __init__(self, memory: memoryview, table: ProcessTable) -> None:
        assert len(memory) >= self.BYTES
        self._memory = memory
        self._table = table

    @property
    def number(self) -> int:
        """How often something was put here."""
        return self._table.settings

    def write_settings(self, encoded: bytes) -> None:
        """The supervisor: this counts from now on."""
        assert len(encoded) <= MOST, "who encodes sees to it"
        at = self._place(self.number + 1)
        self._memory[at : at + _HEAD] = len(encoded).to_bytes(_HEAD, "little")
        self._memory[at + _HEAD : at + _HEAD + len(encoded)] = encoded
        self._table.settings_changed()

    def read_settings(self) -> tuple[int, bytes]:
        """(number, what was put there), the newest; empty while nothing was."""
        for _ in range(_TRIES):
            number = self.number
            at = self._place(number)
            size = int.from_bytes(self._memory[at : at + _HEAD], "little")
            found = bytes(self._memory[at + _HEAD : at + _HEAD + min(size, MOST)])
            if self.number == number:
                return number, found
        raise AssertionError("somebody puts settings all the time")

    @staticmethod
    def _place(number: int) -> int:
        return (number & 1) * (_HEAD + MOST)
