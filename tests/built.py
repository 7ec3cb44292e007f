"""One compiled copy for all tests: made once, kept outside of the checkout, shared by all workers.

`python -m tests.built` makes it beforehand. It lies in $XDG_CACHE_HOME/penstock-tests (~/.cache)
under a hash of all that it is made of, so only the same sources, compiler and mypyc find it again.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

from benchmarks.compare import compiled

KEPT = 3
"""Copies that stay; older ones are removed when another one is made."""
SETTINGS = ("CFLAGS", "CPPFLAGS", "LDFLAGS", "CC")
LEVEL = "g"
"""Of the C compiler's optimization, as `pip install .` takes it: the fastest to compile."""


def cache() -> Path:
    """The folder of all copies."""
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "penstock-tests"


def key() -> str:
    """A hash of every input: sources, Python, mypyc, the C compiler and its flags."""
    found = hashlib.sha256()
    for path in compiled.sources():
        found.update(f"{path.relative_to(compiled.ROOT)}\0{path.stat().st_size}\0".encode())
        found.update(path.read_bytes())
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    told = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    tools = [f"{name}={version(name)}" for name in ("mypy", "setuptools", "kio")]
    flags = [f"{name}={os.environ.get(name)}" for name in SETTINGS]
    found.update("\0".join([sys.version, sysconfig.get_platform(), told.stdout]).encode())
    found.update("\0".join([*tools, *flags, LEVEL]).encode())
    return found.hexdigest()[:24]


def copy() -> Path:
    """A folder with `tree`, the installation, and `wheel`. Makes it where it is not yet; another
    process that asks meanwhile waits for it. Nobody may write into it."""
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"compiled-{key()}"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when its process ends, however it ends
        if not place.is_dir():
            _remove_old(folder)
            making = folder / "making"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            compiled.build(making, PENSTOCK_COMPILE_LEVEL=LEVEL)
            making.rename(place)
        os.utime(place)
    return place


def _remove_old(folder: Path) -> None:
    copies = sorted(folder.glob("compiled-*"), key=lambda one: one.stat().st_mtime)
    for old in copies[: 1 - KEPT]:
        shutil.rmtree(old, ignore_errors=True)


if __name__ == "__main__":
    print(copy())
