"""--login and --password-file: who the client is on a listener that asks for a login (SASL).

A password is never an argument, which every user of the host could read: it comes from a file, from
PENSTOCK_PASSWORD, or is typed.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from console.model.asking.failure import unreadable, usage

PASSWORD: Final = "PENSTOCK_PASSWORD"
LOGIN: Final = "PENSTOCK_LOGIN"
MECHANISM: Final = "SCRAM-SHA-512"
"""Taken where the client's properties name none."""


def credentials(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags; the command gets `login` and `password_file`."""
    command = click.option(
        "--password-file", metavar="FILE",
        help=f"The file with the password of --login.  [default: ${PASSWORD}, or asked for]",
    )(command)  # fmt: skip
    return click.option(
        "--login", metavar="USER", help=f"Log in as this user (SASL).  [default: ${LOGIN}]"
    )(command)


def logged_in(
    properties: Mapping[str, str], user: str | None, password_file: str | None
) -> dict[str, str]:
    """The client's properties with the login that the flags ask for. Raises Failure."""
    has_own = "sasl.username" in properties or "sasl.oauthbearer.method" in properties
    if user is None and not has_own:
        user = os.environ.get(LOGIN) or None
    if user is None:
        if password_file is not None:
            raise usage("--password-file is for --login")
        return dict(properties)
    tls = properties.get("security.protocol", "").lower() in ("ssl", "sasl_ssl") or (
        "security.protocol" not in properties and any(key.startswith("ssl.") for key in properties)
    )
    own = {"sasl.mechanism": MECHANISM} if "sasl.mechanisms" not in properties else {}
    return {
        **own,
        **properties,
        "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
        "sasl.username": user,
        "sasl.password": password(f"password of {user}: ", password_file),
    }


def password(prompt: str, file: str | None) -> str:
    """The password: that of the file, of PENSTOCK_PASSWORD, or what is typed. Raises Failure."""
    if file is not None:
        return read_password(file)
    if PASSWORD in os.environ:
        found = os.environ[PASSWORD]
    elif sys.stdin.isatty():
        from getpass import getpass

        found = getpass(prompt)
    else:
        raise usage("no password is given", f"--password-file FILE, or {PASSWORD}")
    return _checked(found)


def read_password(file: str) -> str:
    """The first line of a file, which is all of it. Raises Failure."""
    try:
        found = Path(file).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as problem:
        raise unreadable(file, problem) from None
    return _checked(found)


def _checked(found: str) -> str:
    if not found or "\n" in found or "\0" in found:
        raise usage("a password is one line, and not empty")
    return found
