"""How this program was called: what hints tell people to type works as it stands."""

import os
import re
import shlex
import shutil
import sys
from typing import Final

NAME: Final = "penstock"
_MODULE: Final = os.path.join("console", "__main__.py")
_COMMAND: Final = re.compile(rf"(?<![\w/.-]){NAME}(?= [a-z-])")


CALLED: Final = "PENSTOCK_CALLED"
"""How somebody called the command that started this one on their behalf."""


def called() -> str:
    """The command as it was typed: `penstock` where the shell finds it, else the path to it."""
    if CALLED in os.environ:
        return os.environ[CALLED]
    program = sys.argv[0]
    if program.endswith(_MODULE):
        return f"{shlex.quote(sys.executable)} -m console"
    # A shell that searched for it has put the whole path there.
    if os.path.basename(program) != NAME or shutil.which(NAME) == program:
        return NAME
    return shlex.quote(program)


def anew() -> tuple[str, ...]:
    """The words that start this very program once more, its arguments aside: whatever lies at its
    path by then."""
    ours = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    return (sys.executable, *ours)


def typed(text: str) -> str:
    """`text` with every `penstock WORD` in it as it has to be typed here."""
    return _COMMAND.sub(lambda _: called(), text) if NAME in text else text
