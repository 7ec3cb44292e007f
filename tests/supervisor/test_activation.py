"""Listening sockets that somebody else keeps: who connects while nobody runs waits."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
from shared_memory import nothing_is_left

from appliance.base.errors import ConfigError
from appliance.supervisor.activation import Passed, Wanted, match, passed
from appliance.supervisor.layout import Layout
from appliance.supervisor.listeners import Listeners

ROOT = Path(__file__).parents[2]
LIMIT_S = 60
AS_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "some.socket"}
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@pytest.fixture
def door():
    with closing(socket.create_server(("127.0.0.1", 0))) as one:
        yield one


def wanted(door, name="PLAINTEXT", **other):
    family, (address, port) = door.family, door.getsockname()
    return Wanted(name, family, address, port)._replace(**other)


@pytest.mark.parametrize("name", ["", "penstock.socket", "plaintext"])
def test_a_socket_belongs_to_the_listener_of_its_name_or_its_address(door, name):
    other = Wanted("OTHER", socket.AF_INET, "127.0.0.1", 1)
    assert match([other, wanted(door)], [Passed(name, door)]) == {1: [door]}


def test_a_name_counts_for_more_than_an_address(door):
    listeners = [wanted(door), Wanted("INSIDE", socket.AF_INET, "10.1.1.1", 0)]
    assert match(listeners, [Passed("INSIDE", door)]) == {1: [door]}


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("", {"port": 1}, "nothing is at 127.0.0.1:"),
        ("", {"family": socket.AF_INET6, "address": "::"}, "nothing is at 127.0.0.1:"),
        ("PLAINTEXT", {"port": 1}, "which has port 1: make ListenStream="),
    ],
)
def test_a_socket_at_which_nobody_would_accept_is_refused(door, name, change, why):
    with pytest.raises(ConfigError, match=why):
        match([wanted(door, **change)], [Passed(name, door)])


def test_two_sockets_for_one_listener_are_refused(door):
    given = [Passed("", door), Passed("PLAINTEXT", door)]
    with pytest.raises(ConfigError, match="another socket were passed for PLAINTEXT"):
        match([wanted(door)], given)


def kept(*sockets, name="PLAINTEXT"):
    return [Passed(name, one, kept=True) for one in sockets]


def siblings(count):
    """Sockets at one address, as the network processes of an appliance have them."""
    layout = Layout(netprocs=count, listeners=(("127.0.0.1", 0),), names=("PLAINTEXT",))
    return closing(Listeners(layout))


@pytest.mark.parametrize("port", [0, None])
def test_kept_sockets_go_to_their_listener_wherever_its_port_came_from(door, port):
    other = Wanted("OTHER", socket.AF_INET, "127.0.0.1", 0)
    mine = wanted(door) if port is None else wanted(door, port=port)
    assert match([other, mine], kept(door, door)) == {1: [door, door]}


@pytest.mark.parametrize("change", [{"port": 1}, {"address": "0.0.0.0"}, {"port": 0, "name": "B"}])
def test_kept_sockets_of_a_listener_that_is_no_more_are_nobodys(door, change):
    assert match([wanted(door, **change)], kept(door)) == {}


@pytest.mark.parametrize("now", [1, 2, 3])
def test_whoever_waits_in_kept_sockets_is_accepted_by_as_many_netprocs_as_there_are_now(now):
    with siblings(2) as before:
        (address,) = before.addresses
        layout = Layout(netprocs=now, listeners=(address,), names=("PLAINTEXT",))
        with closing(Listeners(layout, before.keep_open(["PLAINTEXT"])[:now])) as after:
            before.close()
            assert after.addresses == [address]
            for _ in range(20):
                with socket.create_connection(address, LIMIT_S) as client:
                    assert client.getsockname() in accepted_by(after)


def accepted_by(listeners):
    """Whoever waits, or comes within a moment."""
    doors = [one for mine in listeners.of for one in mine]
    ready, _, _ = select.select(doors, [], [], LIMIT_S)
    for one in ready:
        with suppress(BlockingIOError):
            connection, peer = one.accept()
            connection.close()
            yield peer


def test_the_port_of_a_listener_that_moved_is_free_for_the_one_in_its_place(door):
    port = door.getsockname()[1]
    given = kept(door.dup())
    door.close()
    layout = Layout(listeners=(("0.0.0.0", port),), names=("PLAINTEXT",))
    with closing(Listeners(layout, given)) as listeners:
        assert listeners.addresses == [("0.0.0.0", port)]


@pytest.mark.parametrize("environ", [{}, {"LISTEN_PID": "1", "LISTEN_FDS": "5"}])
def test_what_was_passed_to_another_process_is_left_alone(environ):
    assert passed(environ, 7) == []


def test_all_netprocs_share_what_was_passed_and_the_others_have_their_own(door):
    port = door.getsockname()[1]
    layout = Layout(netprocs=2, listeners=(("127.0.0.1", port), ("127.0.0.1", 0)), names=("A", "B"))
    listeners = Listeners(layout, [Passed("A", door.dup())])
    try:
        assert listeners.addresses[0] == ("127.0.0.1", port)
        (a, own), (b, other) = listeners.of
        reuses = [one.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) for one in (a, b)]
        assert reuses == [0, 0], "nobody else could be bound there beside the one that was passed"
        assert own.getsockname() == other.getsockname()
        listeners.close(0)
        with socket.create_connection(door.getsockname()) as client:
            accepted, peer = b.accept()
            accepted.close()
            assert peer == client.getsockname()
    finally:
        listeners.close()
    with socket.create_connection(door.getsockname()) as client:
        accepted, peer = door.accept()
        accepted.close()
        assert peer == client.getsockname(), "it still listens: it is not ours to end"


def run(door, tmp_path, netprocs):
    """An appliance with a passed socket, as systemd starts it."""
    script = Path(__file__).with_name("toy_appliance.py")
    port = door.getsockname()[1]
    return subprocess.Popen(
        [sys.executable, "-c", AS_SYSTEMD, str(door.fileno()), str(script), str(tmp_path),
         f"port={port}", f"netprocs={netprocs}"],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, pass_fds=[door.fileno()],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("netprocs", [1, 2])
def test_who_connects_while_nobody_runs_is_served_by_the_next_start(door, tmp_path, netprocs):
    for generation in range(2):
        with socket.create_connection(door.getsockname(), LIMIT_S) as client:
            client.sendall(b"who\n")  # nobody runs
            process = run(door, tmp_path, netprocs)
            try:
                with client.makefile("r") as lines:
                    row = json.loads(lines.readline())
                assert row["netproc-0"]["generation"] == 1
                assert row["clean"] == bool(generation)
                process.send_signal(signal.SIGTERM)
                _, said = process.communicate(timeout=LIMIT_S)
                assert process.returncode == 0, said
            finally:
                if process.poll() is None:
                    process.kill()
                    process.communicate(timeout=LIMIT_S)
    assert nothing_is_left()


def test_what_is_no_listening_socket_is_refused(tmp_path):
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as other:
        other.bind(("127.0.0.1", 0))
        process = run(other, tmp_path, 1)
        _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode
    assert b"descriptor 3 does not listen for TCP connections" in said
    assert nothing_is_left()
