"""The nightly backup's unit, fitted to the place of the backups: a folder that may be written, or a
bucket, for which it needs the network."""

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from console.model.asking.failure import Failure, usage
from console.model.service.fitting import word
from console.model.service.place import BACKUP, HIDDEN, USER, Place

KEPT: Final = 14
"""Backups, where nobody says how many."""
_SHIPPED: Final = "/var/backups/penstock"
_BUCKET: Final = "s3://"
_FOLDERS: Final = re.compile(rf"^(?:RequiresMountsFor|ReadWritePaths)=-?{_SHIPPED}\n", re.MULTILINE)
_ALONE: Final = re.compile(
    r"^# For a bucket:.*\n(?:PrivateNetwork=yes\n)?(RestrictAddressFamilies=)", re.MULTILINE
)
_TOLD: Final = "PENSTOCK_BACKUP_TO={}\n", "PENSTOCK_BACKUP_KEEP={}\n"


class Backups(NamedTuple):
    """where: the absolute path of a folder, or s3://BUCKET/PREFIX. keep: that many."""

    where: str
    keep: int = KEPT


def wished(where: str | None, keep: int | None, place: Place) -> Backups | None:
    """The backup settings to install; unspecified ones stay as installed. Raises Failure for a
    folder that the service could not see.
    """
    before = installed(place)
    if where is None and before is None:
        if keep is not None:
            raise usage("--keep is about backups", "--backup WHERE says where they go")
        return None
    found = Backups(*(before or ("", KEPT)))
    if where is not None:
        found = found._replace(where=where if _is_bucket(where) else os.path.abspath(where))
    if keep is not None:
        found = found._replace(keep=keep)
    for folder in () if place.for_user else HIDDEN:
        if Path(found.where).is_relative_to(folder):
            raise usage(
                f"{found.where} lies in {folder}, which the service cannot see",
                "name a folder elsewhere, best of another disk",
            )
    if f"{found.where}/".startswith(f"{place.data}/"):
        raise usage(
            f"{found.where} lies inside the data folder: a loss of the one is a loss of both"
        )
    return found


def installed(place: Place) -> Backups | None:
    """As the unit says it that was written before; None where there is none."""
    file = place.units / BACKUP
    if not file.exists():
        return None
    text = file.read_text()
    told = [re.search(one.format("(.+)"), text) for one in _TOLD]
    if told[0] is None or told[1] is None or not told[1][1].isdecimal():
        return None
    return Backups(told[0][1].replace("%%", "%"), int(told[1][1]))


def add_backups(text: str, backups: Backups) -> str:
    """The text of the unit, which was fitted to its place, for these backups. Raises Failure for a
    path that a unit cannot name."""
    where = word(backups.where)
    text = text.replace(_TOLD[1].format(KEPT), _TOLD[1].format(backups.keep))
    if not _is_bucket(backups.where):
        return text.replace(_SHIPPED, where)
    text = _ALONE.sub(r"\1AF_INET AF_INET6 ", _FOLDERS.sub("", text))
    return text.replace(_TOLD[0].format(_SHIPPED), _TOLD[0].format(where))


def make_folder(place: Place, backups: Backups) -> None:
    """Where the backups go, if it is a folder that is not there: of whom the service runs as.
    Raises Failure."""
    folder = Path(backups.where)
    if _is_bucket(backups.where) or folder.exists():
        return
    try:
        folder.mkdir(mode=0o700, parents=True)
        if not place.for_user:
            import shutil

            shutil.chown(folder, USER, USER)
    except OSError as why:
        raise Failure(f"{folder}: {why.strerror}", "name another folder with --backup") from None


def _is_bucket(where: str) -> bool:
    return where.startswith(_BUCKET)
