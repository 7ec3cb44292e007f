"""Looks into a partition for a Fetch: into the row of the partition table and where its connection
went on, or by asking the partition's home.

Called by `k01_fetch.py`, in the order in which the request names them.
"""

from appliance.handlers import fetch_rights, nearest
from appliance.handlers.exchange import Exchange, Host
from appliance.handlers.fetch_sessions import SessionPartition, absent, settled
from appliance.handlers.fetch_state import FetchedPartition, FetchState
from appliance.ring.messages import ANY_REPLICA, READ, READ_COMMITTED, READ_REPLICA
from appliance.ring.partition_table import (
    ABORTED_TO,
    COLUMNS,
    HIGH_WATERMARK,
    LAST_STABLE,
    LOG_END,
    LOG_START,
    OFFLINE,
    ONLINE,
    ROW_MASK,
    STATUS,
)
from appliance.wire import fetch
from appliance.wire.fetch import FetchPartition


def look_at_partition(host: Host, x: Exchange, index: int, asked: SessionPartition) -> None:
    """Reads a partition from its row and cached location; else asks its ioproc."""
    state: FetchState = x.state
    request, partition = state.request, asked.partition
    if not x.rights.everything:
        code = fetch_rights.refusal(host, x, partition.topic)
        if code:
            asked.route = None
            state.found[index] = FetchedPartition(code, -1, -1, -1)
            state.failed = True
            return
    route = asked.route
    if route is None:
        by_id = x.version >= fetch.FIRST_TOPIC_ID
        route = host.route(partition.topic, partition.partition, by_id)
        if route is None and request.replica_id < 0 and x.version >= fetch.FIRST_RACK:
            route = host.replica(partition.topic, partition.partition, by_id)
        asked.route = route
        if route is None:
            code = absent(host, state.session, partition, by_id)
            state.found[index] = FetchedPartition(code, -1, -1, -1)
            state.failed = True
            return
        asked.row = (route.handle & ROW_MASK) * COLUMNS
        if by_id and state.session is not None:
            state.session.names.setdefault(partition.topic, route.topic)
    row = host.partitions.read_row(route.handle)
    high_watermark, stable = row[HIGH_WATERMARK], row[LAST_STABLE]
    found = state.found[index] = FetchedPartition(0, high_watermark, stable, row[LOG_START])
    if request.replica_id >= 0:
        _look_as_replica(host, x, index, row)
        return
    if state.rack and _offer_nearest(host, x, index):
        return
    limit = stable if request.read_committed else high_watermark
    stale = partition.current_leader_epoch not in (-1, route.leader_epoch)
    if partition.fetch_offset == limit and not stale and row[STATUS] != OFFLINE:
        found.settled = settled(row, route)
        return
    size = min(partition.max_bytes, request.max_bytes)
    place = None
    if not stale and (not request.read_committed or _all_committed(row, partition)):
        place = host.glance(x, route, row, partition.fetch_offset, limit, size)
    if place is None:
        read_partition(host, x, index, 0, 0)
    else:
        found.file, found.position, found.length, found.first = place
        state.total += found.length


def _look_as_replica(host: Host, x: Exchange, index: int, row: list[int]) -> None:
    """Its home is asked when there is something to read, and when it is to know of an offset."""
    state: FetchState = x.state
    asked = state.asked[index]
    partition, route = asked.partition, asked.route
    assert route is not None
    if (
        partition.fetch_offset != row[LOG_END]
        or row[STATUS] != ONLINE
        or partition.current_leader_epoch not in (-1, route.leader_epoch)
    ):
        read_partition(host, x, index, 0, 0)
    elif asked.heard:
        state.found[index].settled = settled(row, route)
    else:
        state.untold.append(index)


def _offer_nearest(host: Host, x: Exchange, index: int) -> bool:
    """Asks for the nearest replica first, if any is in the consumer's rack; True if so."""
    state: FetchState = x.state
    asked = state.asked[index]
    partition, route = asked.partition, asked.route
    assert route is not None
    found = nearest.in_rack(host, x, route, state.rack)
    if found is None:
        return False
    flags = ANY_REPLICA | (READ_COMMITTED if state.request.read_committed else 0)
    limits = max(0, min(partition.max_bytes, state.request.max_bytes)), 0
    host.ask_nearest(x, index, route, flags, partition, found, limits)
    return True


def _all_committed(row: list[int], partition: FetchPartition) -> bool:
    """True if nothing from its offset on was aborted, as far as transactions have ended."""
    return 0 < row[ABORTED_TO] <= partition.fetch_offset + 1


def read_partition(host: Host, x: Exchange, index: int, flags: int, enough: int) -> None:
    state: FetchState = x.state
    partition, route = state.asked[index].partition, state.asked[index].route
    assert route is not None
    request = state.request
    size = max(0, min(partition.max_bytes, request.max_bytes))
    if request.replica_id >= 0:
        who = request.replica_id, request.replica_epoch, visible_to_replica(host, state, index)
        state.asked[index].heard = True
        flags |= READ_REPLICA
        host.ask_as_replica(x, index, route, flags, partition, who, (size, enough))
        return
    if request.read_committed:
        flags |= READ_COMMITTED
    if x.version >= fetch.FIRST_RACK:
        flags |= ANY_REPLICA
    epoch = partition.current_leader_epoch
    host.ask_home(x, index, route, READ, flags, partition.fetch_offset, epoch, size, enough)


def visible_to_replica(host: Host, state: FetchState, index: int) -> int:
    """As READ has it: the high watermark that a replica is to wait for, where consumers may read
    from it; 0: it hears of that with the next records."""
    if host.rack is None:
        return 0
    if state.session is None:
        return state.found[index].high_watermark + 1
    told = state.asked[index].told
    return 1 + (-1 if told is None else told[0])
