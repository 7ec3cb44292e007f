"""What `pip install .` leaves where C can be compiled: the hot modules made by mypyc of the same
source. Everything else here runs interpreted, so what is about these modules runs over a compiled
copy once more: the tests of their rooms, except those marked `interpreted`, and from outside those
of deaths, of hostile peers, of groups whose coordinator dies and of a stock client (cuts of the
power are simulated in the rooms). And where C cannot be compiled, nothing is lost.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from benchmarks.compare import compiled
from tests import built
from tests.upgrade.installed import put

ROOT = Path(__file__).parents[2]
HEADERS = Path(sysconfig.get_path("include")) / "Python.h"
ROOMS = (
    "authorization", "ring", "wire", "logstore", "replication", "coordinators", "ioproc",
    "handlers", "netproc", "supervisor/test_shell.py",
)  # fmt: skip
OUTSIDE = (
    "hostile",
    "faults/test_killed_processes.py",
    "groups/test_groups_killed.py",
    "compat/test_confluent_kafka.py",
)
pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler"),
    pytest.mark.skipif(not HEADERS.exists(), reason="Python's headers are not installed"),
    pytest.mark.timeout(900),
]


def run(tree, *arguments):
    """Python in a tree, with what it printed; a failure shows that."""
    with begin(tree, *arguments) as process:
        try:
            told, _ = process.communicate()
        finally:
            process.kill()
    assert process.returncode == 0, told[-8000:]
    return told


def begin(tree, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=tree, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A compiled installation with the tests beside it."""
    tree = tmp_path_factory.mktemp("compiled") / "tree"
    shutil.copytree(built.copy() / "tree", tree)
    ignored = shutil.ignore_patterns("out", "target", "__pycache__")
    for name in ("benchmarks", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


def test_it_says_that_it_is_compiled(tree):
    assert "compiled" in run(tree, "-m", "console", "version")


def test_its_wheel_works_where_nothing_can_be_compiled(tree, tmp_path):
    """In an environment of its own, with no compiler on the path: it starts, is written to and
    read from, and ends in order."""
    (wheel,) = (built.copy() / "wheel").glob("*.whl")
    assert "-linux_" in wheel.name
    installed = put(wheel, tmp_path / "env")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("grep", "head", "mktemp", "rm", "sed", "tr"):
        (tools / name).symlink_to(shutil.which(name))
    done = subprocess.run(
        [shutil.which("sh"), ROOT / "tests/installed.sh", "compiled"], cwd=tmp_path, text=True,
        env={"HOME": str(tmp_path), "PATH": f"{installed.parent}:{tools}"},
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "works:" in done.stdout, done.stdout + done.stderr


def test_every_room_with_hot_modules_is_tested_compiled():
    hot = next(
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / "setup.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "HOT"
    )
    rooms = {path.partition("/")[0] for path in hot}
    assert rooms - {"shell"} <= {*ROOMS}, "tests of shell are in supervisor/test_shell.py"


def test_the_suites_pass_on_a_compiled_appliance(tree, request):
    """Those of the rooms beside those from outside: each takes a core and a minute or more. A test
    that fails runs once more when both are over, and is told as flaky when it passes then."""
    with suite(tree, "inside", ROOMS) as rooms:
        try:
            outside = ended(suite(tree, "outside", OUTSIDE))
            inside = ended(rooms)
        finally:
            rooms.kill()
    flaky = [
        name
        for kept, (code, told) in (("inside", inside), ("outside", outside))
        for name in passes_again(tree, kept, code, told)
    ]
    if flaky:
        request.node.user_properties.append(("flaky", flaky))
    for _, told in (inside, outside):
        assert " passed" in told, told


def suite(tree, kept, names, *more):
    """pytest over tests of the tree, which notes in a folder named `kept` what failed."""
    return begin(
        tree, "-m", "pytest", "-m", "not proof", "-o", f"cache_dir={tree.parent / kept}", *more,
        *(f"tests/{name}" for name in names),
    )  # fmt: skip


def ended(process):
    """Its exit code, and what it printed."""
    with process:
        try:
            told, _ = process.communicate()
        finally:
            process.kill()
    return process.returncode, told


def passes_again(tree, kept, code, told):
    """Runs what failed once more, alone; returns it, and fails where it fails again."""
    if code == 0:
        return []
    failed = tree.parent / kept / "v/cache/lastfailed"
    assert code == 1 and failed.exists(), told[-8000:]
    names = sorted(json.loads(failed.read_text()))
    again, told_again = ended(suite(tree, kept, [], "--last-failed", *names))
    assert again == 0, told[-8000:] + told_again[-8000:]
    return names


def with_hot(folder, hot):
    """A copy of the sources in which only these modules are hot."""
    copy = folder / "some_hot"
    for path in compiled.sources():
        place = copy / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    setup = copy / "setup.py"
    text = setup.read_text()
    node = next(one for one in ast.parse(text).body if ast.unparse(one).startswith("HOT ="))
    setup.write_text(text.replace(ast.get_source_segment(text, node), f"HOT = {hot}"))
    return copy


def test_a_compiler_that_fails_leaves_it_interpreted(tmp_path, monkeypatch):
    """The compiler takes the first file and refuses the second: nothing half is left. Of the hot
    modules two are enough."""
    once = tmp_path / "once"
    cc = tmp_path / "cc"
    cc.write_text(
        f"#!/bin/sh\n[ -e {once} ] && exit 1\ntouch {once}\n"
        'while [ $# -gt 1 ]; do [ "$1" = -o ] && : > "$2"; shift; done\n'
    )
    cc.chmod(0o755)
    monkeypatch.setattr(compiled, "ROOT", with_hot(tmp_path, {"ring": ["counters", "ring"]}))
    tree = tmp_path / "tree"
    pip = [sys.executable, "-m", "pip", "install", "-v", "--no-deps", "--target", str(tree)]
    done = compiled.install(pip, tmp_path, CC=str(cc), PENSTOCK_COMPILE="")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert once.exists()
    assert "stays interpreted" in done.stdout + done.stderr
    assert "interpreted" in run(tree, "-m", "console", "version")
    assert not list(tree.rglob("*.so"))
