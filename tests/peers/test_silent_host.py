"""What a link makes of a host that is not heard any more, and closes nothing. Needs root."""

import contextlib
import subprocess
import sys

import pytest
from peers.other_side import ASK, METADATA, turns

from appliance.base.clock import OsClock
from appliance.base.errors import NETWORK_EXCEPTION, Refused
from appliance.peers.link import Link
from tests.cluster import hosts

__all__ = ["turns"]
US, PORT = 254, 9092
TAKES = f"""
import socket
with socket.create_server(("0.0.0.0", {PORT})) as server:
    print("listens", flush=True)
    taken, _ = server.accept()
    while taken.recv(4096):
        print("asked", flush=True)
"""


@contextlib.contextmanager
def taking(network):
    """A process on host 1 that takes a connection and answers nothing."""
    command = [*network.within(1), sys.executable, "-c", TAKES]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"listens\n"
            yield process
        finally:
            process.kill()


def test_a_connection_to_a_host_that_is_cut_off_is_given_up(turns):
    """Not when the request's time is up, and not when what was lost is sent again at last."""
    if reason := hosts.unavailable():
        pytest.skip(reason)
    with hosts.Hosts(count=1) as network, taking(network) as process:
        link = Link(1, network.address(1), PORT, turns, OsClock(), "node 2")
        link._talk.opened = lambda until_ms: None  # nothing is under way: only probes tell
        heard = []
        link.ask_peer(METADATA, 12, ASK, heard.append, 600_000)
        turns.until(link, lambda: link.connected)
        network.cut(1, US)
        turns.until(link, lambda: heard)
        assert heard[0].code == NETWORK_EXCEPTION
        assert not isinstance(heard[0], Refused), "silence is no refusal"
        assert process.poll() is None
        link.close()
