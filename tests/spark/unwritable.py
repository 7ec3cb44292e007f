"""Folders that nobody can write to, also not root, for whom file modes do not bind."""

import os
import subprocess

import pytest

_READ_ONLY = """
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && cd "$1" && shift && exec "$@"
"""


def read_only(folder, *command):
    """The command line that runs `command` in `folder`, which is read-only for it. Skips where that
    cannot be made."""
    folder.mkdir()
    if os.geteuid() != 0:
        folder.chmod(0o555)
        return ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(folder), *map(str, command)]
    spaces = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _READ_ONLY, "sh"]
    try:
        probe = subprocess.run([*spaces, folder, "touch", "x"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("unshare is not installed (Debian: util-linux)")
    if b"Read-only file system" not in probe.stderr:
        pytest.skip(f"a folder cannot be made read-only here: {probe.stderr.decode()}")
    return [*spaces, str(folder), *map(str, command)]
