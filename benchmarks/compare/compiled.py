"""Penstock as `pip install .` installs it, compiled, in a tree of its own.

Called by the command; systems are then started in that tree.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(folder: Path) -> Path:
    """Install the packages into `folder`/tree, hot modules compiled. Raises SystemExit with what
    the compiler said. Takes a minute."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    print("compiling: about a minute", file=sys.stderr, flush=True)
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(tree)]
    done = install(pip, folder, PENSTOCK_COMPILE="1")
    if done.returncode:
        raise SystemExit(f"it cannot be compiled here: {(done.stdout + done.stderr)[-2000:]}")
    return tree


def install(pip: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command of pip over a copy of the sources below `folder`, because it builds in place."""
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    unwanted = shutil.ignore_patterns("*.so", "__pycache__")
    for name in ("appliance", "console", "penstock", "spark_local"):
        shutil.copytree(ROOT / name, source / name, ignore=unwanted)
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(ROOT / name, source)
    done = subprocess.run(
        [*pip, str(source)], env={**os.environ, **variables}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    shutil.rmtree(source)
    return done
