"""What the documentation types: its blocks of commands, and calls of penstock anywhere in it."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import click

from console.root import root

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
READ = sorted(
    {
        *DOCS.rglob("*.md"),
        *ROOT.glob("*.md"),
        *ROOT.glob("*/README.md"),
        *ROOT.glob("*/*/README.md"),
    }
)
_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_CALLED = re.compile(r"(^|[ /])penstock [\w-]")
_BESIDE = re.compile(
    r"^(?:\w+(?:, \w+)*: +)?"  # of whom this line is: `pipx, uv: ...`
    r"(?:(?:docker|podman) exec \S+ |(?:sudo|runuser) (?:-u \S+ )?(?:-- )?(?:env (?:\w+=\S+ )+)?)?"
)
"""What may stand before a command in its line and is not of it."""
_EXPLAINED = re.compile(r" {3,}(?![|&])")
"""Behind it stands what a line does."""
_PLACEHOLDERS = frozenset({"…", "COMMAND"})


class Block(NamedTuple):
    page: str
    kind: str
    text: str


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(path: Path) -> str:
    return _FENCED.sub("", path.read_text())


def blocks(path: Path) -> list[Block]:
    """Those in which commands may stand: shell, plain text, and what says not what it is."""
    found = [Block(named(path), kind, text) for _, kind, text in _FENCED.findall(path.read_text())]
    return [one for one in found if one.kind in ("sh", "text", "")]


def inline(path: Path) -> list[str]:
    """What stands as code in a sentence or a table, and calls penstock."""
    found = _INLINE.findall(prose(path))
    return [one for one in found if _CALLED.search(one)]


def typed(text: str):
    """Every call of penstock in some lines of shell: its words."""
    for line in text.replace("\\\n", " ").splitlines():
        if "penstock " in line:  # others may be no shell at all
            line = _BESIDE.sub("", line.strip(), count=1)
            yield from _calls(_EXPLAINED.split(line)[0])


def _calls(line):
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.wordchars += "%$@:,{}[]!^+…"
    words = []
    for word in [*lexer, ";"]:
        if set(word) <= set("();<>|&"):
            if words and words[0].rpartition("/")[2] == "penstock":
                yield ["penstock", *words[1:]]
            words = []
        elif "=" not in word or words:
            words.append(word)


def unknown(words: list[str]) -> str | None:
    """What of a call is no command and no option; None when all of it is known."""
    own = words[: words.index("--")] if "--" in words else words  # behind it is another program
    command, rest = root, own[1:]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        if rest[0] in _PLACEHOLDERS:
            return None
        command, name = command.get_command(click.Context(command), rest[0]), rest[0]
        if command is None:
            return name
        rest = rest[1:]
    flags = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    flags.add("--help")
    short = "".join(flag[1] for flag in flags if len(flag) == 2)
    for word in rest:
        known = word.partition("=")[0] in flags or word[1:2] in short or word[1:2].isdigit()
        if word.startswith("-") and word != "-" and not known:
            return word
    return None
