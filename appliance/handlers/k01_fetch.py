"""Fetch, API key 1, versions 4 to 18.

5: log start offset. 7: sessions (KIP-227). 9: leader epoch check. 11: rack (one host: ignored). 12:
flexible. 13: topic ids. 15: replica state moves into tags. 16: leader hints (not sent: one host).
17, 18: fields of followers.

A fetch that goes on where its connection's last one was is often planned without asking anybody
(`Host.glance`). Else it goes through at most two phases: it first reads what is there; if that is
too little (fetch.min.bytes) it is parked at the partitions' homes until enough has come or
max_wait_ms is over, whichever is first. The home of an offline partition is always asked, at its
end too, where there is nothing to read: it tells the error.
"""

from dataclasses import dataclass, field

from appliance.base import errors
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, FileRange, Handler, Host, Piece, Route
from appliance.handlers.fetch_sessions import FetchSessions, Session, must_tell
from appliance.ring.messages import READ, READ_COMMITTED, READ_WAIT, Message
from appliance.wire import fetch
from appliance.wire.fetch import FetchPartition, FetchRequest, PartitionData

_UNKNOWN = (errors.UNKNOWN_TOPIC_ID, errors.UNKNOWN_TOPIC_OR_PARTITION)


@dataclass(slots=True)
class Found:
    """What one partition has for the client. `first` is the length of the first batch, in bytes
    like `length`."""

    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    segment: int = 0
    position: int = 0
    length: int = 0
    first: int = 0
    layout: int = 0


@dataclass(slots=True)
class FetchState:
    request: FetchRequest
    session: Session | None
    incremental: bool
    partitions: list[FetchPartition]
    routes: list[Route | None] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    total: int = 0  # bytes found so far
    failed: bool = False  # some partition has an error: answer at once, as Kafka does
    parked: bool = False


def begin(host: Host, x: Exchange, sessions: FetchSessions) -> None:
    request = fetch.parse(host.memory, x.position, x.end, x.version)
    room = host.fetch_room(x)
    if room is not None and room < request.max_bytes:
        request = request._replace(max_bytes=room, min_bytes=min(room, request.min_bytes))
    by_id = x.version >= fetch.FIRST_TOPIC_ID
    resolved = sessions.resolve(request, by_id)
    if resolved.error:
        host.finish(x, _whole_error(x.version, resolved.error))
        return
    state = FetchState(request, resolved.session, resolved.incremental, resolved.partitions)
    x.state = state
    host.reads(x, state.partitions)
    for index, partition in enumerate(state.partitions):
        route = host.route(partition.topic, partition.partition, by_id)
        state.routes.append(route)
        if route is None:
            code = _unknown(host, state.session, partition.topic, by_id)
            state.found.append(Found(code, -1, -1, -1))
            state.failed = True
            continue
        if by_id and state.session is not None:
            state.session.names.setdefault(partition.topic, route.topic)
        high_watermark, stable, start, offline = host.row(route.handle)
        state.found.append(Found(0, high_watermark, stable, start))
        limit = stable if request.read_committed else high_watermark
        stale = partition.current_leader_epoch not in (-1, route.leader_epoch)
        if partition.fetch_offset == limit and not stale and not offline:
            continue
        size = min(partition.max_bytes, request.max_bytes)
        place = None if stale else host.glance(x, route, partition.fetch_offset, size)
        if place is None:
            _read(host, x, index, 0, 0)
        else:
            state.found[index] = Found(0, high_watermark, stable, start, *place)
            state.total += place[2]
    if not x.pending:
        _settle(host, x)


def _unknown(host: Host, session: Session | None, topic: bytes, by_id: bool) -> int:
    """The code for a partition that is not there. A session knows the name that an id had: when
    the topic was made anew the id does not fit the name any more."""
    name = session.names.get(topic) if by_id and session is not None else None
    if name is None or topic in host.image.topics_by_id:
        return gather.unknown(host, topic, by_id)
    if name in host.image.topics_by_name:
        return errors.INCONSISTENT_TOPIC_ID
    return errors.UNKNOWN_TOPIC_OR_PARTITION


def _read(host: Host, x: Exchange, index: int, flags: int, enough: int) -> None:
    state: FetchState = x.state
    partition = state.partitions[index]
    route = state.routes[index]
    assert route is not None
    if state.request.read_committed:
        flags |= READ_COMMITTED
    size = max(0, min(partition.max_bytes, state.request.max_bytes))
    epoch = partition.current_leader_epoch
    host.ask(x, index, route, READ, flags, partition.fetch_offset, epoch, size, enough)


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    state: FetchState = x.state
    if message is None:
        state.found[index] = Found(errors.NOT_LEADER_OR_FOLLOWER, -1, -1, -1)
    else:
        state.total -= state.found[index].length
        state.found[index] = Found(
            message.flags - 1,
            message.a,
            message.b,
            message.c,
            message.d,
            message.g,
            message.e,
            message.f,
            message.i,
        )
        state.total += message.e
        if message.e:
            route = state.routes[index]
            assert route is not None
            host.remember(x, route, message.d, message.g, message.i)
    if state.found[index].error:
        state.found[index] = Found(state.found[index].error, -1, -1, -1)  # as Kafka: nothing else
        state.failed = True
    if not x.pending or (state.parked and _enough(state)):
        _settle(host, x)
    elif state.parked:
        _park(host, x, index)


