"""How fast what is throttled passes."""

from appliance.replication.throttle import BURST_S, ReplicationThrottle

KEY = (b"t" * 16, 0)
RATE = 1000.0


def throttle(rate=RATE):
    made = ReplicationThrottle()
    made.set(rate, [KEY])
    return made


def passed(throttle, pieces, ms, start=50_000):
    """What passes in that time when such pieces wait for it."""
    total = 0
    for now in range(start, start + ms):
        if not throttle.wait_ms(now):
            throttle.spend(pieces, now)
            total += pieces
    return total


def test_over_time_as_much_passes_as_may():
    for size in (1, 10, 300):
        total = passed(throttle(), size, 10_000)
        assert RATE * 10 <= total <= RATE * (10 + BURST_S) + size


def test_a_piece_larger_than_a_seconds_worth_passes_and_is_paid_for():
    one = throttle()
    one.spend(5000, 0)
    owed = one.wait_ms(0)
    assert 4700 < owed <= 5000
    assert one.wait_ms(2000) == owed - 2000
    assert one.wait_ms(owed) == 0


def test_what_was_not_used_is_not_saved_up():
    one = throttle()
    assert one.wait_ms(0) == 0
    assert passed(one, 1, 1, start=3_600_000) == 1
    assert passed(one, 10, 1000, start=7_200_000) <= RATE * (1 + BURST_S) + 10


def test_a_clock_that_goes_back_gives_nothing():
    one = throttle()
    one.spend(400, 10_000)
    owed = one.wait_ms(10_000)
    assert one.wait_ms(5_000) == owed


def test_another_limit_keeps_the_debt_and_none_forgets_it():
    one = throttle()
    one.spend(2200, 0)
    one.set(RATE * 2, [KEY])
    assert one.wait_ms(0) == 1001
    one.set(RATE, [])
    assert not one.on
    one.set(RATE, [KEY])
    assert one.on and one.wait_ms(0) == 0


def test_at_nothing_nothing_passes():
    one = throttle(0.0)
    assert one.wait_ms(0) > 1 << 30 and one.wait_ms(1 << 30) > 1 << 30
