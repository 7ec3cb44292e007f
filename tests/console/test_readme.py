"""README's quick start and that of the documentation, line by line as they stand, in a folder that
has only the `.venv` that its first command makes."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from benchmarks.kafka import free_port

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
README_BLOCKS = _BLOCK.findall(README[README.index("## Quick start") :])
UP, README_COMMANDS = (text for kind, text in README_BLOCKS if kind == "sh")
QUICK_START = (ROOT / "docs" / "quickstart.md").read_text()
BLOCKS = _BLOCK.findall(QUICK_START)
CLIENT, IN_TESTS = (text for kind, text in BLOCKS if kind == "python")


def quick_start_block(beginning):
    """The one block of shell of the quick start that begins so."""
    (found,) = [text for kind, text in BLOCKS if kind == "sh" and text.startswith(beginning)]
    return found


STARTS = quick_start_block(". .venv/bin/activate\npenstock up")
FIRST_RECORDS = quick_start_block(". .venv/bin/activate\npenstock wait")
IN_A_GROUP = quick_start_block("penstock consume orders -g")
COMMANDS = quick_start_block(". .venv/bin/activate\npenstock topic create hello")
KCAT = quick_start_block("seq 5 | kcat")
JOB_ADD, JOB_SERVE = quick_start_block("cat > shout"), quick_start_block("penstock job setup")
ADDRESS = "localhost:9092"
CLUSTER = re.findall(
    r"^```sh\n(.*?)^```$", (ROOT / "docs" / "cluster.md").read_text(), re.MULTILINE | re.DOTALL
)
CLIENTS, CONTROLLERS = "919", "929"
"""Where the ports of a cluster begin; the number of the node is behind."""
ENDS_WITH_THE_SHELL = "trap 'kill -9 $(jobs -p) 2> /dev/null || true' EXIT\n"
DEGRADED = "penstock cluster status "
"""As it is typed while a node is away: it says so by its exit code, too."""


class Home:
    """A folder of somebody who has typed the first command, and an appliance that was started in
    it on another port than the README's, which may be taken."""

    def __init__(self, folder, address):
        self.folder = folder
        self.address = address
        # Nothing but the shell's own programs is found without the environment.
        plain = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
        self.env = plain | {"PATH": "/usr/local/bin:/usr/bin:/bin", "PENSTOCK_BOOTSTRAP": address}

    def shell(self, text):
        """Type it: what is on stdout. Every line must succeed."""
        done = subprocess.run(
            ["bash", "-ec", text.replace(ADDRESS, self.address)],
            cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


def folder_with_venv(tmp_path_factory):
    there = Path(sys.prefix)
    if not ((there / "bin" / "activate").exists() and (there / "bin" / "penstock").exists()):
        pytest.skip("this interpreter is not in an environment with the command in it")
    folder = tmp_path_factory.mktemp("home")
    (folder / ".venv").symlink_to(there)
    return folder


def free_tens(count):
    """Beginnings of ports of which those that end with 1 to 3 are free."""
    found = []
    for tens in random.Random(os.getpid()).sample(range(1100, 3200), 200):
        with suppress(OSError), ExitStack() as doors:
            for number in (1, 2, 3):
                door = socket.create_server(("127.0.0.1", 10 * tens + number))
                doors.enter_context(door)
            found.append(str(tens))
        if len(found) == count:
            return found
    raise AssertionError("no free ports")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = folder_with_venv(tmp_path_factory)
    address = f"127.0.0.1:{free_port()}"
    home = Home(folder, address)
    assert "penstock up " in UP
    typed = UP.replace("penstock up ", f"penstock up --listen {address} ")
    ours, theirs = os.pipe()
    with subprocess.Popen(
        ["bash", "-ec", typed], cwd=folder, env=home.env, stderr=theirs, start_new_session=True
    ) as shell:
        os.close(theirs)
        with os.fdopen(ours) as said:
            told = ""
            while "cluster id" not in told:
                line = said.readline()
                assert line, f"it did not start:\n{told}"
                told += line
            yield home
            os.killpg(shell.pid, signal.SIGINT)
            assert "ended clean=yes" in said.read()


def test_the_readme_works_as_it_stands(home):
    lines = [line for line in README_COMMANDS.splitlines() if "kcat" not in line]
    typed = "\n".join(lines).replace("hello", "readme")
    assert "\npenstock status " in typed
    told = home.shell(typed.replace("penstock status ", "penstock status || test $? = 1 "))
    assert re.search(r"^readme/\d/0 greeting=world$", told, re.MULTILINE)


def test_the_commands_work_as_they_stand(home):
    told = home.shell(COMMANDS)
    assert re.search(r"^hello/\d/0 greeting=world$", told, re.MULTILINE)
    assert re.search(r"^log\.retention\.ms +604800000 +604800000", told, re.MULTILINE)
    assert re.search(r"^world$", told, re.MULTILINE), "read in a group"
    assert "readers" in told
    assert "key=greeting value=world" in told


def test_the_first_steps_of_the_documentation_work_as_they_stand(home):
    assert re.sub(r" +#.*", "", UP) == STARTS, "which started this one"
    read = [line for line in home.shell(FIRST_RECORDS).splitlines() if line.isdigit()]
    assert sorted(read) == ["1", "2", "3", "4", "5"]
    told = home.shell(". .venv/bin/activate\n" + IN_A_GROUP)
    assert re.search(r"^lag +2$", told, re.MULTILINE), "as the page says"


@pytest.mark.skipif(shutil.which("kcat") is None, reason="there is no kcat here")
def test_kcat_works_as_it_stands(home):
    assert home.shell(KCAT).splitlines() == [f"{n} {n + 1}" for n in range(5)]


@pytest.mark.skipif(shutil.which("kcat") is None, reason="there is no kcat here")
def test_a_cluster_works_as_it_stands(tmp_path_factory):
    assert all(f"```sh\n{block}```" in QUICK_START for block in CLUSTER[:2])
    begins, dies, comes_back = CLUSTER
    assert DEGRADED in dies
    back = comes_back.replace("status\n", "status || true\n")  # it may not have caught up
    text = begins + dies.replace(DEGRADED, f"! {DEGRADED}") + back
    ports = dict(zip((CLIENTS, CONTROLLERS), free_tens(2), strict=True))
    text = re.sub("|".join(ports), lambda found: ports[found[0]], text)
    ends = "kill %1 %3 %4\nwait\n"
    home = Home(folder_with_venv(tmp_path_factory), ADDRESS)
    told = home.shell(f". .venv/bin/activate\n{ENDS_WITH_THE_SHELL}{text}{ends}")
    assert "\n2000\n" in told, "nothing is lost and nothing is there twice"
    assert "cluster 5vYzdPV3Q2CyhuZhaGNz4g: 3 nodes, node 2 is fenced" in told
    *_, last = re.findall(r"^ +2 .*$", told, re.MULTILINE)
    assert "running" in last
    for number in (1, 2, 3):
        assert "ended clean=yes" in (home.folder / f"node{number}.log").read_text()


def test_the_python_client_works_as_it_stands_with_more_than_a_queue_holds(home):
    assert "200_000" in CLIENT
    python = home.folder / ".venv" / "bin" / "python"
    done = subprocess.run(
        [python, "-c", CLIENT], cwd=home.folder, env=home.env, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == ""
    assert "b'world 199999'" in done.stdout


def test_a_job_is_taken_in_as_it_stands(home):
    assert "shout" in home.shell(". .venv/bin/activate\n" + JOB_ADD)
    assert "penstock job serve" in JOB_SERVE, "which tests/spark do"


def test_tests_get_an_appliance_as_it_stands(tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["penstock.pytest_plugin"]\n')
    (tmp_path / "test_it.py").write_text(IN_TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_no_line_installs_what_no_index_has():
    docs = [README, *(p.read_text() for p in (ROOT / "docs").glob("*.md"))]
    assert not [text for text in docs if re.search(r"pip install [^\n]*penstock\[", text)]
