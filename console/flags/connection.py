"""-b, -X, --command-config, --login and --timeout: where the broker is, as a Link in front of a
command's arguments."""

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import click

from console.flags.credentials import credentials, logged_in
from console.flags.units import Seconds
from console.model.asking import owner
from console.model.asking.failure import usage
from console.model.asking.link import DEFAULT_BOOTSTRAP, Link, asking
from console.model.asking.profiles import properties_of, where


def connected(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags; the first argument is a Link then. What its clients raise becomes a
    Failure."""

    @click.option(
        "-b",
        "--bootstrap-server",
        "--bootstrap-servers",
        "--brokers",
        "bootstrap",
        metavar="HOST:PORT",
        help="The broker.  [default: that of --profile, $PENSTOCK_BOOTSTRAP, the profile in use, or"
        f" {DEFAULT_BOOTSTRAP}]",
    )
    @click.option(
        "-X",
        "--command-property",
        "properties",
        metavar="KEY=VALUE",
        multiple=True,
        help="A client property, by librdkafka's name.",
    )
    @click.option("--command-config", metavar="FILE", help="Client properties in Java's syntax.")
    @credentials
    @click.option(
        "--timeout", type=Seconds(0.1, 3600), default=30.0, metavar="TIME",
        help="Time limit for each request.  [default: 30s]",
    )  # fmt: skip
    @functools.wraps(command)
    def wrapped(
        *args: object,
        bootstrap: str | None,
        properties: tuple[str, ...],
        command_config: str | None,
        timeout: float,
        login: str | None,
        password_file: str | None,
        **kwargs: object,
    ) -> object:
        _check_text(kwargs)
        profile = where(bootstrap, click.get_current_context().find_root().params.get("profile"))
        file = command_config or profile.command_config
        of_file = properties_of(file)
        if file == profile.command_config:  # the profile says where, its file how
            of_file.pop("bootstrap.servers", None)
        merged = of_file | key_values(properties, "-X")
        if bootstrap:
            merged.pop("bootstrap.servers", None)
        merged = logged_in(merged, login, password_file)
        if not (bootstrap or profile.name or merged or owner.is_named()):
            profile, merged = owner.way(profile)
        link = Link(profile.bootstrap, merged, timeout)
        with asking(link):
            return command(link, *args, **kwargs)

    return wrapped


_BYTES: Final = frozenset(("key", "value", "headers", "files", "schema"))
"""Arguments whose bytes are taken as they are: parts of records, names of files."""


def _check_text(arguments: Mapping[str, object]) -> None:
    """Raises Failure (USAGE) for a name that is no UTF-8, which Kafka's names are."""
    for name, value in arguments.items():
        for one in value if isinstance(value, tuple) else (value,):
            if name not in _BYTES and isinstance(one, str):
                try:
                    one.encode()
                except UnicodeEncodeError:
                    shown = ascii(os.fsencode(one))[2:-1]
                    raise usage(f"{name.replace('_', ' ')}: {shown} is not UTF-8") from None


def key_values(items: Iterable[str], flag: str) -> dict[str, str]:
    """`KEY=VALUE` arguments as a mapping. Raises Failure (USAGE)."""
    found = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise usage(f"{flag} {item!r} is not KEY=VALUE")
        found[key.strip()] = value.strip()
    return found
