"""`penstock quota usage`."""

import click

from appliance.cli.exits import OK
from appliance.cli.link import Link, connected
from appliance.cli.output import Row, emit, formatted
from appliance.cli.quota_client import usage_now
from appliance.cli.quota_values import shown
from appliance.cli.watch import watched


@click.command("usage")
@click.option("--throttled", is_flag=True, help="Only who has to wait just now.")
@formatted
@connected
@watched
def command(link: Link, throttled: bool, output: str) -> int:
    """Show how much of each quota is used now, and who is throttled for how long.

    Rates are those of the last windows (quota.window.num times quota.window.size.seconds), of all
    processes together. WHO is counted together; SET FOR is the entity that has the limit. Who used
    nothing since the appliance started has no row.

    \b
    penstock quota usage -w
    penstock quota usage --throttled -o json
    """
    rows = [_row(who, figures, output) for who, figures in usage_now(link)]
    if throttled:
        rows = [row for row in rows if row["throttle_ms"]]
    rows.sort(key=lambda row: -row["used_percent"])
    narrow = ("quota", "who", "limit", "rate", "used_percent", "throttle_ms", "set_for")
    emit(rows, output, narrow=narrow, name="who", empty=_nobody(throttled))
    return OK


def _nobody(throttled: bool) -> str:
    if throttled:
        return "nobody is throttled"
    return "nobody has used a quota since the start; penstock quota list shows those that are set"


def _row(who: dict[str, str], figures: dict[str, float], output: str) -> Row:
    people = output in ("table", "wide")
    kind = who["quota"]
    names = {key: who.get(key) for key in ("user", "client-id", "ip")}
    told = " ".join(f"{key}={name}" for key, name in names.items() if name)
    limit, rate = figures["limit"], figures["rate"]
    return {
        "quota": kind,
        "who": told or "everybody",
        "user": names["user"],
        "client_id": names["client-id"],
        "ip": names["ip"],
        "limit": shown(kind, limit) if people else limit,
        "rate": shown(kind, rate) if people else round(rate, 3),
        "used_percent": round(figures["used"] * 100, 1),
        "throttle_ms": int(figures["throttle-ms"]),
        "throttled": int(figures["throttled"]),
        "set_for": who["set-for"],
    }
