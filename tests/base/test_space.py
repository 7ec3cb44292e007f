"""When appends are refused for want of space, and when they are taken again."""

from appliance.base.space import LOOK_EVERY_NS, TIGHT_BYTES, SpaceGuard

MIB = 1 << 20


def test_refuses_below_the_greater_limit_and_resumes_above_twice_of_it():
    guard = SpaceGuard(keep_bytes=64 * MIB, keep_percent=1)
    assert guard.due(0)
    total = 10_000 * MIB  # 1 % is 100 MiB
    assert not guard.read_space(0, total, 100 * MIB)
    assert not guard.low
    assert guard.read_space(1, total, 100 * MIB - 1)
    assert guard.low
    assert not guard.read_space(2, total, 199 * MIB)
    assert guard.low
    assert guard.read_space(3, total, 200 * MIB)
    assert not guard.low


def test_looks_again_after_a_quarter_of_the_limit_or_after_a_while():
    guard = SpaceGuard(keep_bytes=64 * MIB, keep_percent=1)
    guard.read_space(0, 1000 * MIB, 900 * MIB)
    guard.wrote(16 * MIB - 1)
    assert not guard.due(LOOK_EVERY_NS - 1)
    assert guard.due(LOOK_EVERY_NS)
    guard.wrote(1)
    assert guard.due(1)


def test_a_write_that_found_no_room_refuses_at_once_and_until_the_next_look():
    guard = SpaceGuard(keep_bytes=64 * MIB, keep_percent=1)
    guard.read_space(0, 1000 * MIB, 900 * MIB)
    guard.exhausted()
    assert guard.low and guard.missing and guard.due(6)
    assert guard.read_space(6, 1000 * MIB, 1 * MIB)  # said once
    assert guard.missing == 127 * MIB
    assert not guard.read_space(7, 1000 * MIB, 2 * MIB)
    assert guard.read_space(8 + LOOK_EVERY_NS, 1000 * MIB, 128 * MIB)
    assert not guard.missing


def test_a_disk_that_says_it_has_room_and_has_none_is_asked_less_and_less_often():
    guard = SpaceGuard(keep_bytes=64 * MIB, keep_percent=1)
    now, waits = 0, []
    for _ in range(4):
        guard.exhausted()
        began = now
        guard.read_space(now, 1000 * MIB, 900 * MIB)
        while guard.low:
            now += LOOK_EVERY_NS
            guard.read_space(now, 1000 * MIB, 900 * MIB)
        waits.append((now - began) // LOOK_EVERY_NS)
    assert waits == [1, 2, 4, 8]


def test_groups_go_on_longer_than_records_and_longer_with_a_reserve():
    guard = SpaceGuard(keep_bytes=64 * MIB, keep_percent=1)
    guard.read_space(0, 1000 * MIB, TIGHT_BYTES)
    assert guard.low and not guard.tight
    guard.read_space(1, 1000 * MIB, TIGHT_BYTES - 1)
    assert guard.tight
    guard.read_space(2, 1000 * MIB, 2 * TIGHT_BYTES - 1)
    assert guard.tight  # twice as much to resume
    guard.read_space(3, 1000 * MIB, 0, spare=2 * TIGHT_BYTES)
    assert not guard.tight


def test_what_is_written_at_leisure_leaves_what_must_stay_free():
    guard = SpaceGuard(keep_bytes=64 * MIB, keep_percent=1)
    guard.read_space(0, 1000 * MIB, 100 * MIB)
    assert guard.lacks(36 * MIB) == 0
    assert guard.lacks(40 * MIB) == 4 * MIB


def test_another_limit_holds_at_once_where_it_refuses_and_from_the_next_look_where_it_does_not():
    guard = SpaceGuard(keep_bytes=64 * MIB, keep_percent=1)
    guard.keep_free(1 << 60)
    assert not guard.low, "nobody has looked yet"
    guard.keep_free(64 * MIB)
    guard.read_space(0, 1000 * MIB, 900 * MIB)
    guard.keep_free(1 << 60)
    assert guard.low
    assert guard.due(1)
    assert guard.read_space(1, 1000 * MIB, 900 * MIB), "and it is said"
    guard.keep_free(64 * MIB)
    assert guard.low
    assert guard.due(2)
    assert guard.read_space(2, 1000 * MIB, 900 * MIB)
    assert not guard.low
