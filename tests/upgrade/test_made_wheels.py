"""What `python -m pages.release` makes for others to install: the same bytes twice, sums and a bill
of materials that are right, and at work in environments that pip, pipx and uv made of nothing.

The wheel is interpreted; tests/compat/test_compiled.py makes a compiled one with every run, and
PENSTOCK_TEST_PACKAGES=1 makes all of this compiled: ten minutes and more;
PENSTOCK_TEST_PACKAGES=DIR installs the wheel that lies there."""

import hashlib
import json
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
TOOLS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
NEEDED = ("kio", "crc32c", "zstandard", "lz4", "posix-ipc", "click", "textual", "confluent-kafka")
pytestmark = pytest.mark.timeout(3600 if CHOSEN else 600)
MADE_HERE = pytest.mark.skipif(Path(CHOSEN or "/none").is_dir(), reason="nothing is built")


def make(place, *what):
    """What the command makes of a copy of this checkout: its folder."""
    place.mkdir()
    env = os.environ | {
        "SOURCE_DATE_EPOCH": "1700000000",
        "PENSTOCK_COMPILE": "1" if CHOSEN else "0",
    }
    tree = sources(None, place / "tree")
    command = [sys.executable, "-m", "pages.release", *what, "--out", place / "out"]
    subprocess.run(command, check=True, cwd=tree, env=env, stdout=subprocess.DEVNULL)
    return place / "out"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    for tool in ("build", "auditwheel", "cyclonedx_py"):
        pytest.importorskip(tool, reason="the extra release is not installed")
    return make(tmp_path_factory.mktemp("made") / "one", "wheel", "sbom")


@pytest.fixture(scope="module")
def wheel(request):
    place = Path(CHOSEN) if Path(CHOSEN or "/none").is_dir() else request.getfixturevalue("made")
    return next(place.resolve().glob("*.whl"))


@MADE_HERE
def test_two_builds_give_the_same_bytes(made, tmp_path):
    again = make(tmp_path / "a-longer-name", "wheel")
    names = sorted(path.name for path in again.iterdir())
    assert ("manylinux" in names[1]) == bool(CHOSEN)
    for name in names[1:]:
        assert (again / name).read_bytes() == (made / name).read_bytes(), name


@MADE_HERE
def test_sums_and_the_bill_of_materials_say_what_is_there(made):
    lines = [line.split("  ") for line in (made / "SHA256SUMS").read_text().splitlines()]
    assert {name for _, name in lines} == {path.name for path in made.iterdir()} - {"SHA256SUMS"}
    for told, name in lines:
        assert hashlib.sha256((made / name).read_bytes()).hexdigest() == told, name
    (bill,) = made.glob("*.cdx.json")
    told = bill.read_text()
    assert str(made.parent) not in told and "/tmp" not in told, "no place of this machine"
    parts = {one["name"].lower().replace("_", "-"): one for one in json.loads(told)["components"]}
    assert set(NEEDED) <= set(parts) and "penstock" in parts
    assert "pytest" not in parts and "pip" not in parts, "only what an installation has"
    assert all(parts[name]["version"] and parts[name]["purl"] for name in NEEDED)


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
    pipx = shutil.which("pipx", path=TOOLS)
    subprocess.run([pipx, "install", "-q", wheel], check=True, env=env)
    return home / "bin"


def by_uv(wheel, home, env):
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    uv = shutil.which("uv", path=TOOLS)
    command = [uv, "tool", "install", "-q", "--python", python, wheel]
    subprocess.run(command, check=True, env=env)
    return home / "bin"


@pytest.mark.parametrize("program", ["pip", "pipx", "uv"])
def test_it_works_where_there_was_nothing(wheel, program, tmp_path):
    if program != "pip" and shutil.which(program, path=TOOLS) is None:
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
