"""`penstock quota usage`."""

import click

from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.quotas.quota_values import shown
from console.model.quotas.quotas import Usage, usage_now
from console.show.output import Row, emit


@click.command("usage")
@click.option("--throttled", is_flag=True, help="Only clients that are throttled now.")
@formatted
@connected
@watched
def command(link: Link, throttled: bool, output: str) -> int:
    """Show the current usage of each quota, and who is throttled for how long.

    Rates cover the last windows (quota.window.num times quota.window.size.seconds) of all processes
    together. WHO shares the quota; SET FOR is the entity that sets it. THROTTLED FOR is the time
    since continuous throttling began. Clients without traffic since the start have no row.

    \b
    penstock quota usage -w
    penstock quota usage --throttled -o json
    """
    found = [one for one in usage_now(link) if one.throttle_ms or not throttled]
    rows = [_row(one, output) for one in found]
    narrow = (
        *("quota", "who", "limit", "rate", "used_percent", "throttle_ms", "throttled_for_ms"),
        "set_for",
    )
    emit(rows, output, narrow=narrow, name="who", empty=_nobody(throttled))
    return OK


def _nobody(throttled: bool) -> str:
    if throttled:
        return "no client is throttled"
    return "no quota was used since the start; penstock quota list shows all quotas"


def _row(one: Usage, output: str) -> Row:
    people = output in ("table", "wide")
    names = {"user": one.user, "client-id": one.client_id, "ip": one.ip}
    told = " ".join(f"{key}={name}" for key, name in names.items() if name)
    return {
        "quota": one.quota,
        "who": told or "everybody",
        "user": one.user,
        "client_id": one.client_id,
        "ip": one.ip,
        "limit": shown(one.quota, one.limit) if people else one.limit,
        "rate": shown(one.quota, one.rate) if people else round(one.rate, 3),
        "used_percent": round(one.used * 100, 1),
        "throttle_ms": one.throttle_ms,
        "throttled": one.throttled,
        "last_throttle_ms": one.last_throttle_ms,
        "throttled_for_ms": one.throttled_for_ms,
        "set_for": one.set_for,
    }
