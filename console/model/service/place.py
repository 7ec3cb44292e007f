"""Where a service's files go, and what starts it: for the host or for one user."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

APPLIANCE: Final = "penstock.service"
JOBS: Final = "penstock-jobs.service"
SOCKET: Final = "penstock.socket"
BACKUP: Final = "penstock-backup.service"
BACKUPS: Final = "penstock-backup.timer"
"""When BACKUP runs."""
USER: Final = "penstock"
"""The host's service runs as this user (`penstock.sysusers`)."""
SYSUSERS: Final = Path("/etc/sysusers.d/penstock.conf")
BROUGHT: Final = (Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))
"""Where a package puts units."""
_CHECKOUT: Final = Path(__file__).parents[3] / "systemd"
"""Where the units are in a checkout; setup.py copies them into what is installed."""
HIDDEN: Final = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
"""What ProtectHome and PrivateTmp take out of the service's sight."""


class Place(NamedTuple):
    """for_user: the service of one user, not of the host. units: the folder of unit files."""

    for_user: bool
    units: Path
    data: Path
    settings: Path

    @property
    def unit(self) -> Path:
        """The appliance's unit file."""
        return self.units / APPLIANCE


def of_host(data: str | None, settings: str | None) -> Place:
    """A service that starts with the host."""
    return Place(
        False,
        Path("/etc/systemd/system"),
        Path(os.path.abspath(data or "/var/lib/penstock")),
        Path(os.path.abspath(settings or "/etc/penstock/server.properties")),
    )


def of_user(data: str | None, settings: str | None) -> Place:
    """A service of whoever calls, which starts with the first login."""
    from platformdirs import user_config_path, user_state_path

    return Place(
        True,
        user_config_path() / "systemd/user",
        Path(os.path.abspath(data or user_state_path("penstock") / "data")),
        Path(os.path.abspath(settings or user_config_path("penstock") / "server.properties")),
    )


def shipped(name: str) -> str:
    """The text of a file that comes along: a unit, `penstock.sysusers`, `server.properties`."""
    file = Path(__file__).with_name("units") / name
    return (file if file.exists() else _CHECKOUT / name).read_text()


def program() -> tuple[str, ...]:
    """The words that start `penstock` in this very environment."""
    script = Path(sys.executable).with_name("penstock")
    return (str(script),) if script.exists() else (sys.executable, "-m", "console")


def parts() -> tuple[Path, ...]:
    """Paths that the service must be able to read: interpreter, environment, this program."""
    here = Path(__file__).resolve().parents[3]
    return (Path(sys.executable), Path(sys.executable).resolve(), Path(sys.prefix), here)


def unreachable(needed: tuple[Path, ...], hidden: tuple[str, ...] = HIDDEN) -> str | None:
    """Why a service of the host could not be started from there; None when it can."""
    for path in needed:
        for folder in filter(path.is_relative_to, hidden):
            return f"{path} lies in {folder}, which the service cannot see"
        for above in _above(path):
            if not above.stat().st_mode & stat.S_IXOTH:
                return f"{path} lies in {above}, which only its owner may enter"
    return None


def _above(path: Path) -> Iterator[Path]:
    yield from (path, *path.parents) if path.is_dir() else path.parents
