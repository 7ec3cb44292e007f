"""Fetch, API key 1, versions 4 to 18, and 0 to 3 with penstock.legacy.protocol.

0 to 3: records are told in format 0 (0, 1) or 1 (`down_converted.py`); what a request says of a
replica is passed over. 3: most bytes of the answer. 5: log start offset. 7: sessions (KIP-227). 9:
leader epoch check. 11: a consumer may read from a follower, and says its rack, so that the leader
can tell it which one is near (KIP-392). 12: flexible. 13: topic ids. 15: replica state moves into
tags. 16: who leads, to who asked the wrong node or knows an older epoch (KIP-951). 17, 18: fields
of followers.

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

from collections.abc import Iterator
from functools import partial
from typing import Final

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.handlers import down_converted, fetch_answer, fetch_rights, fetch_watch
from appliance.handlers.exchange import Exchange, FileRange, Handler, Host, Steps
from appliance.handlers.fetch_look import look_at_partition, read_partition, visible_to_replica
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.handlers.fetch_state import FetchedPartition, FetchState
from appliance.handlers.fetch_watch import FIRST_WATCH, MOST_PARKED
from appliance.handlers.gather import MANY, rows_of
from appliance.ring.counters import FOLLOWER_FETCH
from appliance.ring.messages import ABORTED, READ_GONE, READ_WAIT, Message
from appliance.ring.partition_table import HIGH_WATERMARK, LAST_STABLE, LOG_START
from appliance.ring.slots import unpack_found
from appliance.wire import fetch
from appliance.wire.fetch import FetchRequest, PartitionData

LONG: Final = 1 << 14
"""Bytes of a request from which on its partitions are not looked at in the turn that parses it."""

_UNKNOWN = (
    *(errors.UNKNOWN_TOPIC_ID, errors.UNKNOWN_TOPIC_OR_PARTITION),
    errors.TOPIC_AUTHORIZATION_FAILED,  # nothing is told of it, as of one that is not there
)


def begin_fetch(
    sessions: FetchSessions, host: Host, x: Exchange, request: FetchRequest | None = None
) -> None:
    """request: parsed in an earlier turn."""
    if request is None:
        request = fetch.parse(host.memory, x.position, x.end, x.version)
        if x.end - x.position >= LONG:
            host.work(x, iter((None,)), partial(begin_fetch, sessions, host, x, request))
            return
    room = host.fetch_room(x)
    if request.replica_id >= 0:  # neither quotas nor isolation are for replicas
        request = request._replace(read_committed=False)
        x.stage_row = FOLLOWER_FETCH
    elif room is not None and room < request.max_bytes:
        request = request._replace(max_bytes=room, min_bytes=min(room, request.min_bytes))
    by_id = x.version >= fetch.FIRST_TOPIC_ID
    owner = x.rights.caller.principal
    code, session, incremental, partitions = sessions.resolve(host, request, by_id, owner)
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
    if len(partitions) > MANY:
        host.work(x, _look_in_turns(host, x), partial(_end_plan, host, x))
        return
    published = host.partitions.state
    for index, asked in enumerate(partitions):
        version: int = published[asked.row]
        if version != asked.settled:
            look_at_partition(host, x, index, asked)
    _end_plan(host, x)


def _look_in_turns(host: Host, x: Exchange) -> Steps:
    """Look at what may have news, with a stop after MANY: homes answer meanwhile."""
    state: FetchState = x.state
    published = host.partitions.state
    looked = 0
    for index, asked in enumerate(state.asked):
        version: int = published[asked.row]
        if version != asked.settled:
            look_at_partition(host, x, index, asked)
            looked += 1
            if looked % MANY == 0:
                yield


def _end_plan(host: Host, x: Exchange) -> None:
    state: FetchState = x.state
    if state.untold:
        _tell(host, x)
    if not x.pending:
        if state.failed or state.total >= state.request.min_bytes:
            _respond(host, x)
        else:
            _settle(host, x)


def _tell(host: Host, x: Exchange) -> None:
    """Their homes, of a replica that is at the end; when all of it waits, its parked reads do: at
    the end of the wait they are asked once more, because a home may refuse a replica."""
    state: FetchState = x.state
    if x.pending or _enough(state) or state.request.max_wait_ms <= 0:
        for index in state.untold:
            read_partition(host, x, index, 0, 0)
        state.untold.clear()


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
        marks = unpack_found(message)
        high, stable, log_start, base, position, length, first, layout, other = marks
        state.found[index] = FetchedPartition(
            message.flags - 1, high, stable, log_start, base, position, length, first, layout,
            aborted=aborted,
        )  # fmt: skip
        state.total += length
        if state.request.replica_id >= 0:
            _answer_replica(host, state, index, other)
        elif other:
            state.found[index].nearest = other - 1
            state.failed = True
        elif layout < 0:
            _hear_remote(state, length)
        elif length:
            route = state.asked[index].route
            assert route is not None
            host.remember(x, route, (base, position, length, layout))
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


def _hear_remote(state: FetchState, length: int) -> None:
    """Bytes of a remote segment are answered at once, as Kafka does: to wait for more of them
    would be to wait for the store. Those on their way are waited for, whatever max_wait_ms says."""
    state.comes = state.comes or not length
    state.failed = state.failed or length > 0


def _answer_replica(host: Host, state: FetchState, index: int, diverges: int) -> None:
    """One that has something else than the leader is told at once, and a high watermark that woke
    it."""
    found = state.found[index]
    if diverges:
        found.diverging = found.segment, found.position
        state.failed = True
    elif (
        state.parked
        and not found.length
        and (
            index not in state.looking
            or 0 < visible_to_replica(host, state, index) <= found.high_watermark
        )
    ):
        state.failed = True


def _hear_beside(
    host: Host, x: Exchange, index: int, message: Message | None, payload: bytes
) -> None:
    """Takes a completion that is no partition's answer: it precedes one, or is about many."""
    state: FetchState = x.state
    if index == down_converted.WAITING:
        _go_on_converting(host, x)
    elif index >= FIRST_WATCH:
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
            look_at_partition(host, x, index, state.asked[index])
        else:
            read_partition(host, x, index, 0, 0)  # its home says what became of it
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
    if state.responding:
        return  # nearly answered
    if x.pending:
        _forget(host, x)
    if state.parked and not state.asked_again:
        state.parked = False
        state.request = state.request._replace(max_wait_ms=0)
        state.comes = False
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
        look_at_partition(host, x, index, asked)


