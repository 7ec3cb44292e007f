"""A secured appliance becomes a cluster of three by the lines of its page: `secure init`, `cluster
invite` and `cluster join` in processes of their own, each node with a folder as on its own host.
Nothing that goes over the line can be read."""

import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from appliance.config.properties import parse_properties
from benchmarks import kafka
from penstock.local import environment

pytestmark = pytest.mark.timeout(300)
LIMIT_S = 120
LISTENERS = ("SASL_SSL", "NODES", "CONTROLLER")
CANARY = b"told-to-nobody-on-the-line"
PORTS = 4
"""Of a node: its listeners', and where it hands over certificates."""


def properties(path):
    return {key: value for key, value, _ in parse_properties(Path(path).read_text())}


class Host:
    """The folder of one node. started: what goes on there."""

    def __init__(self, place, port):
        self.place, self.port = place, port
        place.mkdir()
        self.folder = place / "penstock-secure"

    def penstock(self, *words):
        done = subprocess.run(
            [sys.executable, "-m", "console", *words], cwd=self.place, env=environment(),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def listeners(self):
        """At this host's ports: one machine stands for three."""
        opened = (f"{name}://:{self.port + at}" for at, name in enumerate(LISTENERS))
        told = (f"{name}://localhost:{self.port + at}" for at, name in enumerate(LISTENERS))
        return ["-o", f"listeners={','.join(opened)}",
                "-o", f"advertised.listeners={','.join(told)}"]  # fmt: skip

    def begin(self, *words, out=subprocess.PIPE):
        """A command that goes on."""
        return subprocess.Popen(
            [sys.executable, "-m", "console", *words], cwd=self.place, env=environment(),
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def serve(self, stack, *words):
        """A command that is a node until the stack ends."""
        log = stack.enter_context((self.place / "log").open("w"))
        node = self.begin(*words, out=log)
        stack.callback(node.wait, LIMIT_S)
        stack.callback(node.terminate)
        return node


def token_of(inviting):
    for line in inviting.stdout:
        if line.startswith("penstock cluster join "):
            return line.split()[-1]
    raise AssertionError("no invitation was printed")


class Overheard:
    """What goes over the loopback interface while it is open, looked through for some bytes."""

    def __init__(self, wanted):
        self.wanted, self.packets, self.found, self.ends = wanted, 0, 0, False
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(3))
        self.socket.bind(("lo", 0))
        self.socket.settimeout(0.2)
        self.thread = threading.Thread(target=self._listen)

    def _listen(self):
        while not self.ends:
            with suppress(TimeoutError):
                packet = self.socket.recv(1 << 17)
                self.packets += 1
                self.found += self.wanted in packet

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        self.thread.join()
        self.socket.close()


def says(word, port):
    """A word goes over the interface in the clear."""
    with (
        socket.create_server(("127.0.0.1", port)) as door,
        socket.create_connection(("127.0.0.1", port)) as one,
        door.accept()[0] as other,
    ):
        one.sendall(word)
        assert other.recv(100) == word


def test_three_nodes_by_two_invitations(tmp_path):
    port = kafka.free_ports(3 * PORTS)
    a, b, c = (Host(tmp_path / name, port + at * PORTS) for at, name in enumerate("abc"))
    a.penstock("secure", "init", "--host", "localhost", "--port", str(port))
    admin = ("--command-config", str(a.folder / "clients/admin/client.properties"))
    with ExitStack() as stack:
        heard = stack.enter_context(Overheard(CANARY)) if os.geteuid() == 0 else None
        first = a.serve(stack, "up", "--config", str(a.folder / "server.properties"))
        a.penstock("wait", "--timeout", str(LIMIT_S))
        a.penstock("topic", "create", "orders", *admin)
        a.penstock("produce", "orders", "--value", CANARY.decode(), *admin)
        for host in (b, c):
            inviting = a.begin("cluster", "invite", "--host", "localhost", *admin)
            try:
                host.serve(stack, "cluster", "join", token_of(inviting), *host.listeners())
                out, _ = inviting.communicate(timeout=LIMIT_S)
            finally:
                inviting.kill()
                inviting.wait()
                inviting.stdout.close()
            assert inviting.returncode == 0, (out, (host.place / "log").read_text())
        a.penstock("cluster", "grow", "--yes", *admin)
        assert "3 nodes, whole" in a.penstock("cluster", "status", *admin)
        c.penstock("acl", "add", "loader", "--producer", "--topic", "orders")  # by its socket
        for host in (a, b, c):
            assert "User:loader" in host.penstock("acl", "list")
        first.terminate()
        first.wait(LIMIT_S)
        from_b = ("-b", f"localhost:{b.port}", *admin)
        assert CANARY.decode() in a.penstock("consume", "orders", "-e", *from_b)
        if heard is not None:
            assert heard.packets > 1000 and heard.found == 0
            says(CANARY, port + PORTS - 1)
            while not heard.found:
                pass
