"""Fetch, API key 1, versions 4 to 18.

5: log start offset. 7: sessions (KIP-227). 9: leader epoch check. 11: a consumer may read from a
follower, and says its rack, so that the leader can tell it which one is near (KIP-392). 12:
flexible. 13: topic ids. 15: replica state moves into tags. 16: who leads, to who asked the wrong
node or knows an older epoch (KIP-951). 17, 18: fields of followers.

Another replica (replica id, from version 15 on with its broker epoch: KIP-903) reads as a consumer
does, but to the log end: what it names is told to the home, which notes how far it is. It is told
where its log parts from the leader's instead of records (12: KIP-595).

A fetch that goes on where its connection's last one was is often planned without asking anybody
(`Host.glance`). Else it goes through at most two phases: it first reads what is there; if that is
too little (fetch.min.bytes) it is parked at the partitions' homes until enough has come or
max_wait_ms is over, whichever is first; in the second case it looks once more. When a file is not
where a home had said (retention and compaction go on meanwhile), that home is asked once more. The
home of an offline partition is always asked, at its end too, where there is nothing to read: it
tells the error.
"""

from functools import partial

from appliance.base import errors
from appliance.handlers import fetch_answer, fetch_rights, fetch_watch, nearest
from appliance.handlers.exchange import (
    Exchange,
    FileRange,
    Handler,
    Host,
)
from appliance.handlers.fetch_sessions import (
    FetchSessions,
    SessionPartition,
    absent,
    settled,
)
from appliance.handlers.fetch_state import FetchedPartition, FetchState, Row
from appliance.handlers.fetch_watch import FIRST_WATCH, MOST_PARKED
from appliance.ring.messages import (
    ABORTED,
    ANY_REPLICA,
    READ,
    READ_COMMITTED,
    READ_GONE,
    READ_REPLICA,
    READ_WAIT,
    Message,
)
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
from appliance.wire.fetch import FetchPartition, PartitionData

_UNKNOWN = (
    *(errors.UNKNOWN_TOPIC_ID, errors.UNKNOWN_TOPIC_OR_PARTITION),
    errors.TOPIC_AUTHORIZATION_FAILED,  # nothing is told of it, as of one that is not there
)


def begin(sessions: FetchSessions, host: Host, x: Exchange) -> None:
    request = fetch.parse(host.memory, x.position, x.end, x.version)
    room = host.fetch_room(x)
    if request.replica_id >= 0:  # neither quotas nor isolation are for replicas
        request = request._replace(read_committed=False)
    elif room is not None and room < request.max_bytes:
        request = request._replace(max_bytes=room, min_bytes=min(room, request.min_bytes))
    by_id = x.version >= fetch.FIRST_TOPIC_ID
    code, session, incremental, partitions = sessions.resolve(host, request, by_id)
    if code:
        host.failed(x, code)
        host.finish(x, fetch_answer.whole_error(x.version, code))
        return
    state = x.state = FetchState(request, session, incremental, partitions)
    if not x.rights.everything:
        state.rules = x.rights.generation
    if request.rack and host.rack is not None and request.rack != host.rack:
        state.rack = request.rack
    host.reads(x, request.partitions if session is None else session.partitions)
    published = host.partitions.state
    for index, asked in enumerate(partitions):
        version: int = published[asked.row]
        if version != asked.settled:
            _look(host, x, index, asked)
    if state.untold:
        _tell(host, x)
    if not x.pending:
        if state.failed or state.total >= request.min_bytes:
            _respond(host, x)
        else:
            _settle(host, x)


def _look(host: Host, x: Exchange, index: int, asked: SessionPartition) -> None:
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
        _read(host, x, index, 0, 0)
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
        _read(host, x, index, 0, 0)
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


def _tell(host: Host, x: Exchange) -> None:
    """Their homes, of a replica that is at the end; when all of it waits, its parked reads do: at
    the end of the wait they are asked once more, because a home may refuse a replica."""
    state: FetchState = x.state
    if x.pending or _enough(state) or state.request.max_wait_ms <= 0:
        for index in state.untold:
            _read(host, x, index, 0, 0)
        state.untold.clear()


def _all_committed(row: list[int], partition: FetchPartition) -> bool:
    """True if nothing from its offset on was aborted, as far as transactions have ended."""
    return 0 < row[ABORTED_TO] <= partition.fetch_offset + 1


