"""The code moves towards the field's language, and never away from it (docs/glossary.md).

`language.toml` has how many old names and sentences each room may still have. A count above it
fails; after a renaming, `python -m tests.tidy.test_language` writes the lower counts.
"""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED = Path(__file__).with_name("language.toml")
BARE_VERBS = frozenset(
    [
        "ask",
        "begin",
        "bring",
        "come",
        "do",
        "end",
        "find",
        "forget",
        "free",
        "get",
        "give",
        "go",
        "go_on",
        "hear",
        "heard",
        "hold",
        "held",
        "keep",
        "let",
        "look",
        "make",
        "mean",
        "move",
        "name",
        "note",
        "open",
        "own",
        "part",
        "pass",
        "put",
        "rise",
        "risen",
        "say",
        "see",
        "seen",
        "send",
        "settle",
        "show",
        "stand",
        "start",
        "take",
        "tell",
        "told",
        "turn",
        "wake",
        "want",
        "watch",
        "went",
        "wish",
        "write",
    ]
)
OPENING = re.compile(
    r"(Who|Whoever|Whom|Whose|What|Whatever|Whether|Of|Nobody|Nothing|Everybody|For ever)\b"
)
DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def rooms():
    found = [path for path in (ROOT / "appliance").iterdir() if any(path.glob("*.py"))]
    return [*sorted(found), *(ROOT / name for name in ("console", "penstock", "spark_local"))]


class Counted(NamedTuple):
    """sentences: docstrings whose subject is a relative clause instead of the thing. verbs: public
    functions whose name is a verb without an object. classes: names of public classes."""

    sentences: int
    verbs: int
    classes: tuple[str, ...]


@cache  # parsing is what takes the time
def count_room(room):
    sentences = verbs = 0
    classes = []
    for path in sorted(room.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, DOCUMENTED):
                continue
            sentences += bool(OPENING.match(ast.get_docstring(node) or ""))
            if isinstance(node, ast.ClassDef):
                classes.append(node.name)
            elif not isinstance(node, ast.Module):
                verbs += node.name in BARE_VERBS
    return Counted(sentences, verbs, tuple(one for one in classes if not one.startswith("_")))


def repeated_classes():
    """Names that mean several classes of `appliance/`."""
    of_appliance = [room for room in rooms() if room.parent.name == "appliance"]
    names = Counter(name for room in of_appliance for name in count_room(room).classes)
    return sum(count - 1 for count in names.values())


def counted():
    return {room.name: [*count_room(room)[:2]] for room in rooms()}


@pytest.mark.parametrize("room", rooms(), ids=lambda room: room.name)
def test_a_room_has_no_more_old_names_and_sentences(room):
    sentences, verbs = tomllib.loads(ALLOWED.read_text())["rooms"].get(room.name, [0, 0])
    rule = "(docs/glossary.md; tests/tidy/test_language.py has the words)"
    found = count_room(room)
    assert found.sentences <= sentences, f"a docstring's subject is the thing itself {rule}"
    assert found.verbs <= verbs, f"a function is named by a verb and its object {rule}"


def test_no_more_classes_share_a_name():
    assert repeated_classes() <= tomllib.loads(ALLOWED.read_text())["repeated_classes"]


def write():
    lines = ["# room = [docstrings with an old subject, functions named by a bare verb]", "[rooms]"]
    lines += [f"{name} = {counts}" for name, counts in sorted(counted().items()) if any(counts)]
    lines.insert(0, f"repeated_classes = {repeated_classes()}\n")
    ALLOWED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write()
