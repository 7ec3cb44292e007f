"""The `penstock` command as a person types it: within this process, so that no interpreter must be
started for each; and as a process of its own, for tests of what only that has: signals, a terminal.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
from contextlib import chdir, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

import console
from console.root import run as penstock

PENSTOCK = [sys.executable, "-m", "console"]
_PROGRAM = str(Path(console.__file__).with_name("__main__.py"))


def typing(bootstrap):
    """A function that runs a command against that broker: its stdout and stderr as text."""

    def run(*words, stdin="", code=0, cwd=None):
        forks = words[:1] in (("up",), ("demo",)) and "--help" not in words
        assert not forks, "it forks: start it"
        out, err = _captured("strict"), _captured("backslashreplace")
        with (
            patch.object(sys, "argv", [_PROGRAM, *words]),
            patch.dict(os.environ, PENSTOCK_BOOTSTRAP=bootstrap),
            chdir(cwd) if cwd is not None else nullcontext(),
            _typed(stdin),
            redirect_stdout(out),
            redirect_stderr(err),
            pytest.raises(SystemExit) as end,
        ):
            penstock()
        done = SimpleNamespace(returncode=end.value.code or 0, stdout=_told(out), stderr=_told(err))
        assert code in (None, done.returncode), (words, done.stdout, done.stderr)
        return done

    return run


@contextmanager
def started(bootstrap, *words, **pipes):
    """A command against that broker as a process, which ends with its test whatever happens."""
    env = os.environ | {"PENSTOCK_BOOTSTRAP": bootstrap}
    with subprocess.Popen([*PENSTOCK, *words], env=env, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def _captured(errors):
    """As the streams of a process are, with their bytes behind them."""
    return io.TextIOWrapper(io.BytesIO(), "utf-8", errors, newline="", write_through=True)


def _told(stream):
    return stream.buffer.getvalue().decode()


@contextmanager
def _typed(text):
    """On stdin, as Python's file and as the descriptor: who reads much reads that."""
    before = os.dup(0)
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        os.dup2(file.fileno(), 0)
    try:
        with open(0, encoding="utf-8", closefd=False) as stdin, patch.object(sys, "stdin", stdin):
            yield
    finally:
        os.dup2(before, 0)
        os.close(before)


def rows(done):
    """What a command printed as JSON."""
    return json.loads(done.stdout)
