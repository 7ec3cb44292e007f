"""Wheels as they are published: the same bytes twice, and at work in environments that pip, pipx
and uv made of nothing. PENSTOCK_TEST_PACKAGES=1 builds them, twice, compiled: ten minutes and more;
PENSTOCK_TEST_PACKAGES=DIR installs the one that lies there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.upgrade.installed import sources

CHOSEN = os.environ.get("PENSTOCK_TEST_PACKAGES", "")
TREE = Path(__file__).parents[2]
WORKS = TREE / "tests/installed.sh"
pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not CHOSEN, reason="PENSTOCK_TEST_PACKAGES=1: takes minutes"),
]


def build(place):
    """The wheel of the source distribution of this checkout."""
    place.mkdir()
    env = os.environ | {"SOURCE_DATE_EPOCH": "1700000000", "PENSTOCK_COMPILE": "1"}
    tree = sources(None, place / "tree")
    command = [sys.executable, "-m", "build", "--outdir", place / "out", tree]
    subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL)
    (wheel,) = (place / "out").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if Path(CHOSEN).is_dir():
        return next(Path(CHOSEN).resolve().glob("*.whl"))
    pytest.importorskip("build", reason="the extra release is not installed")
    return build(tmp_path_factory.mktemp("made") / "one")


@pytest.mark.skipif(Path(CHOSEN).is_dir(), reason="nothing is built")
def test_two_builds_give_the_same_bytes(wheel, tmp_path):
    again = build(tmp_path / "a-longer-name")
    assert again.name == wheel.name and "-linux_" in wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_the_page_of_installing_as_it_stands(tmp_path):
    tree = sources(None, tmp_path / "tree")
    (typed,) = re.findall(
        r"^```sh\n(.*?)^```$", (TREE / "docs/install.md").read_text(), re.MULTILINE | re.DOTALL
    )
    done = subprocess.run(
        ["bash", "-ec", typed], cwd=tree, env=os.environ | {"PENSTOCK_COMPILE": "0"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "penstock 0." in done.stdout, done.stdout + done.stderr


def by_pip(wheel, home, env):
    subprocess.run([sys.executable, "-m", "venv", home / "env"], check=True)
    subprocess.run([home / "env/bin/pip", "install", "-q", wheel], check=True, env=env)
    return home / "env/bin"


def by_pipx(wheel, home, env):
    subprocess.run(["pipx", "install", "-q", wheel], check=True, env=env)
    return home / "bin"


def by_uv(wheel, home, env):
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    command = ["uv", "tool", "install", "-q", "--python", python, wheel]
    subprocess.run(command, check=True, env=env)
    return home / "bin"


@pytest.mark.parametrize("program", ["pip", "pipx", "uv"])
def test_it_works_where_there_was_nothing(wheel, program, tmp_path):
    if program != "pip" and shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {
        "HOME": str(tmp_path), "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_TOOL_DIR": str(tmp_path / "uv"),
    }  # fmt: skip
    found = {"pip": by_pip, "pipx": by_pipx, "uv": by_uv}[program](wheel, tmp_path, env)
    env["PATH"] = f"{found}:/usr/local/bin:/usr/bin:/bin"
    done = subprocess.run(
        ["sh", WORKS], capture_output=True, text=True, env=env, cwd=tmp_path, check=False
    )
    assert done.returncode == 0 and "works:" in done.stdout, done.stdout + done.stderr
