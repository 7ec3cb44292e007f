"""The shipped units, fitted to an environment: other words to start, other folders; for a user
without what only the host's manager may do."""

import re
from pathlib import Path
from typing import Final

from console.model.asking.failure import usage
from console.model.service.place import Place

MARK: Final = "# Written by `penstock service install`, which writes it anew. Changes of yours:"
"""The first line of what we wrote, so that we replace and remove nothing else."""
_SHIPPED_PROGRAM: Final = "/opt/penstock/bin/penstock"
_SHIPPED_DATA: Final = "/var/lib/penstock"
_SHIPPED_SETTINGS: Final = "/etc/penstock/server.properties"
_SHIPPED_SECRETS: Final = "/etc/penstock/backup.env"
_NOT_FOR_USERS: Final = re.compile(
    r"^(?:User|Group|StateDirectory|StateDirectoryMode|ConfigurationDirectory|OOMScoreAdjust|"
    r"CapabilityBoundingSet|AmbientCapabilities|Protect\w+|Private\w+|ProcSubset|RemoveIPC|"
    r"RequiresMountsFor|ReadWritePaths|Environment=XDG_CACHE_HOME)\b.*\n",
    re.MULTILINE,
)
"""Needs rights, or a namespace, that a user's own manager has not."""
_STATE: Final = re.compile(r"^StateDirectory=.*\nStateDirectoryMode=.*$", re.MULTILINE)


def fitted(name: str, text: str, program: tuple[str, ...], place: Place) -> str:
    """A shipped unit's text for this program and place. Raises Failure for a path that a unit
    cannot name."""
    ours = f"systemctl {'--user ' if place.for_user else ''}edit {name.removesuffix('.service')}"
    text = text.replace(_SHIPPED_PROGRAM, " ".join(map(word, program)))
    text = text.replace(_SHIPPED_SETTINGS, word(str(place.settings)))
    text = text.replace(_SHIPPED_SECRETS, word(str(place.settings.with_name("backup.env"))))
    if place.for_user:
        text = _NOT_FOR_USERS.sub("", text)
        text = text.replace("WantedBy=multi-user.target", "WantedBy=default.target")
    elif place.data != Path(_SHIPPED_DATA):
        # systemd makes and opens folders below /var/lib by itself, and only these.
        text = _STATE.sub(lambda _: f"ReadWritePaths={word(str(place.data))}", text)
    text = text.replace(_SHIPPED_DATA, word(str(place.data)))
    return f"{MARK} {ours}\n{text}"


def word(path: str) -> str:
    """As systemd reads it: % begins its own names. Raises Failure for a path that it cannot."""
    if re.search(r"[\s\"'\\;]", path):
        raise usage(
            f"a unit cannot name {path!r}", "give it a name without blanks, quotes or backslashes"
        )
    return path.replace("%", "%%")