def _read(host: Host, x: Exchange, index: int, flags: int, enough: int) -> None:
    state: FetchState = x.state
    partition, route = state.asked[index].partition, state.asked[index].route
    assert route is not None
    request = state.request
    size = max(0, min(partition.max_bytes, request.max_bytes))
    if request.replica_id >= 0:
        who = request.replica_id, request.replica_epoch, _visible(host, state, index)
        state.asked[index].heard = True
        flags |= READ_REPLICA
        host.ask_as_replica(x, index, route, flags, partition, who, (size, enough))
        return
    if request.read_committed:
        flags |= READ_COMMITTED
    if x.version >= fetch.FIRST_RACK:
        flags |= ANY_REPLICA
    epoch = partition.current_leader_epoch
    host.ask(x, index, route, READ, flags, partition.fetch_offset, epoch, size, enough)


def _visible(host: Host, state: FetchState, index: int) -> int:
    """As READ has it: the high watermark that a replica is to wait for, where consumers may read
    from it; 0: it hears of that with the next records."""
    if host.rack is None:
        return 0
    if state.session is None:
        return state.found[index].high_watermark + 1
    told = state.asked[index].told
    return 1 + (-1 if told is None else told[0])


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    state: FetchState = x.state
    if index >= FIRST_WATCH or (message is not None and message.op == ABORTED):
        _hear_beside(host, x, index, message, payload)
        return
    aborted = state.aborted.pop(index, b"") if state.aborted else b""
    if message is None:
        state.found[index] = FetchedPartition(errors.NOT_LEADER_OR_FOLLOWER, -1, -1, -1)
    else:
        before = state.found.get(index)
        if before is not None:
            state.total -= before.length
        state.found[index] = FetchedPartition(
            message.flags - 1,
            message.a,
            message.b,
            message.c,
            message.d,
            message.g,
            message.e,
            message.f,
            message.i,
            aborted=aborted,
        )
        state.total += message.e
        if state.request.replica_id >= 0:
            _answer_replica(host, state, index, message)
        elif message.j:
            state.found[index].nearest = message.j - 1
            state.failed = True
        elif message.e:
            route = state.asked[index].route
            assert route is not None
            host.remember(x, route, message)
    if state.found[index].error:
        state.found[index] = FetchedPartition(
            state.found[index].error, -1, -1, -1
        )  # as Kafka: nothing else
        state.failed = True
        state.asked[index].heard = False
    if state.asked_again or state.looking:
        _go_on(host, x, index)
    elif not x.pending or (state.parked and _enough(state)):
        _settle(host, x)
    elif state.parked:
        _park(host, x, index)


def _go_on(host: Host, x: Exchange, index: int) -> None:
    """One of several was told that are answered together: files that were gone, or what moved."""
    state: FetchState = x.state
    if state.asked_again:
        if not x.pending:
            _respond(host, x)
        return
    state.looking.discard(index)
    if not state.looking:
        _settle(host, x)


def _answer_replica(host: Host, state: FetchState, index: int, message: Message) -> None:
    """One that has something else than the leader is told at once, and a high watermark that woke
    it."""
    if message.j:
        found = state.found[index]
        found.diverging = message.d, message.g
        state.failed = True
    elif (
        state.parked
        and not message.e
        and (index not in state.looking or 0 < _visible(host, state, index) <= message.a)
    ):
        state.failed = True


def _hear_beside(
    host: Host, x: Exchange, index: int, message: Message | None, payload: bytes
) -> None:
    """Takes a completion that is no partition's answer: it precedes one, or is about many."""
    state: FetchState = x.state
    if index >= FIRST_WATCH:
        _hear_news(host, x, index, message)
    else:
        state.aborted[index] = state.aborted.get(index, b"") + payload


def _hear_news(host: Host, x: Exchange, number: int, message: Message | None) -> None:
    """Reads those watched partitions of one ioproc that changed; parks each if none did."""
    state: FetchState = x.state
    indices = state.watches.pop(number)
    moved: list[int] = []
    if message is None:
        state.found[indices[0]] = FetchedPartition(errors.NOT_LEADER_OR_FOLLOWER, -1, -1, -1)
        state.failed = True
    elif message.flags == errors.NONE + 1:
        moved = fetch_watch.moved(host, state, indices)
    for index in moved:
        if fetch_watch.is_served(host, state, index):
            _look(host, x, index, state.asked[index])
        else:
            _read(host, x, index, 0, 0)  # its home says what became of it
        if index in x.pending:
            state.looking.add(index)
    if message is not None and not moved:
        for index in indices:
            _park(host, x, index)
    elif not state.looking:
        _settle(host, x)


def expire(host: Host, x: Exchange) -> None:
    """max_wait_ms is over: answer with what there is by now, as Kafka does. The second time a home
    has not said that soon enough: then without it."""
    state: FetchState = x.state
    if x.pending:
        _forget(host, x)
    if state.parked and not state.asked_again:
        state.parked = False
        state.request = state.request._replace(max_wait_ms=0)
        untold, state.untold = state.untold, []
        for index in untold:  # a parked read that its home has not looked at says nothing
            state.asked[index].heard = False
        _look_again(host, x)
        if state.untold:
            _tell(host, x)
    if not x.pending:
        _respond(host, x)


