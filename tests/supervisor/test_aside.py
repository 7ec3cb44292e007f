"""A process beside the fleet: started, started again, given a rest, and never anybody's trouble."""

import os
import select
import signal

import pytest

from appliance.shell.log import Log
from appliance.supervisor.aside import Aside
from appliance.supervisor.restart import RestartPolicy

SECOND = 1_000_000_000


@pytest.fixture
def said(tmp_path):
    """What it logs."""
    path = tmp_path / "log"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    yield Log("supervisor", fd=fd, journal=False), path
    os.close(fd)


def aside(entry, log, limit=3):
    return Aside("teller", entry, RestartPolicy(limit=limit, window_ns=10 * SECOND), log)


def wait_for(pidfd):
    assert select.select([pidfd], [], [], 60)[0]


def test_who_ends_is_started_again_later_and_later_and_then_gets_a_rest(said):
    log, path = said
    one = aside(lambda: 3, log)
    now, waits_ms = 0, []
    for _ in range(4):
        assert one.step(now) is None, "it runs"
        wait_for(one.pidfd)
        one.died(now)
        assert one.pidfd == -1
        again = one.step(now - 1)
        waits_ms.append((again - now) // 1_000_000)
        now = again
    assert waits_ms == [0, 100, 10_000, 0]
    assert path.read_text().count("exit code 3") == 4


def test_it_is_ended_at_once_whatever_it_does(said):
    log, _ = said
    ready, tell = os.pipe()

    def entry():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(tell, b"x")
        signal.pause()
        return 0

    one = aside(entry, log)
    one.step(0)
    assert os.read(ready, 1) == b"x"
    one.kill_process()
    assert one.pidfd == -1
    one.kill_process()  # there is nobody any more
    for fd in (ready, tell):
        os.close(fd)


def test_what_it_died_of_is_said_and_harms_nobody(said, capfd):
    log, path = said

    def entry():
        raise RuntimeError("no page")

    one = aside(entry, log)
    one.step(0)
    wait_for(one.pidfd)
    one.died(0)
    assert "exit code 1" in path.read_text()
    assert "RuntimeError: no page" in capfd.readouterr().err
