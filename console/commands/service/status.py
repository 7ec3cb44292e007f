"""`penstock service status`."""

import click

from console.flags.output import formatted
from console.flags.service import for_user
from console.model.asking.failure import NEGATIVE, OK
from console.model.service.place import APPLIANCE, BACKUP, BACKUPS, JOBS
from console.model.service.systemd import Systemd
from console.show.output import emit, print_note

_ASKED = (
    "LoadState", "ActiveState", "SubState", "Result", "UnitFileState", "MainPID", "NRestarts",
    "ActiveEnterTimestamp", "FragmentPath",
)  # fmt: skip
_UNITS = (APPLIANCE, JOBS, BACKUP, BACKUPS)
_NARROW = ("unit", "state", "detail", "starts_with_host", "pid", "restarts", "since", "file")


@click.command("status")
@for_user
@formatted
def command(for_user: bool, output: str) -> int:
    """Show whether systemd runs the service, and why it failed. Exit code 0: it serves; 4: it does
    not. `penstock status` shows the state of the appliance.

    \b
    penstock service status
    penstock service status --user -o json
    """
    systemd = Systemd(for_user)
    found = {name: systemd.properties(name, _ASKED) for name in _UNITS}
    rows = [
        {
            "unit": name.removesuffix(".service"),
            "state": one["ActiveState"],
            "detail": one["SubState"] if one["Result"] in ("success", "") else one["Result"],
            "starts_with_host": one["UnitFileState"] == "enabled",
            "pid": int(one["MainPID"] or 0) or None,
            "restarts": int(one["NRestarts"] or 0),
            "since": one["ActiveEnterTimestamp"] or None,
            "file": one["FragmentPath"],
            "error": systemd.last_error(name) or None if _failed(one) else None,
        }
        for name, one in found.items()
        if one["LoadState"] == "loaded"
    ]
    missing = "no service is installed; penstock service install brings one"
    emit(rows, output, narrow=_NARROW, name="unit", empty=missing)
    for row in rows:
        if row["error"] and output in ("table", "wide"):
            print_note(f"{row['unit']}.service said: {row['error']}")
    return OK if found[APPLIANCE]["ActiveState"] == "active" else NEGATIVE


def _failed(properties: dict[str, str]) -> bool:
    """It ended by itself, whether systemd tries again or not."""
    return properties["ActiveState"] != "active" and properties["Result"] not in ("success", "")
