"""What is kept of callers is bounded in bytes, not only in their number."""

import tracemalloc

from appliance.authorization.rights import AllowAll, Callers
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