def _enough(state: FetchState) -> bool:
    return state.failed or state.total >= state.request.min_bytes


def _settle(host: Host, x: Exchange) -> None:
    state: FetchState = x.state
    request = state.request
    wait_ms = host.remote_wait_ms if state.comes else request.max_wait_ms
    if _enough(state) or wait_ms <= 0 or not state.asked:
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
        x.waits_ns = host.now_ns
        x.deadline_ns = host.now_ns + wait_ms * 1_000_000
        host.schedule(x)
    if len(state.asked) > MOST_PARKED:
        for index in fetch_watch.watch_waiting(host, x):
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
    read_partition(host, x, index, READ_WAIT, here + max(1, missing))


def _respond(host: Host, x: Exchange) -> None:
    """Responds with every partition's answer, cut to the byte budget; the first batch always fits.
    If files are gone, requests are pending again at return. Many partitions take several turns."""
    state: FetchState = x.state
    if not x.rights.everything and state.rules != x.rights.generation:
        fetch_rights.judge_anew(host, x)
    state.left = min(state.request.max_bytes, host.fetch_max_bytes)
    state.rows, state.has_records = [], False
    state.asks_again = not state.asked_again
    indices = sorted(state.found)  # a home may have answered for one that was settled
    if len(indices) > MANY:
        state.responding = True
        steps = rows_of(_cut(indices), partial(_add_rows, host, x), 1)
        host.work(x, steps, partial(_end_rows, host, x))
        return
    _add_rows(host, x, indices)
    if x.pending:
        return
    if x.version < fetch.FIRST_BATCHES:
        _convert(host, x)
    else:
        fetch_answer.finish(host, x, state.rows)


def _cut(indices: list[int]) -> Iterator[list[int]]:
    for at in range(0, len(indices), MANY):
        yield indices[at : at + MANY]


def _end_rows(host: Host, x: Exchange) -> None:
    state: FetchState = x.state
    if x.pending:
        state.responding = False
    elif state.asks_again and state.asked_again:  # and they have answered already
        _respond(host, x)
    elif x.version < fetch.FIRST_BATCHES:
        _convert(host, x)
    else:
        fetch_answer.finish_in_turns(host, x, state.rows)


def _convert(host: Host, x: Exchange) -> None:
    """Answers with message sets, made over several turns."""
    state: FetchState = x.state
    state.responding = True
    state.conversion = down_converted.Conversion(host, x, state.rows, state.asked)
    _go_on_converting(host, x)


def _go_on_converting(host: Host, x: Exchange) -> None:
    conversion = x.state.conversion
    down_converted.resume_conversion(host, x, conversion, partial(_end_converting, host, x))


def _end_converting(host: Host, x: Exchange) -> None:
    """Answers, or looks behind records that no old consumer is told of."""
    state: FetchState = x.state
    conversion = state.conversion
    assert conversion is not None
    state.conversion = None
    behind = conversion.behind
    state.failed = state.failed or conversion.failed
    if conversion.told or state.failed or not behind:
        fetch_answer.finish_in_turns(host, x, state.rows)
        return
    state.responding = False
    for index, offset in behind.items():
        asked = state.asked[index]
        asked.partition = asked.partition._replace(fetch_offset=offset)
        state.total -= state.found[index].length
        look_at_partition(host, x, index, asked)
    if not x.pending:
        _settle(host, x)


def _add_rows(host: Host, x: Exchange, indices: list[int]) -> None:
    """Adds rows of these partitions to the answer, behind those of `state.rows`."""
    state: FetchState = x.state
    committed = state.request.read_committed
    for index in indices:
        partition, route = state.asked[index].partition, state.asked[index].route
        found = state.found[index]
        length = min(found.length, max(state.left, 0))
        if length < found.first:
            length = 0 if state.has_records else found.first
        code = found.error
        records = None
        if length > 0 and not code:
            assert route is not None
            file = None
            try:
                file = found.file or host.segment(route, found.segment, found.layout)
            except OSError as problem:
                code = fetch_answer.unopened(problem, alone=not state.has_records)
            if code == fetch_answer.LATER:
                code = errors.NONE
            elif code:
                found = state.found[index] = FetchedPartition(code, -1, -1, -1)
            elif file is None and state.asks_again:
                state.asked_again = True
                read_partition(host, x, index, READ_GONE, 0)
            elif file is None:
                code = errors.NOT_LEADER_OR_FOLLOWER  # replaced just now: the client asks again
            else:
                records = FileRange(file, found.position, length)
                state.left -= length
                state.has_records = True
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
        state.rows.append((index, data, records))


def handler(sessions: FetchSessions) -> Handler:
    """The Fetch handler of one network process, which owns the sessions."""
    return Handler(*declared(1), partial(begin_fetch, sessions), complete, expire)
