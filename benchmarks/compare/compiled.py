"""Penstock compiled, as `pip install .` installs it, in a tree of its own.

Called by the command; systems are then started in that tree.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def copy(folder: Path) -> Path:
    """Copy what is installed to `folder`/tree, without anything that was compiled."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    unwanted = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "appliance", tree / "appliance", ignore=unwanted)
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(ROOT / name, tree)
    return tree


def build(folder: Path) -> Path:
    """Copy the sources to `folder`/tree and compile them there. Raises SystemExit with what the
    compiler said. Takes a minute."""
    tree = copy(folder)
    print("compiling: about a minute", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tree, env={**os.environ, "PENSTOCK_COMPILE": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"it cannot be compiled here: {(done.stdout + done.stderr)[-2000:]}")
    return tree
