"""A connection that a network process hands over arrives with whatever that process says of it: one
that was taken over says what it likes, and ends neither the supervisor nor its own successor."""

import gc
import json
import os
import socket
from contextlib import ExitStack

import pytest

from appliance.shell import handed_connection
from appliance.shell.handed_connection import (
    HandedConnection,
    receive_all,
    send_connection,
)

TOLD = handed_connection._fields(HandedConnection(None, "10.0.0.1", 0))


@pytest.fixture
def ends():
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for one in pair:
        one.setblocking(False)
    yield pair
    for one in pair:
        one.close()


def send(over, content=None, word=b"guest", descriptors=None):
    """content: of the file beside the socket. descriptors: instead of both."""
    with ExitStack() as stack:
        near, _far = (stack.enter_context(one) for one in socket.socketpair())
        file = os.memfd_create("told")
        stack.callback(os.close, file)
        if content is not None:
            os.write(file, content)
        sent = [near.fileno(), file] if descriptors is None else descriptors(near.fileno(), file)
        socket.send_fds(over, [word], sent)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def telling(**fields):
    return json.dumps(TOLD | fields).encode() + b"\n"


SPARSE = 1 << 40


def sparse(near, file):
    os.ftruncate(file, SPARSE)
    return [near, file]


@pytest.mark.parametrize(
    "lie",
    [
        {"word": b"other", "content": telling()},
        {"content": b""},
        {"content": b"no JSON\n"},
        {"content": b"[" * 100_000},
        {"content": b"[]\n"},
        {"content": b"{}\n"},
        {"content": telling(more=1)},
        {"content": telling(listener="0")},
        {"content": telling(listener=-1)},
        {"content": telling(listener=1 << 70)},
        {"content": telling(address=7)},
        {"content": telling(software=["one"])},
        {"content": telling(principal=["User"])},
        {"content": telling(principal="User")},
        {"content": telling(login=["PLAIN", "soon"])},
        {"content": telling(client_id="\u20ac")},
        {"content": telling(asked=[1])},
        {"content": telling(roles=None)},
        {"content": telling(), "descriptors": lambda near, file: [near]},
        {"content": telling(), "descriptors": lambda near, file: [file, file]},
        {"content": telling(), "descriptors": lambda near, file: [near, near]},
        {"descriptors": sparse},
    ],
    ids=" and ".join,
)
def test_a_lie_about_a_guest_is_no_guest_and_keeps_nothing(ends, lie):
    gc.collect()  # what other tests left
    before = descriptors()
    send(ends[0], **lie)
    assert receive_all(ends[1]) == []
    assert descriptors() == before
    send(ends[0], telling())
    [guest] = receive_all(ends[1])
    guest.close()
    assert descriptors() == before


def test_a_device_that_never_ends_is_not_read(ends):
    device = os.open("/dev/zero", os.O_RDONLY)
    send(ends[0], descriptors=lambda near, file: [near, device])
    os.close(device)
    assert receive_all(ends[1]) == []


def test_a_guest_of_no_listener_is_hung_up_on_and_not_packed():
    near, far = socket.socketpair()
    with near, far:
        file = handed_connection.pack(
            [(near.fileno(), HandedConnection(near, "10.0.0.1", 7))], ["PLAINTEXT"]
        )
        assert handed_connection.unpack(file, ["PLAINTEXT"]) == []


def test_what_a_sound_process_says_arrives(ends):
    near, far = socket.socketpair()
    with near, far:
        sent = HandedConnection(near, "::1", 0, ("kcat", "1"), b"\xff", principal=("User", "anna"),
                     login=("PLAIN", 7), received=b"half")  # fmt: skip
        assert send_connection(ends[0], sent)
        [got] = receive_all(ends[1])
        got.close()
        assert (got.principal, got.login, got.received) == (("User", "anna"), ("PLAIN", 7), b"half")
