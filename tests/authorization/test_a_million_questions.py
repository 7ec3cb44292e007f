"""A million questions about random rules are decided as a loop decides them, by the modules as they
are compiled where they can be, else as they are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import built

ROOT = Path(__file__).parents[2]
QUESTIONS = 1_000_000


@pytest.mark.timeout(1200)
def test_a_million_questions(tmp_path):
    tree = ROOT
    if shutil.which("cc"):
        tree = tmp_path / "tree"
        shutil.copytree(built.copy() / "tree", tree)
        ignored = shutil.ignore_patterns("out", "target", "__pycache__")
        for name in ("benchmarks", "tests"):
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", tree)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-v", "-p", "no:cacheprovider",
         "tests/authorization/test_standard.py", "-k", "random", "-o", "timeout=1000"],
        cwd=tree, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(tree), "ACL_QUESTIONS": str(QUESTIONS)},
    )  # fmt: skip
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout[-3000:]
