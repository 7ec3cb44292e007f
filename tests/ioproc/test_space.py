"""When appends are refused for want of space, and when they are taken again."""

from appliance.ioproc.space import LOOK_EVERY_NS, SpaceGuard

MIB = 1 << 20


def test_refuses_below_the_greater_limit_and_resumes_above_twice_of_it():
    guard = SpaceGuard(keep_bytes=64 * MIB, keep_percent=1)
    assert guard.due(0)
    total = 10_000 * MIB  # 1 % is 100 MiB
    assert not guard.look(0, total, 100 * MIB)
    assert not guard.low
    assert guard.look(1, total, 100 * MIB - 1)
    assert guard.low
    assert not guard.look(2, total, 199 * MIB)
    assert guard.low
    assert guard.look(3, total, 200 * MIB)
    assert not guard.low


def test_looks_again_after_a_quarter_of_the_limit_or_after_a_while():
    guard = SpaceGuard(keep_bytes=64 * MIB, keep_percent=1)
    guard.look(0, 1000 * MIB, 900 * MIB)
    guard.wrote(16 * MIB - 1)
    assert not guard.due(LOOK_EVERY_NS - 1)
    assert guard.due(LOOK_EVERY_NS)
    guard.wrote(1)
    assert guard.due(1)
