"""Traffic of each client since the last sample, from the client table.

Connections of the same principal, client id and kind of address count as one client. Rows are
compared column by column; only those that differ are read. A value machine for `sampling`.
"""

import ipaddress
from collections.abc import Iterator
from typing import Final, NamedTuple

from appliance.history.samples import ClientIdentity, ClientSample
from appliance.ring import client_table as columns
from appliance.ring.client_table import ClientTable

LOCAL: Final = "local"
PRIVATE: Final = "private"
PUBLIC: Final = "public"
_COUNTED: Final = (columns.PRODUCED, columns.FETCHED, columns.REQUESTS, columns.PAUSED_MS)


def kind_of(address: str) -> str:
    """LOCAL, PRIVATE or PUBLIC."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return PRIVATE
    if found.is_loopback:
        return LOCAL
    return PRIVATE if found.is_private or found.is_link_local else PUBLIC


class ClientWatch:
    """connections, throttled: open ones at the last look, and those that were pausing. left_out:
    connections that nothing is known of."""

    def __init__(self, table: ClientTable) -> None:
        self._table = table
        self._regions: list[_Region] = []
        self._who: dict[tuple[int, int], tuple[int, ClientIdentity]] = {}
        self.connections = self.throttled = self.left_out = 0
        self.read_clients(0)

    def read_clients(self, now_ms: int) -> dict[ClientIdentity, ClientSample]:
        """Those that did anything. now_ms: monotonic."""
        table = self._table
        looked = table.columns(columns.USE, columns.PAUSED_UNTIL, *_COUNTED)
        regions = [_Region(uses, counts) for uses, _, *counts in looked]
        found: dict[ClientIdentity, ClientSample] = {}
        for netproc, (old, new) in enumerate(zip(self._regions, regions, strict=False)):
            for row, spent in _spent(old, new):
                who = self._client(netproc, row)
                both = zip(found.get(who, ClientSample()), spent, strict=True)
                found[who] = ClientSample(*(past + more for past, more in both))
        self._regions = regions
        self.left_out = table.left_out
        self.connections = self.left_out + sum(use & 1 for uses, *_ in looked for use in uses)
        self.throttled = sum(
            until > now_ms and use & 1
            for uses, untils, *_ in looked
            for use, until in zip(uses, untils, strict=True)
        )
        return found

    def _client(self, netproc: int, row: int) -> ClientIdentity:
        version = self._table.version(netproc, row)
        known = self._who.get((netproc, row))
        if known is None or known[0] != version:
            one = self._table.read(netproc, row)
            who = ClientIdentity(one.principal, one.client_id, kind_of(one.address))
            known = self._who[netproc, row] = version, who
        return known[1]


class _Region(NamedTuple):
    """Columns of one netproc's rows: USE, and those of _COUNTED."""

    uses: list[int]
    counts: list[list[int]]


def _spent(old: _Region, new: _Region) -> Iterator[tuple[int, list[int]]]:
    """(row, how much was added to each count) of the rows that did anything."""
    if old == new:
        return
    known = len(old.uses)
    moved = set(range(known, len(new.uses)))
    for before, now in zip((old.uses, *old.counts), (new.uses, *new.counts), strict=True):
        if before != now[:known]:
            pairs = zip(before, now[:known], strict=True)
            moved.update(row for row, (a, b) in enumerate(pairs) if a != b)
    for row in sorted(moved):
        same = row < known and old.uses[row] | 1 == new.uses[row] | 1
        before = [column[row] for column in old.counts] if same else [0] * len(new.counts)
        spent = [column[row] - past for column, past in zip(new.counts, before, strict=True)]
        if any(spent):
            yield row, spent
