"""--data and -b: which appliance of this host a command is about, by its data folder."""

import functools
from collections.abc import Callable
from typing import Any, Final

import click

from console.model.storage.data_folder import DEFAULT_DATA, Folder, find_folder
from console.show.output import print_note

FOUND: Final = f"that of --profile, of the service, or ./{DEFAULT_DATA}"
data_option = click.option(
    "--data", metavar="DIR",
    help=f"The data folder of an appliance of this host.  [default: {FOUND}]",
)  # fmt: skip
_address_option = click.option(
    "-b", "--bootstrap-server", "bootstrap", metavar="HOST:PORT",
    help="The appliance of this host at this address, instead of --data.",
)  # fmt: skip


def located(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags; the command gets `data`, a folder. It is found once: stand above
    @watched."""

    @data_option
    @_address_option
    @functools.wraps(command)
    def wrapped(*args: object, data: str | None, bootstrap: str | None, **kwargs: object) -> object:
        return command(*args, data=folder(data, bootstrap), **kwargs)

    return wrapped


def folder(data: str | None, bootstrap: str | None, *, must: bool = True) -> str:
    """As `find` finds it; says which one it is where nobody has named it. Raises Failure."""
    return announce_folder(find_folder(data, bootstrap, profile_named(), must=must))


def announce_folder(found: Folder) -> str:
    """Its path, said on stderr where it is not what one expects."""
    if found.why:
        print_note(f"data folder {found.path}, {found.why}")
    return found.path


def profile_named() -> str | None:
    """The value of --profile."""
    named: str | None = click.get_current_context().find_root().params.get("profile")
    return named
