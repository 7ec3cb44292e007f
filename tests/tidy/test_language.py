"""The code moves towards the field's language, and never away from it (docs/glossary.md).

`language.toml` has how many old names and sentences each room may still have. A count above it
fails; after a renaming, `python -m tests.tidy.test_language` writes the lower counts.
"""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

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


def rooms():
    found = [path for path in (ROOT / "appliance").iterdir() if any(path.glob("*.py"))]
    return [*sorted(found), *(ROOT / name for name in ("console", "penstock", "spark_local"))]


def trees(room):
    for path in sorted(room.rglob("*.py")):
        yield ast.parse(path.read_text())


def definitions(tree):
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def old_sentences(room):
    """Docstrings whose subject is a relative clause instead of the thing."""
    documented = [node for tree in trees(room) for node in (tree, *definitions(tree))]
    texts = [ast.get_docstring(node) or "" for node in documented]
    return sum(bool(OPENING.match(text)) for text in texts)


def bare_verbs(room):
    """Public functions whose name is a verb without an object."""
    names = [
        node.name
        for tree in trees(room)
        for node in definitions(tree)
        if not isinstance(node, ast.ClassDef)
    ]
    return sum(name in BARE_VERBS for name in names)


def repeated_classes():
    """Names that mean several classes of `appliance/`."""
    names = Counter(
        node.name
        for tree in trees(ROOT / "appliance")
        for node in definitions(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sum(count - 1 for count in names.values())


def counted():
    return {room.name: [old_sentences(room), bare_verbs(room)] for room in rooms()}


@pytest.mark.parametrize("room", rooms(), ids=lambda room: room.name)
def test_a_room_has_no_more_old_names_and_sentences(room):
    sentences, verbs = tomllib.loads(ALLOWED.read_text())["rooms"].get(room.name, [0, 0])
    rule = "(docs/glossary.md; tests/tidy/test_language.py has the words)"
    assert old_sentences(room) <= sentences, f"a docstring's subject is the thing itself {rule}"
    assert bare_verbs(room) <= verbs, f"a function is named by a verb and its object {rule}"


def test_no_more_classes_share_a_name():
    assert repeated_classes() <= tomllib.loads(ALLOWED.read_text())["repeated_classes"]


def write():
    lines = ["# room = [docstrings with an old subject, functions named by a bare verb]", "[rooms]"]
    lines += [f"{name} = {counts}" for name, counts in sorted(counted().items()) if any(counts)]
    lines.insert(0, f"repeated_classes = {repeated_classes()}\n")
    ALLOWED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write()
