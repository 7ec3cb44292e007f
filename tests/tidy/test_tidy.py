"""What linters do not hold: the map names what exists, files and functions stay small, rooms say
what they are."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for name in ("appliance", "console", "pages", "penstock", "spark_local")
    for path in (ROOT / name).rglob("*.py")
)
ROOMS = sorted(
    folder
    for folder in (ROOT / "appliance").iterdir()
    if folder.is_dir() and any(folder.glob("*.py"))
)
MOST_LINES = 500
MOST_FUNCTION_LINES = 60
TALL = {  # today's exceptions with their height; they may only shrink
}


def functions(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_the_map_names_what_exists():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = re.findall(r"`([a-z_/0-9]+\.py)(?::([a-z_]+))?`", text)
    assert len(named) > 20
    for path, function in named:
        file = ROOT / "appliance" / path
        assert file.exists(), path
        if function:
            names = {node.name for node in functions(ast.parse(file.read_text()))}
            assert function in names, f"{path}:{function}"


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_every_room_says_what_it_is(room):
    readme = room / "README.md"
    assert readme.exists(), f"{room.name} has no README.md"
    assert 5 <= len(readme.read_text().splitlines()) <= 95
    assert f"appliance/{room.name}`" in (ROOT / "ARCHITECTURE.md").read_text()


@pytest.mark.parametrize("name", ["console", "penstock", "spark_local"])
def test_what_stands_beside_the_appliance_says_what_it_is(name):
    assert 5 <= len((ROOT / name / "README.md").read_text().splitlines()) <= 95
    assert f"`{name}/`" in (ROOT / "ARCHITECTURE.md").read_text()


FOLDERS = sorted({path.parent for path in SOURCES})


def of_folder(folder):
    """(its name, its text) of each source in a folder itself."""
    found = [path for path in SOURCES if path.parent == folder]
    return [(str(path.relative_to(ROOT)), path.read_text()) for path in found]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_small_and_modules_say_what_for(folder):
    for name, text in of_folder(folder):
        if not text.strip():
            continue
        tree = ast.parse(text)
        assert ast.get_docstring(tree), f"{name}: a module opens with its purpose"
        assert len(text.splitlines()) <= MOST_LINES, name
        for node in functions(tree):
            height = (node.end_lineno or node.lineno) - node.lineno + 1
            most = TALL.get(f"{name}:{node.name}", MOST_FUNCTION_LINES)
            assert height <= most, f"{name}: {node.name} has {height} lines"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_half_there(folder):
    for name, text in of_folder(folder):
        for word in ("NotImplementedError", "TODO", "FIXME", "XXX"):
            assert not re.search(rf"\b{word}\b", text), name


CORE = (
    "authorization",
    "config",
    "wire",
    "ring",
    "metadata",
    "logstore",
    "controller",
    "handlers",
    "remotelog",
    "replication",
    "history",
)


@pytest.mark.parametrize("room", CORE)
def test_a_value_machine_loads_without_the_operating_system(room):
    """Static contracts do not see imports made at run time: look at what is really loaded by our
    own modules."""
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted((ROOT / "appliance" / room).glob("*.py"))
        if path.name != "__init__.py"
    ]
    code = (
        "import sys, importlib\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "ours = [n for n in sys.modules if n.startswith('appliance.')]\n"
        "shells = ('shell', 'netproc', 'ioproc', 'control', 'supervisor')\n"
        "bad = [n for n in ours if n.split('.')[1] in shells]\n"
        "assert not bad, bad\n"
        "assert 'multiprocess' not in sys.modules and 'posix_ipc' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)
