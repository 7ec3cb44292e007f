"""What an I/O process was asked while its metadata was not level."""

from types import SimpleNamespace

import pytest

from appliance.base.level import LevelTime
from appliance.ioproc.main import IoProcess

pytestmark = pytest.mark.interpreted("a shell without its parts is not of the compiled classes")


def test_what_was_held_is_decided_in_order_some_in_a_turn(monkeypatch):
    monkeypatch.setattr("appliance.ioproc.main.HELD_A_TURN", 3)
    process, decided = IoProcess.__new__(IoProcess), []
    process._served = SimpleNamespace(now_ms=0)
    process._clock = SimpleNamespace(wall_ms=lambda: 1, monotonic_ns=lambda: 1)
    process._time, process._apart_ms = LevelTime(), 0
    process._following = SimpleNamespace(committed=[1], applied=1)
    process._arrivals = SimpleNamespace(
        handle=lambda asker, messages, now_ms: decided.append(messages)
    )
    process._held = [(None, [1, 2]), (None, [3, 4]), (None, [5, 6])]
    process._begin_turn()
    assert (decided, process._level) == ([[1, 2], [3, 4]], False)
    process._begin_turn()
    assert (decided[2:], process._level, process._held) == ([[5, 6]], True, [])
