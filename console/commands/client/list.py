"""`penstock client list`."""

from typing import Any, Final

import click

from console.flags.folder import located
from console.flags.output import formatted
from console.flags.units import Seconds
from console.flags.watch import watched
from console.model.asking.failure import OK
from console.model.local.clients import Connection, connections
from console.show.figures import age, in_bytes, short
from console.show.output import Row, emit

_NARROW: Final = (
    "client_id", "software", "user", "address", "connected", "in", "out", "requests_s",
    "throttled",
)  # fmt: skip


@click.command("list")
@located
@click.option(
    "--over", type=Seconds(0, 3600), default=2.0, metavar="TIME", show_default="2s",
    help="Measure rates over this time from now; 0: since each connected.",
)  # fmt: skip
@click.option(
    "--listener", "listeners", multiple=True, metavar="NAME",
    help="Only connections of this listener; may be repeated.",
)  # fmt: skip
@click.option("--throttled", is_flag=True, help="Only connections that are throttled now.")
@formatted
@watched
def command(
    data: str, over: float, listeners: tuple[str, ...], throttled: bool, output: str
) -> int:
    """List the connections of an appliance of this host: client id, software and version as
    reported by the client, principal, address, rates, and the quota and time of throttling.

    IN and OUT are bytes per second on the wire, counted once a second. The command reads the
    appliance's shared memory and sends no request; it needs the appliance's user or root.

    \b
    penstock client list -w
    penstock client list --throttled -o json
    penstock client list --listener PLAINTEXT
    penstock client list --data /srv/events --over 10
    """
    wanted = {one.upper() for one in listeners}
    found = [
        one
        for one in connections(data, over)
        if (one.throttled_by or not throttled) and (not wanted or one.listener.upper() in wanted)
    ]
    empty = "no client is throttled" if throttled else "no client is connected"
    rows = [_row(one) if output in ("table", "wide") else _exact(one) for one in found]
    emit(rows, output, narrow=_NARROW, name="client_id", empty=empty)
    return OK


def _exact(one: Connection) -> Row:
    told: dict[str, Any] = {
        "client_id": one.client_id,
        "software": one.software,
        "version": one.version,
        "user": one.user,
        "address": one.address,
        "listener": one.listener,
        "connected_s": round(one.connected_s, 1),
        "requests": one.requests,
        "requests_s": round(one.requests_s, 3),
        "in_bytes": one.in_bytes,
        "in_s": round(one.in_s, 1),
        "out_bytes": one.out_bytes,
        "out_s": round(one.out_s, 1),
        "produced_s": round(one.produced_s, 1),
        "fetched_s": round(one.fetched_s, 1),
        "last_api": one.last_api,
        "throttled_by": one.throttled_by,
        "throttled_ms": one.throttled_ms,
        "pauses": one.pauses,
        "paused_ms": one.paused_ms,
    }
    return told


def _row(one: Connection) -> Row:
    waits = f"{one.throttled_ms / 1000:.1f} s, {one.throttled_by}" if one.throttled_by else None
    return {
        "client_id": one.client_id,
        "software": f"{one.software} {one.version}".strip() or None,
        "user": one.user,
        "address": one.address,
        "listener": one.listener,
        "connected": age(one.connected_s),
        "in": in_bytes(one.in_s),
        "out": in_bytes(one.out_s),
        "requests_s": short(one.requests_s),
        "last_api": one.last_api or None,
        "throttled": waits,
        "pauses": one.pauses,
    }
