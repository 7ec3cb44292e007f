"""Asking before something is done that cannot be undone.

T0, reversible: nobody is asked. T1, disruptive: yes or no. T2, irrecoverable: the name is typed,
or the number of things when there are several. Who is not at a terminal must say --yes.
"""

import sys
from typing import Final

import click

from console.model.asking.failure import Failure, usage
from console.show.output import plain, print_note

undoable = click.option(
    "--yes", "-y", is_flag=True, expose_value=False, hidden=True,
    help="Accepted as everywhere; the command asks nothing, because the change can be undone.",
)  # fmt: skip
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
dry_run_option = click.option(
    "--dry-run", "--dry", "dry_run", is_flag=True, help="Show the plan and change nothing."
)


_FINAL: Final = "This cannot be undone."


def confirm(what: str, *, yes: bool) -> None:
    """T1. Raises Failure when the answer is no."""
    if yes:
        return
    _need_terminal(what)
    if _ask(f"{what}. Go on? [y/N] ").lower() not in ("y", "yes"):
        raise Failure("nothing was changed", name="CANCELLED")


def confirm_names(
    what: str, names: list[str], *, yes: bool, things: str = "topics", then: str = _FINAL
) -> None:
    """T2: the one name, or how many there are, is typed. then: what can be done afterwards. Raises
    Failure when it is not typed."""
    if yes:
        return
    _need_terminal(what)
    expected = names[0] if len(names) == 1 else str(len(names))
    kind = "the name" if len(names) == 1 else f"how many {things} these are"
    if _ask(f"{what}. {then} Type {kind} to continue: ") != expected:
        raise Failure("nothing was changed", name="CANCELLED")


def asked(question: str) -> bool:
    """Something that is meant well: Enter means yes."""
    return _ask(f"{question} [Y/n] ").lower() in ("", "y", "yes")


def at_terminal() -> bool:
    """True if a person can be asked: stdin and stderr are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _need_terminal(what: str) -> None:
    if not at_terminal():
        raise usage(f"{what}: this needs --yes", "--dry-run shows what would be done")


def _ask(question: str) -> str:
    print_note("")
    sys.stderr.write(plain(question))
    sys.stderr.flush()
    return sys.stdin.readline().strip()
