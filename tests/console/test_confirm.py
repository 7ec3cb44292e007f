"""Questions at a terminal before what cannot be undone."""

import os
import pty
import subprocess

import pytest

from tests.console_process import PENSTOCK, rows


@pytest.fixture
def ask(appliance):
    """Run a command at a terminal of its own and type an answer: (exit code, what it said)."""
    env = os.environ | {"PENSTOCK_BOOTSTRAP": appliance.bootstrap}

    def run(answer, *args):
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [*PENSTOCK, *args], stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, env=env
        ) as process:
            os.close(theirs)
            os.write(ours, answer.encode() + b"\n")
            said = b""
            while True:
                try:
                    said += os.read(ours, 4096)
                except OSError:  # the other end is closed
                    break
            code = process.wait(60)
        os.close(ours)
        return code, said.decode()

    return run


def records(run, name):
    return run("topic", "list", name, "-o", "wide").stdout.splitlines()[1:]


@pytest.fixture
def filled(run):
    """A topic with two records."""
    run("topic", "create", "asked", "--if-not-exists")
    run("produce", "asked", stdin="a\nb\n")
    return "asked"


def test_deleting_asks_for_the_name(run, ask, filled):
    code, said = ask("yes", "topic", "delete", filled)
    assert code == 1
    assert "records" in said
    assert "Type the name" in said
    assert "nothing was changed" in said
    assert records(run, filled)
    assert ask(filled, "topic", "delete", filled)[0] == 0
    assert not records(run, filled)


def test_deleting_several_asks_for_their_number(run, ask):
    for name in ("several.a", "several.b"):
        run("topic", "create", name)
    assert ask("several.a", "topic", "delete", "-r", r"several\..")[0] == 1
    assert ask("2", "topic", "delete", "-r", r"several\..")[0] == 0


def test_trimming_asks_for_the_name_and_adding_partitions_for_yes(run, ask, filled):
    assert ask("", "topic", "trim", filled, "-o", "end")[0] == 1
    assert ask(filled, "topic", "trim", filled, "-o", "end")[0] == 0
    assert ask("n", "topic", "add-partitions", filled, "-n", "1")[0] == 1
    assert ask("y", "topic", "add-partitions", filled, "-n", "1")[0] == 0
    assert rows(run("topic", "describe", filled, "-o", "json"))[0]["partition_count"] == 2
