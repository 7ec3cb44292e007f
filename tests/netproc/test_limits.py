"""How many connections there may be, in all and of one address."""

from appliance.netproc.limits.connection_limits import ConnectionLimits
from appliance.ring.client_table import ClientTable, OpenConnections


def test_limits_count_what_is_open_and_say_which_one_refuses():
    limits = ConnectionLimits()
    limits.set(3, 2, {"10.0.0.9": 1})
    assert limits.admit("10.0.0.1") is None
    assert limits.admit("10.0.0.1") is None
    assert "max.connections.per.ip" in limits.admit("10.0.0.1").why
    assert limits.admit("10.0.0.9") is None
    assert "max.connections" in limits.admit("10.0.0.2").why
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


def test_one_address_leaves_room_for_others_and_two_leave_some_too():
    limits = ConnectionLimits()
    limits.set(10**6, 10**6, {"10.0.0.9": 10**6})
    limits.room = 100
    assert _fill(limits, "10.0.0.1") == 75
    assert "max.connections.per.ip.overrides" in limits.admit("10.0.0.1").why
    assert _fill(limits, "10.0.0.2") == 19
    assert limits.admit("10.0.0.3") is None
    assert _fill(limits, "10.0.0.9") == 5, "what an administrator allows has the rest"
    assert "open files" in limits.admit("10.0.0.3").why


def _fill(limits, address):
    """How many connections it gets."""
    count = 0
    while limits.admit(address) is None:
        count += 1
    return count


def test_handshakes_under_way_are_bounded_by_address():
    limits = ConnectionLimits()
    limits.room = 800
    assert [limits.begin_handshake("10.0.0.1") for _ in range(101)] == [True] * 100 + [False]
    assert limits.begin_handshake("10.0.0.2")
    limits.end_handshake("10.0.0.1")
    assert limits.begin_handshake("10.0.0.1")


def test_limits_hold_over_all_network_processes():
    memory = memoryview(bytearray(ClientTable.bytes_needed(3)))
    mine, *rest = ClientTable(memory, 3).rows
    limits = ConnectionLimits()
    limits.elsewhere = OpenConnections(rest)
    limits.set(5, 3, {})
    for one, address in zip(rest, ("10.0.0.1", "10.0.0.11"), strict=True):
        one.claim(address, "PLAINTEXT", 0)
    gone = rest[0].claim("10.0.0.1", "PLAINTEXT", 0)
    assert limits.admit("10.0.0.1") is None
    assert "max.connections.per.ip" in limits.admit("10.0.0.1").why
    rest[0].release(gone)
    assert limits.admit("10.0.0.1") is None
    assert limits.admit("10.0.0.2") is None
    assert "max.connections:" in limits.admit("10.0.0.3").why + ":"
    assert limits.count == 3 and mine.count_open() == 0, "rows are written by their connections"
    rest[1].clear_rows()  # its process has a successor
    assert limits.admit("10.0.0.3") is None
