"""What is kept of callers is bounded in bytes, not only in their number."""

import tracemalloc

from appliance.authorization.rights import AllowAll, Callers
from appliance.config import bounds
from tests.callers import caller


def test_long_client_ids_do_not_fill_the_memory():
    callers = Callers(AllowAll())
    tracemalloc.start()
    try:
        for number in range(1000):
            encoded = caller(f"{number:05}" + "x" * 32_000).encode()
            assert callers.of(encoded).caller.client_id.startswith(f"{number:05}")
            assert callers.of(encoded) is callers.known[encoded], "the last one is known"
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 16 << 20


def test_many_short_ones_are_known_at_once():
    callers = Callers(AllowAll())
    encoded = [caller(f"c{number}").encode() for number in range(2000)]
    found = [callers.of(one) for one in encoded]
    assert [callers.of(one) for one in encoded] == found
    assert len(callers.known) == 2000


def test_callers_beyond_the_bound_are_forgotten_and_served():
    reached = []
    callers = Callers(AllowAll(), 100_000, lambda bound, why: reached.append((bound, why)))
    encoded = [caller("x" * 20_000 + str(number)).encode() for number in range(8)]
    for one in encoded:
        assert callers.of(one).caller.client_id[20_000:] in "01234567"
    assert [bound for bound, _ in reached] == [bounds.CALLERS]
    assert bounds.setting_of(bounds.CALLERS) in reached[0][1]
    assert callers.of(encoded[0]) is callers.of(encoded[0])
    assert callers.of(b"ours").everything
