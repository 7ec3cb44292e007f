"""Metrics of connections, group lag and throttling, from the tables: a value machine.

What a connection is called is read when it says something new; with 4,000 of them a scrape reads
three columns.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from appliance.exporter.exposition import Columns, Page
from appliance.exporter.kafka_names import NUMBERED
from appliance.quotas.limits import FETCH, KINDS, PRODUCE, REQUEST
from appliance.quotas.meters import NS_OF_PERCENT
from appliance.quotas.window import Windows
from appliance.ring.client_table import PAUSED_UNTIL, USE, VERSION, ClientTable
from appliance.ring.lag_table import LagTable
from appliance.ring.quota_table import QuotaRow, QuotaTable

_Named = tuple[int, str, tuple[str, str]]
"""(version of its row, listener, software and version) of a connection."""
_NOBODY: Final = (-1, "", ("", ""))
_KAFKAS: Final = {
    PRODUCE: ("kafka_server_produce_byte_rate", "kafka_server_produce_throttle_time"),
    FETCH: ("kafka_server_fetch_byte_rate", "kafka_server_fetch_throttle_time"),
    REQUEST: ("kafka_server_request_request_time", "kafka_server_request_throttle_time"),
}
"""Kafka's names of what is used of a kind of quota, and of the pause for it."""
_S_MS: Final = 1000
_NUMGROUPS: Final = "kafka_coordinator_group_groupmetadatamanager_numgroups"


class Clients:
    """Connections by listener and by software. listeners: those that are told with none, too."""

    def __init__(self, table: ClientTable, listeners: Iterable[str]) -> None:
        self._table = table
        self._listeners = tuple(listeners)
        self._named: dict[tuple[int, int], _Named] = {}

    def write_page(self, page: Page, now_ms: int) -> None:
        """now_ms: monotonic."""
        by_listener = Counter(dict.fromkeys(self._listeners, 0))
        by_software: Counter[tuple[str, str]] = Counter()
        throttled = 0
        columns = self._table.columns(VERSION, USE, PAUSED_UNTIL)
        for netproc, (versions, uses, pauses) in enumerate(columns):
            for row, (version, use, until_ms) in enumerate(
                zip(versions, uses, pauses, strict=True)
            ):
                if use & 1:
                    listener, software = self._name(netproc, row, version)
                    by_listener[listener] += 1
                    by_software[software] += 1
                    throttled += until_ms > now_ms
        for listener, count in sorted(by_listener.items()):
            page.add("penstock_connections", count, listener)
        for told, count in sorted(by_software.items()):
            page.add("penstock_client_connections", count, *told)
        page.add("penstock_connections_throttled", throttled)
        page.add("penstock_connections_left_out", self._table.left_out)

    def _name(self, netproc: int, row: int, version: int) -> tuple[str, tuple[str, str]]:
        known = self._named.get((netproc, row), _NOBODY)
        if known[0] != version:
            one = self._table.read(netproc, row)
            known = self._named[netproc, row] = (
                version, one.listener, (one.software, one.version),
            )  # fmt: skip
        return known[1:]


class GroupSeries:
    """Every group's topics that are told, the groups' states and their members. What a group is
    called is written anew when there are others than at the scrape before."""

    def __init__(self, table: LagTable) -> None:
        self._table = table
        self._lags: tuple[list[tuple[str, str]], Columns] = ([], Columns(()))
        self._members: tuple[list[str], Columns] = ([], Columns(()))

    def write_page(self, page: Page) -> None:
        """All of it."""
        self._tell_lags(page)
        groups = self._table.groups()
        for state, count in groups.states.items():
            page.add("penstock_groups", count, state)
        page.add(_NUMGROUPS, sum(groups.states.values()))
        for state in NUMBERED:
            page.add(_NUMGROUPS + state.lower(), groups.states[state])
        members = {one.group: one.members for one in groups.members}
        names = sorted(members)
        if names != self._members[0]:
            self._members = names, Columns((one,) for one in names)
        if names:
            counts = list(map(members.__getitem__, names))
            self._members[1].write_columns(page, "penstock_group_members", counts)
        page.add("penstock_group_members_left_out", groups.left_out)

    def _tell_lags(self, page: Page) -> None:
        lags, left_out = self._table.rows()
        found = {
            (one.group, one.topic): one for one in lags
        }  # long names are cut, and the same then
        keys = sorted(found)
        if keys != self._lags[0]:
            self._lags = keys, Columns(keys)
        if keys:
            told = [found[key] for key in keys]
            columns = self._lags[1]
            columns.write_columns(page, "penstock_group_lag_records", [one.records for one in told])
            columns.write_columns(
                page, "penstock_group_committed_offset", [one.committed for one in told]
            )
        else:
            name = "kafka_consumergroup_current_offset"
            page.add_lines(name, f"{name} 0\n")
        page.add("penstock_group_lags_left_out", left_out)


def tell_quotas(page: Page, table: QuotaTable, windows: Windows, now_ms: int) -> None:
    """Clients that are counted because a quota holds for them. now_ms: monotonic."""
    rows: dict[bytes, list[QuotaRow]] = {}
    for use in table.read(windows.slot(now_ms)):
        rows.setdefault(use.digest, []).append(use)
    told = {}
    for same in rows.values():
        latest = max(same, key=lambda use: use.used_ms)
        kind = KINDS[latest.kind]
        user, _, client_id = latest.name.partition("\0")
        unit = NS_OF_PERCENT if kind == REQUEST else 1
        rate = windows.rate(sum(use.total for use in same), now_ms) / unit
        pauses = sum(use.pauses for use in same)
        last = max(same, key=lambda use: use.until_ms)
        over = not last.pauses or now_ms > last.until_ms + windows.all_ms
        told[kind, user, client_id] = latest.limit, rate, pauses, 0 if over else last.last_ms
    for labels, (limit, rate, pauses, pause_ms) in sorted(told.items()):
        page.add("penstock_quota_limit", limit, *labels)
        page.add("penstock_quota_rate", rate, *labels)
        page.add("penstock_quota_pauses_total", pauses, *labels)
        page.add("penstock_quota_pause_seconds", pause_ms / _S_MS, *labels)
        if labels[0] in _KAFKAS:
            for name, value in zip(_KAFKAS[labels[0]], (rate, pause_ms), strict=True):
                page.add(name, value, *labels[1:])
