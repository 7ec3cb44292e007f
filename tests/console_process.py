"""The `penstock` command as a person types it: a process of its own, or within this one where many
are typed one after the other."""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from unittest.mock import patch

import pytest

PENSTOCK = [sys.executable, "-m", "console"]


def typing(bootstrap):
    """A function that runs a command against that broker: the finished process with stdout and
    stderr as text."""
    env = os.environ | {"PENSTOCK_BOOTSTRAP": bootstrap}

    def run(*words, stdin="", code=0, cwd=None):
        done = subprocess.run(
            [*PENSTOCK, *words], input=stdin, capture_output=True, text=True, env=env, cwd=cwd,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == code, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done

    return run


def within(bootstrap):
    """The same function, which starts no process and has nothing on stdin."""
    from console.root import run as penstock

    def run(*words, code=0):
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.object(sys, "argv", ["penstock", *words]),
            patch.dict(os.environ, PENSTOCK_BOOTSTRAP=bootstrap),
            redirect_stdout(out),
            redirect_stderr(err),
            pytest.raises(SystemExit) as end,
        ):
            penstock()
        done = SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue())
        assert end.value.code == code, (words, done.stdout, done.stderr)
        return done

    return run


def rows(done):
    """What a command printed as JSON."""
    return json.loads(done.stdout)
