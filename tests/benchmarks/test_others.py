"""The load on line protocols: what counts as an answer, and what ends it."""

import socket

import pytest

from benchmarks.others import nats, redis
from benchmarks.others.window import Window, load
from benchmarks.peer import WrongAnswer


@pytest.fixture
def pair():
    near, far = socket.socketpair()
    yield near, far
    near.close()
    far.close()


def test_an_answer_counts_once_it_is_whole(pair):
    near, far = pair
    window = Window(near, b"request", 2, b"-", b"\n-")
    far.sendall(b"$15\r\n1526919030474-55\r\n$15\r\n15269")
    assert window.receive() == 1
    far.sendall(b"19030474-56\r\n")
    assert window.receive() == 1


@pytest.mark.parametrize("said", [b"-MISCONF no disk\r\n", b"$3\r\n1-1\r\n-ERR unknown\r\n"])
def test_an_error_ends_the_load(pair, said):
    near, far = pair
    window = Window(near, b"request", 1, b"-", b"\n-")
    far.sendall(said)
    with pytest.raises(WrongAnswer, match=r"MISCONF|ERR"):
        window.receive()


def test_what_is_in_flight_is_waited_for(pair):
    near, far = pair
    window = Window(near, b"request", 3, b'"seq":', b'"error"')
    far.sendall(b'MSG to.me 1 27\r\n{"stream":"s","seq":1}\r\n' * 3)
    assert load([window], 3, 0.0) == 3
    assert window.sent == 3
    assert far.recv(100) == b"request" * 3


def test_a_command_is_an_array_of_bulk_strings():
    assert redis.resp("XLEN", "s") == b"*2\r\n$4\r\nXLEN\r\n$1\r\ns\r\n"


def test_an_error_of_jetstream_is_raised(pair):
    near, far = pair
    body = b'{"error":{"code":400,"description":"no such stream"}}'
    far.sendall(b"MSG to.me 1 %d\r\n%s\r\n" % (len(body), body))
    with pytest.raises(WrongAnswer, match="no such stream"):
        nats.ask(near, "to.me", "STREAM.INFO.s")
