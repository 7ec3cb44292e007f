"""Which version a tree is: setup.py asks, so this needs nothing but Python and git.

A tag `v1.2.3` that is checked out without changes is 1.2.3. A commit behind it is the 1.2.4 that is
being made: 1.2.4.dev7+g0a1b2c3d, seven commits later; with changes, `.dirty` too. Before the first
tag that counts from the first commit. A source distribution has its version with it (PKG-INFO), an
archive that git or a forge made has what git wrote into `.git_archival` (`.gitattributes`); where
nobody knows, FIRST with `.dev0`.
"""

import re
import subprocess
from pathlib import Path
from typing import Final

FIRST: Final = "0.1.0"
"""What the first tag will be called."""
_TAGS: Final = "v[0-9]*"
_DESCRIBED: Final = re.compile(r"v([0-9][0-9.]*(?:(?:a|b|rc)\d+)?)(?:-(\d+)-g([0-9a-f]+))?")


def of(tree: Path) -> str:
    """The version of a checkout, a source distribution or an archive of either."""
    if (made := tree / "PKG-INFO").exists():
        found = re.search(r"^Version: (\S+)$", made.read_text(), re.MULTILINE)
        assert found is not None, made
        return found[1]
    if (tree / ".git").exists() and (commit := _git(tree, "rev-parse", "--short=8", "HEAD")):
        told = _git(tree, "describe", "--tags", "--long", "--abbrev=8", "--match", _TAGS)
        behind = told or f"-{_git(tree, 'rev-list', '--count', 'HEAD')}-g{commit}"
        changed = _git(tree, "status", "--porcelain", "--untracked-files=no") != ""
        return named(behind, changed=changed)
    archival = tree / ".git_archival"
    return named(archival.read_text().strip() if archival.exists() else "")


def named(described: str, *, changed: bool = False) -> str:
    """What git says of a commit (`v1.2.3-7-g0a1b2c3d`, `v1.2.3`, `-700-g0a1b2c3d` without a tag,
    anything else: nobody knows) as a version of PEP 440."""
    untagged = re.fullmatch(r"-(\d+)-g([0-9a-f]+)", described)
    found = _DESCRIBED.fullmatch(described)
    if untagged is not None:
        base, count, commit = FIRST, untagged[1], untagged[2]
    elif found is not None:
        base, count, commit = found[1], found[2] or "0", found[3] or ""
        if count == "0" and not changed:
            return base
        base = _next(base)
    else:
        return f"{FIRST}.dev0"
    local = ".".join([*([f"g{commit}"] if commit else []), *(["dirty"] if changed else [])])
    return f"{base}.dev{count}+{local}" if local else f"{base}.dev{count}"


def _next(release: str) -> str:
    """The release that commits behind another one become: 1.2.4 behind 1.2.3, 1.3.0 behind
    1.3.0rc1."""
    numbers = re.split(r"a|b|rc", release)[0]
    if numbers != release:
        return numbers
    *front, last = numbers.split(".")
    return ".".join([*front, str(int(last) + 1)])


def _git(tree: Path, *words: str) -> str:
    """What git prints, "" where there is no git or it refuses."""
    try:
        done = subprocess.run(
            ["git", "-C", str(tree), *words], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
