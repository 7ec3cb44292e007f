"""Penstock as `pip install .` installs it, compiled, in a tree of its own.

Called by the command; systems are then started in that tree.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("appliance", "console", "pages", "penstock", "spark_local", "systemd")
FILES = ("MANIFEST.in", "pyproject.toml", "setup.py", "README.md")


def build(folder: Path, root: Path = ROOT, **variables: str) -> Path:
    """Make a wheel in `folder`/wheel, hot modules compiled, and install it into `folder`/tree.
    root: the checkout. variables: of the environment. Raises SystemExit with what the compiler
    said. Takes minutes."""
    tree, wheels = folder / "tree", folder / "wheel"
    for old in (tree, wheels):
        shutil.rmtree(old, ignore_errors=True)
    print("compiling: about a minute", file=sys.stderr, flush=True)
    pip = [sys.executable, "-m", "pip"]
    making = [*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels)]
    done = install(making, folder, root, PENSTOCK_COMPILE="1", **variables)
    if done.returncode:
        raise SystemExit(f"it cannot be compiled here: {(done.stdout + done.stderr)[-2000:]}")
    (wheel,) = wheels.glob("*.whl")
    placing = [*pip, "install", "--quiet", "--no-deps", "--target", str(tree), str(wheel)]
    subprocess.run(placing, check=True)
    return tree


def sources(root: Path = ROOT) -> list[Path]:
    """All files of a checkout that a wheel is made of, sorted."""
    found = [root / name for name in FILES]
    for name in FOLDERS:
        found += [
            path
            for path in (root / name).rglob("*")
            if path.is_file() and path.suffix != ".so" and "__pycache__" not in path.parts
        ]
    return sorted(found)


def install(
    pip: list[str], folder: Path, root: Path = ROOT, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A command of pip over a copy of the sources below `folder`, because it builds in place."""
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    for path in sources(root):
        place = source / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    done = subprocess.run(
        [*pip, str(source)], env={**os.environ, **variables}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    shutil.rmtree(source)
    return done
