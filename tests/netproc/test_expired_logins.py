"""When a login that has an end (KIP-368) is ended: a little later than its client was told."""

from datetime import timedelta

import pytest

from tests.netproc.netproc_world import World
from tests.sasl.logged import jaas
from tests.sasl.talk import plain

AN_HOUR_NS = 3600 * 10**9
METADATA = {"topics": [], "allow_auto_topic_creation": False}
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:1,SASL_PLAINTEXT://127.0.0.1:2",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas({"alice": "secret"}),
}


@pytest.mark.parametrize(("told_ms", "ends_ms"), [(400, 600), (2000, 3000), (60_000, 61_000)])
def test_what_was_sent_in_time_may_wait_on_its_way(tmp_path, told_ms, ends_ms):
    """For half of the login's life, and a second at most."""
    world = World(tmp_path, SETTINGS | {"connections.max.reauth.ms": str(told_ms)})
    world.now_ns += AN_HOUR_NS  # ahead of the loop's own clock, which runs on
    world.turn()
    try:
        client = world.client("c", 1)
        assert client.ask(17, 1, mechanism="PLAIN").error_code == 0
        told = client.ask(36, 1, auth_bytes=plain("alice", "secret"))
        assert (told.error_code, told.session_lifetime) == (0, timedelta(milliseconds=told_ms))
        told_ns = world.now_ns
        for late_ms in (0, told_ms, ends_ms - 50):
            world.now_ns = max(told_ns + late_ms * 1_000_000, world.now_ns)
            world.turn()
            assert client.ask(3, 4, **METADATA).topics == ()
        world.now_ns = told_ns + ends_ms * 1_000_000
        world.turn()
        client.send(3, 4, **METADATA)
        world.turn()
        assert client.sock.recv(99) == b""
    finally:
        world.close()