def expire(host: Host, x: Exchange) -> None:
    """max_wait_ms is over: answer with what there is."""
    _respond(host, x)


def _enough(state: FetchState) -> bool:
    return state.failed or state.total >= state.request.min_bytes


def _settle(host: Host, x: Exchange) -> None:
    state: FetchState = x.state
    request = state.request
    if _enough(state) or request.max_wait_ms <= 0 or not state.partitions:
        _respond(host, x)
        return
    if not state.parked:
        state.parked = True
        x.deadline_ns = host.now_ns + request.max_wait_ms * 1_000_000
        host.schedule(x)
    for index in range(len(state.partitions)):
        if index not in x.pending:
            _park(host, x, index)


def _park(host: Host, x: Exchange, index: int) -> None:
    """Ask to be told when this partition has what the request still lacks.

    With one partition that is everything missing; with several, any growth may complete the sum.
    """
    state: FetchState = x.state
    if state.routes[index] is None:
        return
    here = state.found[index].length
    missing = state.request.min_bytes - state.total if len(state.partitions) == 1 else 1
    _read(host, x, index, READ_WAIT, here + max(1, missing))


def _respond(host: Host, x: Exchange) -> None:
    host.cancel(x)
    state: FetchState = x.state
    version = x.version
    rows = _rows(host, state)
    told = _told(state, rows)
    session_id = state.session.session_id if state.session is not None else 0
    topics = 0
    previous = None
    for data, _ in told:
        topics += data.topic != previous
        previous = data.topic
    pieces: list[Piece] = []
    out = [fetch.top(version, 0, errors.NONE, session_id, topics)]
    at = 0
    while at < len(told):
        topic = told[at][0].topic
        end = at
        while end < len(told) and told[end][0].topic == topic:
            end += 1
        out.append(fetch.topic_head(version, topic, end - at))
        for data, records in told[at:end]:
            out.append(fetch.partition_head(version, data))
            if records is not None:
                pieces.append(b"".join(out))
                pieces.append(records)
                out = []
            out.append(fetch.partition_tail(version))
        out.append(fetch.topic_tail(version))
        at = end
    out.append(fetch.body_tail(version))
    tail = b"".join(out)
    if tail:
        pieces.append(tail)
    host.finish(x, pieces)


def _rows(host: Host, state: FetchState) -> list[tuple[PartitionData, FileRange | None]]:
    """Every partition's answer, cut to the response's byte budget; the first batch of the first one
    always fits."""
    left = min(state.request.max_bytes, host.config.int("fetch.max.bytes"))
    empty = True
    rows: list[tuple[PartitionData, FileRange | None]] = []
    for partition, route, found in zip(state.partitions, state.routes, state.found, strict=True):
        length = min(found.length, max(left, 0))
        if length < found.first:
            length = found.first if empty else 0
        code = found.error
        records = None
        if length > 0 and not code:
            assert route is not None
            file = host.segment(route, found.segment, found.layout)
            if file is None:
                code = errors.NOT_LEADER_OR_FOLLOWER  # deleted or compacted: the client asks again
            else:
                records = FileRange(file, found.position, length)
                left -= length
                empty = False
        data = PartitionData(
            partition.topic,
            partition.partition,
            code,
            found.high_watermark,
            found.last_stable_offset,
            found.log_start_offset,
            length if records is not None else 0,
            state.request.read_committed or code in _UNKNOWN,
        )
        rows.append((data, records))
    return rows


def _told(
    state: FetchState, rows: list[tuple[PartitionData, FileRange | None]]
) -> list[tuple[PartitionData, FileRange | None]]:
    """The rows that go into the response: all of a full one, only the news of an incremental
    one."""
    session = state.session
    if session is None:
        return rows
    told = []
    for row in rows:
        data = row[0]
        marks = (data.high_watermark, data.log_start_offset)
        news = must_tell(session, (data.topic, data.partition), data.error, data.length, marks)
        if news or not state.incremental:
            told.append(row)
    return told


def throttled(x: Exchange, throttle_ms: int) -> bytes:
    """The answer to a client over its quota, instead of the one that was ready: nothing, and for
    how long. What its session was told of goes with the records of a later answer."""
    state: FetchState | None = x.state
    session = state.session if state is not None else None
    session_id = session.session_id if session is not None else 0
    top = fetch.top(x.version, throttle_ms, errors.NONE, session_id, 0)
    return top + fetch.body_tail(x.version)


def _whole_error(version: int, code: int) -> list[Piece]:
    return [fetch.top(version, 0, code, 0, 0) + fetch.body_tail(version)]


def handler(sessions: FetchSessions) -> Handler:
    """The Fetch handler of one network process, which owns the sessions."""
    return Handler(1, "Fetch", 4, 18, lambda host, x: begin(host, x, sessions), complete, expire)
