"""`penstock config get`, `list` and `describe`: the settings of a target."""

from collections.abc import Sequence

import click

from console.flags.complete import setting_names
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.target import targeted
from console.flags.watch import watched
from console.model.asking.configs import BROKER, Setting, Target, in_force, settings
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.show.output import emit, plain, print_note, rows_of

_NARROW = ("key", "value", "source", "default")


@click.command("get")
@click.argument("keys", nargs=-1, metavar="[KEY]...", shell_complete=setting_names)
@targeted
@formatted
@connected
def get_settings(link: Link, keys: tuple[str, ...], target: Target | None, output: str) -> int:
    """Show current values, where each comes from, and the default.

    \b
    penstock config get log.retention.ms
    penstock config get -t orders retention.ms flush.policy -o json
    penstock config get -g billing
    """
    show_values(settings(link, in_force(link, target), keys), output)
    return OK


@click.command("list")
@targeted
@click.option("-a", "--all", "everything", is_flag=True, help="Include settings at their default.")
@formatted
@connected
@watched
def list_(link: Link, target: Target | None, everything: bool, output: str) -> int:
    """List settings that are set in a file, on the command line or at run time.

    \b
    penstock config list
    penstock config list -t orders --all
    """
    asked = in_force(link, target)
    found = settings(link, asked)
    chosen = [one for one in found if everything or one.source != "default"]
    if asked.kind != BROKER and not everything:
        chosen = [one for one in chosen if one.source in ("topic", "group")]
    if not chosen:
        print_note(f"nothing is set for {asked}; --all shows the defaults")
    show_values(chosen, output)
    return OK


@click.command("describe")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...", shell_complete=setting_names)
@targeted
@formatted
@connected
def describe(link: Link, keys: tuple[str, ...], target: Target | None, output: str) -> int:
    """Explain settings: meaning, current value, and the value at every level.

    \b
    penstock config describe flush.policy -t orders
    penstock config describe log.retention.ms
    """
    found = settings(link, in_force(link, target), keys)
    if output not in ("table", "wide"):
        show_values(found, output)
        return OK
    for one in found:
        _print(one)
    return OK


def show_values(
    found: Sequence[Setting], output: str, narrow: Sequence[str] = _NARROW, empty: str = ""
) -> None:
    """Settings as rows. empty: what a person is told when there is none."""
    emit(rows_of(found), output, narrow=narrow, name="key", empty=empty)


def _print(one: Setting) -> None:
    print(plain(one.key))
    if one.doc:
        print(f"  {plain(one.doc)}")
    for name in ("type", "value", "source", "default", "read_only"):
        secret = one.sensitive and name in ("value", "default")
        shown = "(hidden)" if secret else getattr(one, name)
        print(f"  {name.replace('_', ' '):<12}{plain(shown)}")
    for number, place in enumerate(one.places):
        value = "(hidden)" if one.sensitive else plain(place.value)
        begin = "set in" if not number else ""
        print(f"  {begin:<12}{plain(place.key)} = {value} ({place.source})")
    print()
