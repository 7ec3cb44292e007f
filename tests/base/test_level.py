"""Level time goes on at the rate of the monotonic clock, whatever the wall clock does."""

from itertools import pairwise

from appliance.base.level import LevelTime


def test_it_goes_on_where_the_wall_clock_jumps():
    level, now_ns, wall_ms = LevelTime(), 7, 1_000_000
    seen = []
    for jump_ms in (0, 0, 5_000, 0, -90_000, 0):
        now_ns += 250_000_000
        wall_ms += 250 + jump_ms
        level.read_clocks(now_ns, wall_ms)
        seen.append(level.of(wall_ms))
    assert [after - before for before, after in pairwise(seen)] == [250] * 5
    assert (seen[0], level.ahead_ms) == (1_000_250, -85_000)


def test_before_a_look_it_is_the_wall_clock():
    assert LevelTime().of(12345) == 12345
