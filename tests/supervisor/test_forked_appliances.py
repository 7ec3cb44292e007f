"""Appliances that `tests/forked.py` forks are processes as those that are executed."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.broker_process import KAFKA, Broker

pytestmark = pytest.mark.skipif(KAFKA, reason="Apache Kafka is executed")


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "data") as one:
        yield one


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_it_is_a_child_with_its_own_command(broker):
    pid = broker.process.pid
    told = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    assert parent(pid) == os.getpid()
    assert [os.fsdecode(word) for word in told] == broker.command()
    assert Path(f"/proc/{pid}/exe").resolve() == Path(sys.executable).resolve()
    assert os.getsid(pid) == os.getsid(0)


def test_it_holds_no_descriptor_of_what_forked_it(broker):
    stem = forked._stem
    address = stem._address.replace("\0", "@")
    lines = Path("/proc/net/unix").read_text().splitlines()
    inodes = {line.split()[6] for line in lines if line.endswith(address)}
    assert inodes, "the stem listens"
    held = Path(f"/proc/{broker.process.pid}/fd")
    links = {os.readlink(one) for one in held.iterdir() if one.is_symlink()}
    assert not links & {f"socket:[{inode}]" for inode in inodes}


def test_its_end_is_told(tmp_path):
    broker = Broker(tmp_path / "data").start()
    assert broker.stop() in (0, None)
    assert broker.process.poll() == 0
    broker.start()
    broker.kill()
    assert broker.process.poll() == -signal.SIGKILL


def test_another_stem_forks_where_one_was_killed(broker, tmp_path, capfd):
    stem = forked._stem
    stem._process.kill()
    stem._process.wait()
    with Broker(tmp_path / "next") as one:
        assert parent(one.process.pid) == os.getpid()
    assert forked._stem is not stem
    assert "the stem forks no more" in capfd.readouterr().err


def test_the_stem_ends_with_its_worker():
    script = (
        "import sys\n"
        "from tests import forked\n"
        "stem = forked._running_stem()\n"
        "print(stem._process.pid, flush=True)\n"
        "sys.stdin.read()\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=forked.ROOT,
    ) as worker:  # fmt: skip
        pid = worker.stdout.readline()
        ends = os.pidfd_open(int(pid))
        worker.stdin.close()
        worker.wait()
    try:
        assert select.select([ends], [], [], 30)[0], "the stem goes on"
    finally:
        os.close(ends)


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        ([sys.executable, "-m", "console", "version"], {}),
        ([sys.executable, "-m", "console", "up"], {"PYTHONWARNINGS": "error"}),
        (["/bin/true"], {}),
    ],
)
def test_everything_else_is_executed(command, variables):
    can = forked._is_up(command) and forked._can_fork(command, variables, (None,) * 3, ())
    assert not can
