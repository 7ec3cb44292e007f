"""Which data folder is meant: the one place where that is decided.

The strongest first: --data; the appliance at the address of -b; the folder of the profile that is
named or in use; ./penstock-data when an appliance runs in it; the folder of the service that is
installed; that of the appliance at PENSTOCK_BOOTSTRAP or at the usual address, when it is one of
this host; else ./penstock-data, whatever it is.
"""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from console.model.asking.failure import Failure, usage

if TYPE_CHECKING:
    from console.model.asking.profiles import Profile

DEFAULT_NODE: Final = 1
KEPT: Final = "joined.properties"
"""In the data folder of a node that joined: its settings, read by each start without --config."""
DEFAULT_DATA: Final = "penstock-data"
_ADDRESS: Final = "PENSTOCK_BOOTSTRAP"
_LIMIT_S: Final = 5.0


class Folder(NamedTuple):
    """why: whose it is, where nobody has named it and it is not the usual one; else ""."""

    path: str
    why: str = ""


def find_folder(
    data: str | None,
    bootstrap: str | None = None,
    profile: str | None = None,
    *,
    must: bool = True,
    asks: bool = True,
) -> Folder:
    """The folder that is meant. data: of --data; bootstrap: of -b; profile: of --profile. must:
    there has to be an appliance of this host at the address of -b; without it that is only tried.
    asks: one that answers at the usual address may be meant too, where nothing names one. Raises
    Failure: there is none, or the profile says no folder."""
    from console.model.asking import profiles

    if data:
        return Folder(data)
    if bootstrap:
        try:
            return _of_address(profiles.Profile(bootstrap))
        except Failure:
            if must:
                raise
            return _usual() or Folder(DEFAULT_DATA)
    said = profiles.where(None, profile)
    if said.name:
        return _of_profile(said)
    if found := _usual():
        return found
    if not (asks or os.environ.get(_ADDRESS)):
        return Folder(DEFAULT_DATA)
    try:
        return _of_address(said)
    except Failure:
        return Folder(DEFAULT_DATA)


def usual() -> Folder:
    """Where no broker can say it."""
    return _usual() or Folder(DEFAULT_DATA)


def _usual() -> Folder | None:
    """The folder of this host's appliance, where it is known without a request."""
    from appliance.observer.door import NotThere, segment

    try:
        segment(DEFAULT_DATA)
    except (NotThere, OSError):
        return next(_of_units(), None)
    return Folder(DEFAULT_DATA)


def _of_profile(said: "Profile") -> Folder:
    if said.data:
        return Folder(said.data, f"of profile {said.name}")
    try:
        return _of_address(said)
    except Failure:
        raise usage(
            f"profile {said.name} names no data folder, and {said.bootstrap} is no appliance of"
            " this host",
            f"name one with penstock profile add {said.name} {said.bootstrap} --data DIR, or "
            "with --data DIR",
        ) from None


def _of_address(said: "Profile") -> Folder:
    """Raises Failure: it does not answer, or not from this host."""
    from console.model.asking.link import asking, reach
    from console.model.asking.profiles import looking
    from console.model.local.local import NOT_LOCAL, data_folder

    try:
        reach(said.bootstrap, _LIMIT_S)
        link = looking(said, _LIMIT_S)
        with asking(link):
            return Folder(data_folder(link), f"of the appliance at {said.bootstrap}")
    except Failure as why:
        if why.name == NOT_LOCAL:
            why.message = f"the data folder of {said.bootstrap} is unknown: {why.message}"
            why.hint = f"--data DIR names it; {why.hint}"
        raise


def _of_units() -> Iterator[Folder]:
    """As the units of this user and of the host start it."""
    from console.model.service import place as places

    units = [places.of_user(None, None).unit, places.of_host(None, None).unit]
    units += [folder / places.APPLIANCE for folder in places.BROUGHT]
    for unit in units:
        if found := _started_with(unit):
            yield Folder(found, f"of {unit}")


def _started_with(unit: Path) -> str:
    """--data of what the unit starts; "" where there is none."""
    try:
        lines = unit.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    for line in lines:
        if line.startswith("ExecStart="):
            words = shlex.split(line.partition("=")[2])
            return words[words.index("--data") + 1] if "--data" in words[:-1] else ""
    return ""
