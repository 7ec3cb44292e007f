"""`penstock wait` and `penstock status` of an appliance whose processes stand still: both know
nothing of the time before, and must not call well what does nothing."""

import os
import signal
from contextlib import contextmanager

import pytest

from appliance.observer.door import Observer
from appliance.ring.process_table import IOPROC, NETPROC, Peer
from console.model.local.standing import NOT_SERVING
from tests.console_process import rows


@contextmanager
def stopped(data_dir, peer):
    """That process, and the supervisor, which would replace it."""
    seen = Observer(str(data_dir))
    pids = [seen.head.pid, seen.tables.processes.pid(peer)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("kind", [IOPROC, NETPROC], ids=["ioproc", "netproc"])
def test_who_looks_first_sees_that_a_process_stands_still(run, alone, kind):
    at = ("--data", str(alone.data_dir))
    run("wait", *at)
    with stopped(alone.data_dir, peer := Peer(kind, 0)):
        told = run("wait", *at, "--timeout", "0", code=4)
        assert f"not ready: {peer} has stood still for " in told.stderr
        patience = ("--over", "0", "--timeout", "0.5", "-o", "json")
        told = rows(run("status", *at, *patience, code=NOT_SERVING))
        assert told["state"] == "not serving"
        assert any(f"{peer} has stood still" in one["what"] for one in told["problems"])
    run("wait", *at, "--timeout", "60")
