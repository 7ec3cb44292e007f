"""-o/--output: in which form rows are printed."""

from collections.abc import Callable
from typing import Any

import click

from console.root import OUTPUT_KEY
from console.show.output import FORMATS


def remember(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
    """Let failures be told in the form that was asked for."""
    ctx.meta[OUTPUT_KEY] = value
    return value


def _form(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        *names, "--output", "--format", "output",
        type=click.Choice(FORMATS), default="table", is_eager=True, callback=remember,
        help=f"How to print it: {', '.join(FORMATS)}.  [default: table]", metavar="FORM",
    )  # fmt: skip


formatted = _form("-o")
"""Adds -o/--output/--format; the command gets `output`."""
long_formatted = _form()
"""Adds --output/--format where -o means an offset."""
