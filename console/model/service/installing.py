"""A service put onto the host, or taken off it: which files, then which calls of systemd."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from console.model.asking.failure import Failure, usage
from console.model.local.succession import restart
from console.model.service import place as places
from console.model.service.backing_up import Backups, add_backups, make_folder
from console.model.service.fitting import MARK, fitted
from console.model.service.listening import socket_unit
from console.model.service.place import (
    APPLIANCE,
    BACKUP,
    BACKUPS,
    JOBS,
    SOCKET,
    SYSUSERS,
    USER,
    Place,
)
from console.model.service.systemd import Systemd

_READABLE: Final = 0o644


class File(NamedTuple):
    """A file to write. keep: one that is there stays as it is; it belongs to the administrator."""

    path: Path
    text: str
    keep: bool = False


def files(
    place: Place,
    program: tuple[str, ...],
    jobs: bool,
    listens: bool = False,
    backups: Backups | None = None,
) -> Iterator[File]:
    """The files that installing writes. listens: systemd listens for the appliance. backups: taken
    every night. Raises Failure.
    """
    if not place.for_user:
        yield File(SYSUSERS, places.shipped("penstock.sysusers"))
    yield File(place.settings, places.shipped("server.properties"), keep=True)
    for name in (APPLIANCE, JOBS) if jobs else (APPLIANCE,):
        text = fitted(name, places.shipped(name), program, place)
        yield File(place.units / name, text)
    if listens:
        file = place.settings
        settings = file.read_text() if file.exists() else places.shipped("server.properties")
        text = socket_unit(places.shipped(SOCKET), place, settings)
        yield File(place.units / SOCKET, text)
    if backups is not None:
        text = add_backups(fitted(BACKUP, places.shipped(BACKUP), program, place), backups)
        yield File(place.units / BACKUP, text)
        yield File(place.units / BACKUPS, f"{MARK} in a drop-in\n{places.shipped(BACKUPS)}")


def units(jobs: bool, listens: bool, backs_up: bool = False) -> list[str]:
    """The units to start; a socket that systemd listens on comes first."""
    wanted = ((listens, SOCKET), (True, APPLIANCE), (jobs, JOBS), (backs_up, BACKUPS))
    return [name for wished, name in wanted if wished]


def check(place: Place, jobs: bool, listens: bool = False, backs_up: bool = False) -> None:
    """Raises Failure where the service could not work, or would replace what is not ours."""
    if not place.for_user:
        if os.geteuid() != 0:
            raise usage(
                "only root can install a service of the host",
                "penstock service install --user installs one for you alone",
            )
        if why := places.unreachable(places.parts()):
            raise Failure(
                f"a service of the host cannot start this penstock: {why}",
                "install it into /opt/penstock (docs/install.md), or use --user",
            )
    for name in (*units(jobs, listens, backs_up), *([BACKUP] if backs_up else [])):
        _ours(place, name)


def _is_ours(unit: Path) -> bool:
    return unit.exists() and unit.read_text().startswith(MARK)


def _ours(place: Place, name: str) -> None:
    unit = place.units / name
    if unit.exists() and not _is_ours(unit):
        raise Failure(
            f"{unit} was not written by penstock service install",
            "move it away to have this one instead",
        )
    brought = [folder / name for folder in places.BROUGHT if (folder / name).exists()]
    if brought and not place.for_user:
        raise Failure(
            f"a package has brought {brought[0]}",
            f"systemctl enable --now {name.removesuffix('.service')}",
        )


def install(
    place: Place,
    program: tuple[str, ...],
    *,
    jobs: bool,
    start: bool,
    listens: bool = False,
    backups: Backups | None = None,
) -> list[Path]:
    """Write the files, make the user, enable and start the units. Returns the files written. A
    socket unit that we wrote before is written anew, too. An appliance that runs by the very unit
    is restarted under its clients. Raises Failure; what was written by then stays, and a second
    call goes on from there."""
    listens = listens or _is_ours(place.units / SOCKET)
    check(place, jobs, listens, backups is not None)
    systemd = Systemd(place.for_user)
    systemd.ctl("--version")
    todo = list(files(place, program, jobs, listens, backups))
    goes_on = start and all(_is_there(one) or _is_aside(one) for one in todo) and _made_way(place)
    written = []
    for file in todo:
        if file.keep and file.path.exists():
            continue
        file.path.parent.mkdir(parents=True, exist_ok=True)
        file.path.write_text(file.text)
        file.path.chmod(_READABLE)
        written.append(file.path)
        if file.path == SYSUSERS:
            systemd.sysusers(str(SYSUSERS))
    _data_folder(place)
    if backups is not None:
        make_folder(place, backups)
    systemd.ctl("daemon-reload")
    if listens and start and not goes_on:
        systemd.ctl("stop", APPLIANCE)  # a socket cannot be opened for a service that runs
    for name in units(jobs, listens, backups is not None):
        systemd.ctl("enable", name)
        if start and not (goes_on and name in (SOCKET, APPLIANCE)):
            _start(systemd, name)
    return written


def _start(systemd: Systemd, unit: str) -> None:
    """Raises Failure, with what the unit itself said."""
    try:
        systemd.ctl("restart", unit)
    except Failure as why:
        if said := systemd.last_error(unit):
            why.message += f"; {unit} said: {said}"
        raise


def _is_aside(file: File) -> bool:
    """The appliance goes on whatever it says."""
    return file.path.name in (JOBS, BACKUP, BACKUPS)


def _is_there(file: File) -> bool:
    return file.path.exists() and (file.keep or file.path.read_text() == file.text)


def _made_way(place: Place) -> bool:
    """True if a new appliance has replaced the running one; False where none runs that could be
    replaced. Raises Failure: the new one would not start, or did not.
    """
    try:
        restart(str(place.data))
    except Failure as why:
        if why.name not in ("NOT_RUNNING", "NOT_SUPPORTED"):
            raise
        return False
    return True


def _data_folder(place: Place) -> None:
    """Where systemd does not make it: its owner is whom the service runs as."""
    if place.data == Path("/var/lib/penstock"):
        return
    place.data.mkdir(mode=0o750, parents=True, exist_ok=True)
    if not place.for_user and place.data.stat().st_uid == 0:
        import shutil

        shutil.chown(place.data, USER, USER)


def uninstall(place: Place) -> list[Path]:
    """Stop and disable the units that we wrote, and remove them. Returns the files removed: none
    when there was none. Settings, data and the user stay."""
    systemd = Systemd(place.for_user)
    removed = []
    for name in (
        BACKUPS,
        BACKUP,
        JOBS,
        SOCKET,
        APPLIANCE,
    ):  # who connects in between starts nothing
        unit = place.units / name
        if not unit.exists():
            continue
        _ours(place, name)
        systemd.ctl("disable", "--now", name)
        unit.unlink()
        removed.append(unit)
    if removed:
        systemd.ctl("daemon-reload")
    return removed
