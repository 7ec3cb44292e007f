"""A fetch that waits for very many partitions: one message to each home instead of one for each
partition (decision 59).

What was looked at and had nothing is watched, by the version that its row had; the rest is parked
as ever. `k01_fetch.py` asks here what to park, and what moved when a home has news.
"""

from typing import Final

from appliance.handlers.exchange import Exchange, Host
from appliance.handlers.fetch_sessions import UNSETTLED
from appliance.handlers.fetch_state import FetchState
from appliance.ring.messages import WATCH_STABLE, WATCH_VISIBLE, WATCH_WRITTEN
from appliance.ring.partition_table import FOLLOWING, LEADER_EPOCH, ONLINE, STATUS

MOST_PARKED: Final = 64
"""A fetch of up to so many partitions parks one read for each."""
A_WATCH: Final = 4096
"""So many rows are named in one message."""
MOST_BEGUN: Final = 8
"""So often the homes may have news of which none is enough: min_bytes, or rows that move behind
an open transaction."""
FIRST_WATCH: Final = 1 << 31
"""Watches are pending by their number from here on, partitions by their index below."""
_SERVED: Final = (ONLINE, FOLLOWING)


def watch_waiting(host: Host, x: Exchange) -> list[int]:
    """Watch what waits and nobody is asked of; the partitions (indices) that are to be parked
    instead: all of them when that was begun so often already, since each time costs as much as
    there are."""
    state: FetchState = x.state
    state.begun += 1
    parks = state.begun > MOST_BEGUN
    waiting = set(x.pending)
    for indices in state.watches.values():
        waiting.update(indices)
    alone: list[int] = []
    homes: dict[int, list[int]] = {}
    for index, asked in enumerate(state.asked):
        route = asked.route
        if route is None or index in waiting:
            continue
        if parks or _version(host, state, index) == UNSETTLED:
            alone.append(index)
        else:
            homes.setdefault(route.home, []).append(index)
    if state.request.replica_id >= 0:
        kinds = WATCH_WRITTEN if host.rack is None else WATCH_WRITTEN | WATCH_VISIBLE
    else:
        kinds = WATCH_STABLE if state.request.read_committed else WATCH_VISIBLE
    for home, indices in homes.items():
        for at in range(0, len(indices), A_WATCH):
            _watch(host, x, home, kinds, indices[at : at + A_WATCH])
    return alone


def _watch(host: Host, x: Exchange, home: int, kinds: int, indices: list[int]) -> None:
    state: FetchState = x.state
    number = FIRST_WATCH + state.watched
    state.watched += 1
    state.watches[number] = indices
    rows = []
    for index in indices:
        route = state.asked[index].route
        assert route is not None
        rows.append(route.handle << 32 | (_version(host, state, index) & 0xFFFF_FFFF))
    host.watch_rows(x, number, home, kinds, rows)


def _version(host: Host, state: FetchState, index: int) -> int:
    """The version of its row, if it had no news and its ioproc knows all of the fetch; else
    UNSETTLED.
    """
    asked, found = state.asked[index], state.found.get(index)
    if found is None:
        return asked.settled
    told = asked.told
    if (
        host.rack is not None
        and state.request.replica_id >= 0
        and told is not None
        and found.high_watermark > told[0]
    ):
        return UNSETTLED  # the replica is to hear of that at once
    return found.settled


def moved(host: Host, state: FetchState, indices: list[int]) -> list[int]:
    """Those whose rows are others now."""
    published = host.partitions.state
    return [
        index
        for index in indices
        if published[state.asked[index].row] != _version(host, state, index)
    ]


def is_served(host: Host, state: FetchState, index: int) -> bool:
    """True if the row of a changed partition has the whole answer."""
    route = state.asked[index].route
    assert route is not None
    row = host.partitions.read_row(route.handle)
    return row[STATUS] in _SERVED and row[LEADER_EPOCH] == route.leader_epoch
