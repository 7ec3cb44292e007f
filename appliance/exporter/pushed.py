"""Metrics that clients pushed (KIP-714), exposed again: a value machine.

Only so many series are told, whatever clients push: clients in the order of their ids, each with
all its numbers or none.
"""

from collections import Counter
from typing import Final

from appliance.exporter.exposition import Page
from appliance.observer.client_metrics import ClientMetrics, PushedSamples
from appliance.ring.push_table import PushTable
from appliance.wire.uuids import format_uuid

SERIES_MAX: Final = 5000
"""Of all clients together."""

_Series = list[tuple[tuple[str, str, str, str], int | float]]


class PushedMetrics:
    """The pushed metrics on the page."""

    def __init__(self, table: PushTable) -> None:
        self._clients = ClientMetrics(table)

    def write_page(self, page: Page, now_ms: int) -> None:
        """now_ms: monotonic."""
        clients = self._clients.read_pushes(now_ms)
        by_software = Counter((one.pushed.who.software, one.pushed.who.version) for one in clients)
        for told, count in sorted(by_software.items()):
            page.add("penstock_client_instances", count, *told)
        left, left_out = SERIES_MAX, 0
        clients.sort(key=lambda one: (one.pushed.who.client_id, one.pushed.instance))
        for one in clients:
            series = _series(one)
            if len(series) > left or one.wrong:
                left_out += 1
                continue
            left -= len(series)
            for labels, value in series:
                page.add("penstock_client_metric", value, *labels)
        page.add("penstock_client_instances_left_out", left_out + self._clients.pushed_out)


def _series(client: PushedSamples) -> _Series:
    """Each series once: the last value that the client gave it."""
    who = client.pushed.who.client_id, format_uuid(client.pushed.instance)
    found = {}
    for one in client.samples:
        attributes = ",".join(f"{name}={value}" for name, value in one.labels)
        found[*who, one.name, attributes] = one.value
    return list(found.items())