def _look_again(host: Host, x: Exchange) -> None:
    """At what moved while it waited and did not wake it: an end behind an open transaction, or too
    little to be enough."""
    state: FetchState = x.state
    published = host.partitions.state
    replica = state.request.replica_id >= 0
    for index, asked in enumerate(state.asked):
        found = state.found.get(index)
        version: int = published[asked.row]
        if version == (asked.settled if found is None else found.settled) or asked.route is None:
            continue
        if found is not None:
            row = host.partitions.read_row(asked.route.handle)
            ends = (found.high_watermark, found.last_stable_offset, found.log_start_offset)
            if replica and (found.length or found.error or found.diverging):
                continue  # that will do
            if not replica and (row[HIGH_WATERMARK], row[LAST_STABLE], row[LOG_START]) == ends:
                continue
            state.total -= found.length
        _look(host, x, index, asked)


def _enough(state: FetchState) -> bool:
    return state.failed or state.total >= state.request.min_bytes


def _settle(host: Host, x: Exchange) -> None:
    state: FetchState = x.state
    request = state.request
    if _enough(state) or request.max_wait_ms <= 0 or not state.asked:
        if x.pending:
            _forget(host, x)
        if state.parked and request.replica_id >= 0:
            state.parked = False
            _look_again(host, x)  # what woke it seldom comes alone
            if x.pending:
                return
        _respond(host, x)
        return
    if not state.parked:
        state.parked = True
        x.deadline_ns = host.now_ns + request.max_wait_ms * 1_000_000
        host.schedule(x)
    if len(state.asked) > MOST_PARKED:
        for index in fetch_watch.begin(host, x):
            _park(host, x, index)
        return
    for index in range(len(state.asked)):
        if index not in x.pending:
            _park(host, x, index)


def _forget(host: Host, x: Exchange) -> None:
    """Drops pending requests; partitions being read are to be read again."""
    state: FetchState = x.state
    host.cancel(x)
    for index in state.looking:
        state.found.pop(index, None)
    state.watches.clear()
    state.looking.clear()


def _park(host: Host, x: Exchange, index: int) -> None:
    """Ask to be told when this partition has what the request still lacks.

    With one partition that is everything missing; with several, any growth may complete the sum.
    """
    state: FetchState = x.state
    if state.asked[index].route is None:
        return
    found, here = state.found.get(index), 0
    if found is not None:
        found.file = None
        here = found.length
    missing = state.request.min_bytes - state.total if len(state.asked) == 1 else 1
    _read(host, x, index, READ_WAIT, here + max(1, missing))


def _respond(host: Host, x: Exchange) -> None:
    """Responds with every partition's answer, cut to the byte budget; the first batch always fits.
    If files are gone, requests are pending again at return."""
    state: FetchState = x.state
    if not x.rights.everything and state.rules != x.rights.generation:
        fetch_rights.judge_anew(host, x)
    left = min(state.request.max_bytes, host.fetch_max_bytes)
    empty = True
    rows: list[Row] = []
    again = not state.asked_again
    committed = state.request.read_committed
    for index in sorted(state.found):  # a home may have answered for one that was settled
        partition, route = state.asked[index].partition, state.asked[index].route
        found = state.found[index]
        length = min(found.length, max(left, 0))
        if length < found.first:
            length = found.first if empty else 0
        code = found.error
        records = None
        if length > 0 and not code:
            assert route is not None
            file = None
            try:
                file = found.file or host.segment(route, found.segment, found.layout)
            except OSError as problem:
                code = fetch_answer.unopened(problem, alone=empty)
            if code == fetch_answer.LATER:
                code = errors.NONE
            elif code:
                found = state.found[index] = FetchedPartition(code, -1, -1, -1)
            elif file is None and again:
                state.asked_again = True
                _read(host, x, index, READ_GONE, 0)
            elif file is None:
                code = errors.NOT_LEADER_OR_FOLLOWER  # replaced just now: the client asks again
            else:
                records = FileRange(file, found.position, length)
                left -= length
                empty = False
        aborted: bytes | None = b"" if code in _UNKNOWN else None
        if committed and found.nearest < 0:
            aborted = found.aborted
        data = PartitionData(
            partition.topic,
            partition.partition,
            code,
            found.high_watermark,
            found.last_stable_offset,
            found.log_start_offset,
            length if records is not None else 0,
            aborted,
            found.nearest,
        )
        rows.append((index, data, records))
    if not x.pending:
        fetch_answer.finish(host, x, rows)


def handler(sessions: FetchSessions) -> Handler:
    """The Fetch handler of one network process, which owns the sessions."""
    return Handler(1, "Fetch", 4, 18, partial(begin, sessions), complete, expire)
