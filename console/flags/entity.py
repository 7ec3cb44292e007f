"""--user, --client-id, --ip and --default: whose quota."""

import functools
from collections.abc import Callable
from typing import Any, Final

import click

from appliance.quotas.limits import CLIENT_ID, IP, USER, Entity
from console.model.asking.failure import usage

_TYPES: Final = (USER, CLIENT_ID, IP)
_FLAGS: Final = ("--default", "<default>")
_MEANT: Final = "those without a quota of their own"


def entity_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags; the command gets `entity`, empty when none was said."""

    @click.option("--user", metavar="USER", help="Requests of this user.")
    @click.option("--client-id", metavar="ID", help="Requests with this client id.")
    @click.option("--ip", metavar="ADDRESS", help="Connections from this address.")
    @click.option(
        "--default", "defaults", type=click.Choice(_TYPES), multiple=True,
        help="The default entity for users, client ids or addresses; may be repeated.",
    )  # fmt: skip
    @functools.wraps(command)
    def wrapped(
        *args: object,
        user: str | None,
        client_id: str | None,
        ip: str | None,
        defaults: tuple[str, ...],
        **kwargs: object,
    ) -> object:
        named = {USER: user, CLIENT_ID: client_id, IP: ip}
        return command(*args, entity=_entity(named, defaults), **kwargs)

    return wrapped


def _entity(named: dict[str, str | None], defaults: tuple[str, ...]) -> Entity:
    parts: dict[str, str | None] = {kind: name for kind, name in named.items() if name is not None}
    for kind in defaults:
        if kind in parts:
            raise usage(f"--{kind} NAME or --default {kind}: one of the two")
        parts[kind] = None
    for kind, name in parts.items():
        if name in _FLAGS:
            raise usage(f"--{kind} {name}: {name} is no name", f"--default {kind}: {_MEANT}")
    if "" in parts.values():
        raise usage("a name is empty", f"--default TYPE stands for {_MEANT}")
    if IP in parts and len(parts) > 1:
        raise usage("--ip cannot be combined: connections have neither user nor client id yet")
    return tuple(sorted(parts.items()))


def needed(entity: Entity) -> Entity:
    """Raises Failure (USAGE) when nobody was named."""
    if not entity:
        raise usage("whose quota? Say --user, --client-id, --ip or --default TYPE")
    return entity
