"""The thread that hashes passwords: its results, and what becomes of an exception in it."""

import os
import select
import threading

import pytest

from appliance.netproc.sasl import credential_hashing
from appliance.netproc.sasl.credential_hashing import CredentialHashing
from appliance.shell.threads import on_thread_death

WAITING = 64


class Poll:
    """The part of a loop that `CredentialHashing` uses."""

    def __init__(self):
        self._poll = select.poll()
        self._handlers = {}

    def register(self, fd, mask, handler):
        self._poll.register(fd, mask)
        self._handlers[fd] = handler

    def turn(self):
        for fd, mask in self._poll.poll(60_000):
            self._handlers[fd].ready(mask)


def planted():
    raise KeyError("planted")


@pytest.mark.parametrize(
    ("work", "said"), [(lambda: True, True), (lambda: False, False), (planted, False)]
)
def test_the_result_comes_by_the_loop_and_an_exception_lets_nobody_in(work, said):
    loop, found = Poll(), []
    asked = CredentialHashing(loop, WAITING)
    assert asked.ask_thread(work, found.append)
    while not found:
        loop.turn()
    assert found == [said]
    assert asked.ask_thread(lambda: True, found.append), "the thread goes on"
    while len(found) < 2:
        loop.turn()
    assert found == [said, True]


def test_a_thread_that_cannot_ring_is_told_as_dead(monkeypatch):
    died, told = threading.Event(), []

    def on_death(name, error):
        told.append((name, type(error)))
        died.set()

    def fails(*_):
        raise OSError("planted")

    before = threading.excepthook
    on_thread_death(on_death)
    try:
        asked = CredentialHashing(Poll(), WAITING)
        monkeypatch.setattr(credential_hashing.os, "eventfd_write", fails)
        assert asked.ask_thread(lambda: True, told.append)
        assert died.wait(60)
    finally:
        threading.excepthook = before
    assert told == [("hashing", OSError)]


@pytest.mark.parametrize("lacks", ["thread", "descriptor"])
def test_without_a_thread_or_a_descriptor_the_login_is_refused_and_the_next_one_tries(
    monkeypatch, lacks
):
    loop, found = Poll(), []
    asked = CredentialHashing(loop, WAITING)

    def no_thread(_):
        raise RuntimeError("can't start new thread")

    def no_descriptor(*_):
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        if lacks == "thread":
            patch.setattr(threading.Thread, "start", no_thread)
        else:
            patch.setattr(credential_hashing.os, "eventfd", no_descriptor)
        open_before = len(os.listdir("/proc/self/fd"))
        assert not asked.ask_thread(lambda: True, found.append)
        assert len(os.listdir("/proc/self/fd")) == open_before
    assert asked.ask_thread(lambda: True, found.append)
    while not found:
        loop.turn()
    assert found == [True]


def test_as_many_wait_as_may():
    loop, found, go = Poll(), [], threading.Event()
    asked = CredentialHashing(loop, WAITING)
    for _ in range(WAITING):
        assert asked.ask_thread(go.wait, found.append)
    assert not asked.ask_thread(go.wait, found.append)
    go.set()
    while len(found) < WAITING:
        loop.turn()
    assert asked.ask_thread(go.wait, found.append)
