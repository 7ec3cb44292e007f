"""`penstock wait`."""

import sys
import time
from typing import Final

import click

from console.flags.folder import announce_folder, data_option, profile_named
from console.flags.output import formatted
from console.flags.units import Seconds
from console.model.asking.failure import NEGATIVE, OK, UNREACHABLE
from console.model.local.waiting import Waiting
from console.model.storage.data_folder import find_folder
from console.show.output import emit_one

_AGAIN_S: Final = 0.05
_PROBE_AGAIN_S: Final = 1.0
_FIND_AGAIN_S: Final = 1.0


@click.command("wait")
@data_option
@click.option(
    "-b", "--bootstrap-server", "bootstrap", metavar="HOST:PORT",
    help="Also wait until a broker answers at this address.",
)  # fmt: skip
@click.option(
    "--timeout", type=Seconds(0, 86_400), default=30.0, metavar="TIME",
    help="Time limit; 0 checks once.  [default: 30s]",
)  # fmt: skip
@click.option(
    "--probe",
    is_flag=True,
    help="Also wait until a record can be written and read and a group can be joined.",
)
@formatted
def command(
    data: str | None, bootstrap: str | None, timeout: float, probe: bool, output: str
) -> int:
    """Wait until an appliance of this host is ready: every process runs and every partition is
    open. Without --data, -b, a profile or $PENSTOCK_BOOTSTRAP it is the appliance of
    ./penstock-data, even before that folder exists, or of the installed service.

    The command reads the appliance's shared memory and sends no request. --probe sends requests: it
    writes to topic __penstock_probe_NODE (created on demand, retention ten minutes), reads the
    record back, and joins and deletes a group. Exit code 0: ready; 4: not ready, with the reason;
    3: no appliance found.

    \b
    penstock wait --timeout 60
    penstock wait --data /srv/events -b localhost:9092
    penstock wait --probe
    """
    until = time.monotonic() + timeout
    place = find_folder(data, bootstrap, profile_named(), must=False, asks=False)
    waiting = Waiting(place.path, bootstrap, probes=probe)
    found = waiting.read_verdict()
    find_at = 0.0
    while found.missing and time.monotonic() < until:
        time.sleep(_PROBE_AGAIN_S if waiting.probed else _AGAIN_S)
        if not waiting.is_there and time.monotonic() >= find_at:  # it may come up elsewhere
            place = find_folder(data, bootstrap, profile_named(), must=False, asks=False)
            find_at = time.monotonic() + _FIND_AGAIN_S
            waiting.look_into(place.path)
        found = waiting.read_verdict()
    announce_folder(place)
    ready = not found.missing
    row = {"ready": ready, "missing": list(found.missing), "warnings": list(found.warnings)}
    if probe:
        row["probed"] = waiting.probed
    if output in ("table", "wide"):
        for problem in found.missing:
            print(f"not ready: {problem}", file=sys.stderr)
        for problem in found.warnings:
            print(f"warning: {problem}", file=sys.stderr)
    else:
        emit_one(row, output, name="ready")
    if ready:
        return OK
    return NEGATIVE if waiting.is_there else UNREACHABLE
