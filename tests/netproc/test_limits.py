"""How many connections there may be, in all and of one address."""

from appliance.netproc.limits import ConnectionLimits


def test_limits_count_what_is_open_and_say_which_one_refuses():
    limits = ConnectionLimits()
    limits.set(3, 2, {"10.0.0.9": 1})
    assert limits.admit("10.0.0.1") is None
    assert limits.admit("10.0.0.1") is None
    assert "max.connections.per.ip" in (limits.admit("10.0.0.1") or "")
    assert limits.admit("10.0.0.9") is None
    assert "max.connections" in (limits.admit("10.0.0.2") or "")
    limits.release("10.0.0.1")
    assert limits.admit("10.0.0.2") is None
    assert limits.count == 3


def test_new_limits_leave_open_connections_alone():
    limits = ConnectionLimits()
    limits.set(5, 5, {})
    for _ in range(4):
        limits.admit("10.0.0.1")
    limits.set(2, 2, {})
    assert limits.count == 4
    assert limits.admit("10.0.0.2") is not None
