"""The `penstock` command as a person types it: a process of its own."""

import json
import os
import subprocess
import sys

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


def rows(done):
    """What a command printed as JSON."""
    return json.loads(done.stdout)
