"""What the supervisor puts for all to read."""

import pytest

from appliance.ring.process_table import ProcessTable
from appliance.ring.settings_area import MOST, SettingsArea


@pytest.fixture
def table():
    return ProcessTable(
        memoryview(bytearray(ProcessTable.bytes_needed(1, 1))), ioprocs=1, netprocs=1
    )


def test_the_newest_counts(table):
    area = SettingsArea(memoryview(bytearray(SettingsArea.BYTES)), table)
    assert area.read_settings() == (0, b"")
    for number, text in enumerate((b"one", b"x" * MOST, b"", b"two"), 1):
        area.write_settings(text)
        assert area.number == number
        assert area.read_settings() == (number, text)


class Racing(SettingsArea):
    """While somebody reads, something new is put there once."""

    __slots__ = ("late",)

    def _place(self, number):
        if self.late:
            late, self.late = self.late, b""
            self.write_settings(late)
        return super()._place(number)


def test_who_reads_meanwhile_gets_one_or_the_other(table):
    memory = memoryview(bytearray(SettingsArea.BYTES))
    area = Racing(memory, table)
    area.late = b""
    area.write_settings(b"before")
    area.late = b"after"
    assert area.read_settings() == (2, b"after")
