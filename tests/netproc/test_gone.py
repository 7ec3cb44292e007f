"""Who hangs up is not waited for: control need not decide what is not decided yet."""

import socket
import struct

from appliance.base.errors import NETWORK_EXCEPTION
from appliance.ring.messages import ANSWERED, CANCEL, FORWARD
from appliance.ring.process_table import NETPROC
from tests.netproc.netproc_world import World

CREATE = 19


def test_control_is_told_and_the_memory_comes_back(tmp_path, monkeypatch):
    world = World(tmp_path)
    try:
        client = world.client()
        monkeypatch.setattr(world, "control_turn", lambda: None)
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
        topic |= {"assignments": [], "configs": []}
        client.send(CREATE, 5, topics=[topic], timeout=1000, validate_only=False)
        for _ in range(2):
            world.turn()
        reset = struct.pack("ii", 1, 0)
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        client.close()
        for _ in range(2):
            world.turn()
        said = [one for _, arrived in world.control_links.poll() for one in arrived]
        assert [one.op for one in said] == [FORWARD, CANCEL]
        assert said[0].token == said[1].token
        writer = world.control_links.writer(NETPROC, 0)
        assert writer.push(ANSWERED, NETWORK_EXCEPTION + 1, 0, said[0].token)
        world.control_links.flush()
        world.end()
        with open(f"/proc/self/fd/{world.fd}") as log:
            log.seek(0)
            assert "hung-up" not in log.read(), "it is no fault of anybody"
    finally:
        world.close()
