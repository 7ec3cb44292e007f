"""`penstock stats`."""

import time
from typing import Any, Final

import click

from console.flags.folder import located
from console.flags.output import formatted
from console.flags.units import Seconds
from console.flags.watch import watched
from console.model.asking.failure import OK, usage
from console.model.local.stats import Meter
from console.show.output import emit, rows_of

_METER: Final = "penstock.meter"
_APIS: Final[tuple[str, ...]] = (
    "api",
    "requests",
    "requests_s",
    "in_mb_s",
    "out_mb_s",
    "p50_ms",
    "p99_ms",
    "errors",
)


@click.command("stats")
@located
@click.option("-p", "--processes", is_flag=True, help="Show processes instead of APIs.")
@click.option("-t", "--topics", is_flag=True, help="Show topics instead of APIs.")
@click.option(
    "--over", type=Seconds(0.01, 3600), metavar="TIME",
    help="Measure over this time from now.  [default: since the start]",
)  # fmt: skip
@formatted
@watched
@click.pass_context
def command(
    ctx: click.Context,
    data: str,
    processes: bool,
    topics: bool,
    over: float | None,
    output: str,
) -> int:
    """Show requests, MB (10^6 bytes), errors and latencies of an appliance of this host by API.

    Rates cover the time since the start of the appliance; with -w, since the last refresh. A
    latency lasts from a request's bytes to the turn that sends its response, exact to 1.6 percent.
    The command reads the appliance's shared memory and sends no request; it needs the appliance's
    user or root.

    \b
    penstock stats -w
    penstock stats --over 10 -o json
    penstock stats --topics --data /srv/events
    """
    if processes and topics:
        raise usage("say one of --processes, --topics")
    meter = _meter(ctx, data, over)
    found: list[Any] = meter.apis()
    name, narrow, empty = "api", _APIS, "no request so far"
    if processes:
        found, name, narrow = meter.processes(), "process", ()
    elif topics:
        found, name, narrow, empty = meter.topics(), "topic", (), "there is no topic"
    emit(rows_of(found), output, narrow=narrow, name=name, empty=empty)
    return OK


def _meter(ctx: click.Context, data: str, over: float | None) -> Meter:
    """The one of this command, after its next look."""
    meter: Meter | None = ctx.meta.get(_METER)
    if meter is None:
        ctx.meta[_METER] = meter = Meter(data)
        if over is None:
            return meter
        time.sleep(over)
    meter.read_counters()
    return meter
