"""The answer to a Fetch, made from the rows of its partitions: all of them, or in a session
the news.

Called by `k01_fetch.py`, which found the rows; nobody is asked here.
"""

import errno
from typing import Final

from appliance.base import errors
from appliance.handlers.exchange import Exchange, Host, Piece, Steps
from appliance.handlers.fetch_sessions import Session, SessionPartition, must_tell
from appliance.handlers.fetch_state import FetchedPartition, FetchState, Row
from appliance.handlers.gather import MANY
from appliance.handlers.leaders import CurrentLeaders
from appliance.ring.partition_table import (
    BYTES_OUT,
    FETCHES,
    ROW_MASK,
    SERVED_COLUMNS,
    TO_FOLLOWERS,
)
from appliance.wire import fetch
from appliance.wire.fetch import PartitionData

LATER: Final = 1 << 16
"""Beside Kafka's error codes: the records go with a later answer."""
_SHORT: Final = (errno.EMFILE, errno.ENFILE)


def unopened(problem: OSError, *, alone: bool) -> int:
    """The error code for a partition whose file cannot be opened, or LATER. alone: no records of
    another partition go before its own. The descriptors that an answer may use up are bounded as
    its bytes are: what is beyond the bound goes later."""
    later = problem.errno in _SHORT and not alone
    return LATER if later else errors.KAFKA_STORAGE_ERROR


def finish(host: Host, x: Exchange, rows: list[Row]) -> None:
    """Answer with these; what was served is counted, and what a session's client knows is noted."""
    pieces: list[Piece] = []
    for _ in _encode(host, x, rows, pieces):
        pass
    host.finish(x, pieces)


def finish_in_turns(host: Host, x: Exchange, rows: list[Row]) -> None:
    """The same over several turns."""
    pieces: list[Piece] = []
    host.work(x, _encode(host, x, rows, pieces), lambda: host.finish(x, pieces))


def _encode(host: Host, x: Exchange, rows: list[Row], pieces: list[Piece]) -> Steps:
    """Steps of MANY rows that add the answer to `pieces`."""
    state: FetchState = x.state
    version, session = x.version, state.session
    served, replica = host.served, state.request.replica_id >= 0
    told, topics, previous = [], 0, None
    for number, row in enumerate(rows, 1):
        index, data, file = row
        asked = state.asked[index]
        if asked.route is not None and file is not None:
            at = TO_FOLLOWERS if replica else (asked.route.handle & ROW_MASK) * SERVED_COLUMNS
            served[at + FETCHES] += 1
            served[at + BYTES_OUT] += data.length
        if session is None or _is_told(state, session, asked, row):
            told.append(row)
            topics += data.topic != previous
            previous = data.topic
        if number % MANY == 0:
            yield
    session_id = 0 if session is None else session.session_id
    no_tags = fetch.tail(version)  # what ends a partition, a topic, and the body
    out = [fetch.top(version, 0, errors.NONE, session_id, topics)]
    leaders = CurrentLeaders(host, x, known=replica) if state.failed else None
    at = 0
    while at < len(told):
        topic = told[at][1].topic
        end = at
        while end < len(told) and told[end][1].topic == topic:
            end += 1
        out.append(fetch.topic_head(version, topic, end - at))
        for number, (index, data, records) in enumerate(told[at:end], at + 1):
            out.append(fetch.partition_head(version, data))
            if data.error:
                host.failed(x, data.error)
            if records is not None:
                pieces.append(b"".join(out))
                pieces.append(records)
                out = []
            out.append(no_tags if leaders is None else _tags(state.found[index], data, leaders))
            if number % MANY == 0:
                yield
        out.append(no_tags)
        at = end
    out.append(no_tags if leaders is None else leaders.endpoints(no_tags))
    tail = b"".join(out)
    if tail:
        pieces.append(tail)


def _tags(found: FetchedPartition, data: PartitionData, leaders: CurrentLeaders) -> bytes:
    """The end of a partition with tagged fields that must be sent at once. Divergence is reported
    only where the request names an epoch, so from version 12 on.
    """
    if found.diverging is not None:
        return fetch.diverging(*found.diverging)
    return leaders.of_fetch(data)


def _is_told(state: FetchState, session: Session, asked: SessionPartition, row: Row) -> bool:
    """True for a row that goes into the response of a session: each of a full one, only the news
    of an incremental one."""
    index, data, _ = row
    marks = (data.high_watermark, data.log_start_offset)
    news = must_tell(session, asked, data.error, data.length, marks)
    found = state.found[index]
    asked.settled = found.settled
    return news or found.diverging is not None or found.nearest >= 0 or not state.incremental


def throttled(x: Exchange, throttle_ms: int) -> bytes:
    """The answer to a client over its quota, instead of the one that was ready: nothing, and for
    how long. What its session was told of goes with the records of a later answer."""
    state: FetchState | None = x.state
    session = state.session if state is not None else None
    session_id = session.session_id if session is not None else 0
    top = fetch.top(x.version, throttle_ms, errors.NONE, session_id, 0)
    return top + fetch.tail(x.version)


def whole_error(version: int, code: int) -> list[Piece]:
    """The answer to a request that is refused as a whole."""
    return [fetch.top(version, 0, code, 0, 0) + fetch.tail(version)]
