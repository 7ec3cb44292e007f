"""`penstock client metrics`."""

from dataclasses import asdict
from typing import Final

import click

from console.flags.folder import located
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import OK
from console.model.local.client_metrics import Instance, Value, instances, values
from console.show.figures import age
from console.show.output import Row, emit

_NARROW: Final = ("client_id", "instance", "software", "pushed", "metrics", "metric", "labels",
                  "value", "unit")  # fmt: skip
_NONE: Final = (
    "no client pushes its metrics; create a subscription, for example penstock config set "
    "metrics='*' interval.ms=10s --client-metrics everybody"
)


@click.command("metrics")
@click.argument("client", required=False)
@located
@click.option(
    "--metric", default="", metavar="PREFIX", help="Only metrics whose names begin with this."
)
@formatted
@watched
def command(client: str | None, data: str, metric: str, output: str) -> int:
    """Show the metrics that clients push (KIP-714): the pushing clients, or the last values of one
    client, by client id or client instance id.

    Clients push what a subscription requests. Values are those of the last push; a client that has
    not pushed for two intervals is not shown. The command needs the appliance's user or root.

    \b
    penstock client metrics
    penstock client metrics loader-7 --metric org.apache.kafka.producer
    penstock client metrics loader-7 -o json
    """
    whole = output not in ("table", "wide")
    if client is None:
        rows = [asdict(one) if whole else _instance(one) for one in instances(data)]
        emit(rows, output, narrow=_NARROW, name="client_id", empty=_NONE)
        return OK
    told = [asdict(one) if whole else _value(one) for one in values(data, client, metric)]
    emit(told, output, narrow=_NARROW[1:], name="metric", empty="no value of this client")
    return OK


def _instance(one: Instance) -> Row:
    return {
        "client_id": one.client_id,
        "instance": one.instance,
        "software": f"{one.software} {one.version}".strip() or None,
        "user": one.user,
        "address": one.address,
        "pushed": f"{age(one.pushed_s)} ago",
        "every": age(one.interval_s),
        "pushes": one.pushes,
        "metrics": one.wrong or one.metrics,
    }


def _value(one: Value) -> Row:
    labels = " ".join(f"{name}={value}" for name, value in one.labels.items())
    return {
        "instance": one.instance,
        "metric": one.metric,
        "labels": labels or None,
        "value": one.value,
        "unit": one.unit or None,
        "kind": one.kind,
    }
