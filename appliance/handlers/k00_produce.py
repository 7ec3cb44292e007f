"""Produce, API key 0, versions 3 to 13, and 0 to 2 with penstock.legacy.protocol.

1: the pause of a client over its quota. 2: the log append time. 3: batches of format 2, where there
were message sets (`wire/up_conversion.py`), and a transactional id. 5: log start offset in the
answer. 8: record errors and a message. 9: flexible. 10: who leads, to who asked the wrong node
(KIP-951). 11: errors of transactions. 12: partitions join a transaction implicitly. 13: topic ids.
Without that setting versions 0 to 2 are advertised and refused: old
librdkafka takes the advertised minimum as a sign that it may compress. What transactional batches
need besides: `transactional_produce.py`.
"""

from collections import Counter
from functools import partial
from typing import Final

from appliance.authorization.apis import declared
from appliance.authorization.needs import WRITE_TOPIC
from appliance.base import errors
from appliance.base.ids import INTERNAL_TOPICS
from appliance.config.bounds import PRODUCER_IDS, setting_of
from appliance.handlers import gather
from appliance.handlers.exchange import WORK, Exchange, Handler, Host, Piece, Route, Steps
from appliance.handlers.leaders import NO_TAGS, CurrentLeaders
from appliance.handlers.record_errors import explain
from appliance.handlers.transactional_produce import (
    FLAGS_AT,
    OWN,
    ProduceSteps,
    has_transactional,
)
from appliance.metadata.effective import log_config
from appliance.ring.messages import APPEND, OLD_SET, UNVERIFIED, Message
from appliance.ring.slots import read_unverified, unpack_appended
from appliance.wire import produce
from appliance.wire.batch_header import CODEC_MASK, HEADER_SIZE, MAGIC, MAGIC_AT, TRANSACTIONAL_BIT
from appliance.wire.compression import ZSTD
from appliance.wire.messages import elements_max
from appliance.wire.produce import Batch, ManyBatches, PartitionAnswer, ProduceRequest

_MESSAGES = {
    errors.NOT_LEADER_OR_FOLLOWER: "another node leads this partition, or its I/O process here is"
    " starting again; retry",
    errors.REQUEST_TIMED_OUT: "not durable within timeout.ms; it may still become so",
    errors.UNKNOWN_TOPIC_OR_PARTITION: "this server does not host this topic-partition",
    errors.INVALID_REQUIRED_ACKS: "acks must be -1 (all), 0 or 1",
    errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "not this producer's transaction to write in",
    errors.INVALID_PRODUCER_ID_MAPPING: "Transactional records contained more than one producer ID",
    errors.INVALID_TXN_STATE: "the producer's transaction is open here; commit or abort it first",
    errors.INVALID_TOPIC_EXCEPTION: "an internal topic is written by the appliance alone",
    errors.UNSUPPORTED_COMPRESSION_TYPE: "zstd needs Produce version 7 or later; use a newer client"
    " or another compression.type",
    errors.KAFKA_STORAGE_ERROR: "the partition's storage is offline or short of space; see the log",
    errors.POLICY_VIOLATION: f"so many producers are remembered here: {setting_of(PRODUCER_IDS)}",
}

_PACE: Final = OWN + 3
"""The index by which a long request waits to ask for more."""
PACE_NS: Final = 100_000_000
"""How long it waits for answers before."""


def begin_produce(host: Host, x: Exchange) -> None:
    """Asks every partition; over several turns where there are many."""
    try:
        request = produce.parse(host.memory, x.position, x.end, x.version, produce.SLICE)
    except ManyBatches:
        host.work_in_line(x, _parse_in_turns(host, x), partial(_begin_long, host, x))
        return
    answers: list[PartitionAnswer | None] = [None] * len(request.batches)
    step: ProduceSteps | None = None
    for _, _, position, length in request.batches:
        if (
            length >= HEADER_SIZE
            and host.memory[position + FLAGS_AT] & TRANSACTIONAL_BIT
            and host.memory[position + MAGIC_AT] == MAGIC
        ):
            step = ProduceSteps(host, x.version, request)
            break
    x.state = (request, answers, step, None)
    x.silent = request.acks == 0
    x.deadline_ns = host.now_ns + request.timeout_ms * 1_000_000
    whole = 0 if step is None else step.refusal(host, x)
    _ask_batches(host, x, 0, len(request.batches), whole)
    if step is not None and step.routes:
        step.begin_batches(host, x)
    if not x.pending:
        _finish(host, x)


def _ask_batches(host: Host, x: Exchange, first: int, last: int, whole: int) -> None:
    """Asks for these batches, or refuses them. whole: the error code of the request."""
    request, answers, step, _ = x.state
    acks = request.acks
    refused = 0 if -1 <= acks <= 1 else errors.INVALID_REQUIRED_ACKS
    by_id = x.version >= produce.FIRST_TOPIC_ID
    everything = x.rights.everything
    overtaking = host.overtaking
    before_zstd = produce.FIRST_BATCHES <= x.version < produce.FIRST_ZSTD
    flags = OLD_SET if x.version < produce.FIRST_BATCHES else 0
    batches = request.batches
    for index in range(first, last):
        batch = batches[index]
        topic, partition, position, length = batch
        route = host.route(topic, partition, by_id)
        code = whole or refused
        if not (everything or whole):
            code = gather.refusal(host, x, WRITE_TOPIC, topic, by_id) or refused
        if code or route is None or length <= 0 or route.topic in INTERNAL_TOPICS:
            code = code or _why_not(host, batch, route, x.version)
            answers[index] = _failed(code, request, batch)
        elif before_zstd and _is_zstd(host, batch):
            answers[index] = _failed(errors.UNSUPPORTED_COMPRESSION_TYPE, request, batch)
        elif overtaking.any and overtaking.would(host.memory, batch, host.now_ns):
            answers[index] = _failed(errors.NOT_LEADER_OR_FOLLOWER, request, batch)
        elif step is None:
            host.ask_home(x, index, route, APPEND, flags, position, 0, length, acks)
        else:
            step.routes[index] = route


def _is_zstd(host: Host, batch: Batch) -> bool:
    """True for records in zstd, which clients of these versions cannot ask for (KIP-110)."""
    position, length = batch.position, batch.length
    return (
        length >= HEADER_SIZE
        and host.memory[position + FLAGS_AT] & CODEC_MASK == ZSTD
        and host.memory[position + MAGIC_AT] == MAGIC
    )


def _why_not(host: Host, batch: Batch, route: Route | None, version: int) -> int:
    """The error code; NONE for an empty message set, which appends nothing."""
    if route is None:
        by_id = version >= produce.FIRST_TOPIC_ID
        return gather.absent(host, batch.topic, batch.partition, by_id)
    if route.topic in INTERNAL_TOPICS:
        return errors.INVALID_TOPIC_EXCEPTION
    is_empty_set = version < produce.FIRST_BATCHES and not batch.length
    return errors.NONE if is_empty_set else errors.INVALID_RECORD


def _failed(
    code: int, request: ProduceRequest, batch: Batch, log_start: int = -1
) -> PartitionAnswer:
    message = _MESSAGES.get(code)
    if code == errors.MESSAGE_TOO_LARGE:
        message = (
            f"the batch has {batch.length} bytes, more than max.message.bytes of topic"
            f" {batch.topic.decode(errors='replace')}; raise it with: penstock topic config set"
        )
    return PartitionAnswer(code, -1, -1, log_start, message)


_EXPLAINED = (errors.INVALID_RECORD, errors.INVALID_TIMESTAMP, errors.CORRUPT_MESSAGE)


_WITHOUT_LOG_START = (errors.CORRUPT_MESSAGE, errors.MESSAGE_TOO_LARGE)
"""What Kafka finds before it looks at the log."""


def _refused(
    host: Host, x: Exchange, code: int, request: ProduceRequest, batch: Batch, log_start: int
) -> PartitionAnswer:
    """The answer for a batch that the partition's ioproc refused; explains it from its bytes, which
    are still there.
    """
    if code in _WITHOUT_LOG_START:
        log_start = -1
    route = host.route(batch.topic, batch.partition, x.version >= produce.FIRST_TOPIC_ID)
    if code not in _EXPLAINED or x.version < produce.FIRST_RECORD_ERRORS or route is None:
        return _failed(code, request, batch, log_start)
    rules = log_config(host.image, host.config, route.topic)
    view = host.memory[batch.position : batch.position + batch.length]
    message, found = explain(view, code, rules, route.topic, route.partition)
    return PartitionAnswer(code, -1, -1, log_start, message, found)


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    """Takes the answer to one batch, or to a question about its transaction."""
    request, answers, step, long = x.state
    if index == _PACE:
        pass
    elif index >= OWN:
        for at, (code, text) in step.take_completion(host, x, index, message, payload).items():
            answers[at] = PartitionAnswer(code, -1, -1, -1, text)
    elif message is None:
        batch = request.batches[index]
        host.overtaking.refused(host.memory, batch, host.now_ns)
        answers[index] = _failed(errors.NOT_LEADER_OR_FOLLOWER, request, batch)
    elif message.flags == 1:
        base, time, log_start, x.taken_ns, x.waits_ns = unpack_appended(message)
        answers[index] = produce.answered((0, base, time, log_start, None, (), NO_TAGS))
    elif message.op == UNVERIFIED:
        step.unverified(x, index, read_unverified(message).guard)
    else:
        batch = request.batches[index]
        log_start = unpack_appended(message)[2]
        answers[index] = _refused(host, x, message.flags - 1, request, batch, log_start)
    if long is not None:
        _continue_long(host, x, long, paced=index == _PACE)
        return
    if step is not None:
        step.continue_batches(host, x)
    if not x.pending and x.answer is None:
        _finish(host, x)


def expire(host: Host, x: Exchange) -> None:
    """Answer what is still open as timed out; the batches may yet be appended, so their bytes stay
    reserved."""
    request, answers, step, long = x.state
    if long is not None and long.is_answering:
        return
    for index, answer in enumerate(answers):
        if answer is None:
            answers[index] = _failed(errors.REQUEST_TIMED_OUT, request, request.batches[index])
    if long is not None:
        _give_up_long(host, x, long)
        return
    _finish(host, x)
    if step is not None:
        step.give_up(host, x)


def _finish(host: Host, x: Exchange) -> None:
    request, answers, _, _ = x.state
    moved = False
    for answer in answers:
        if answer.error:
            host.failed(x, answer.error)
            moved = moved or answer.error == errors.NOT_LEADER_OR_FOLLOWER
    if x.silent:
        host.finish_silently(x, close=any(answer.error for answer in answers))
    elif moved and x.version >= produce.FIRST_LEADER:
        leaders = CurrentLeaders(host, x)
        _add_leaders(x, leaders, 0, len(answers))
        _finish_with_leaders(host, x, produce.encode(request, answers, x.version, 0), leaders)
    else:
        host.finish(x, [produce.encode(request, answers, x.version, 0)])


def _add_leaders(x: Exchange, leaders: CurrentLeaders, first: int, last: int) -> None:
    """Adds the leader to the answer for each of these batches that another node must append."""
    request, answers, _, _ = x.state
    by_id = x.version >= produce.FIRST_TOPIC_ID
    for index in range(first, last):
        answer = answers[index]
        if answer.error == errors.NOT_LEADER_OR_FOLLOWER:
            batch = request.batches[index]
            tags = leaders.of_produce(batch.topic, batch.partition, by_id)
            answers[index] = answer._replace(leader=tags)


def _finish_with_leaders(host: Host, x: Exchange, body: bytes, leaders: CurrentLeaders) -> None:
    """Finishes with the encoded answer and the addresses of the leaders that it names."""
    tags = leaders.endpoints()
    pieces: list[Piece] = [body[:-1] + tags[:1]]  # the time of throttling stands at its end
    if len(tags) > 1:
        pieces.append(tags[1:])
    host.finish(x, pieces)


# Many partitions ----------------------------------------------------------------------------------


class LongProduce:
    """The progress of a request that is asked for in parts. whole: the error code of all of it.
    asked: batches that were asked for or refused. in_line: its transactional batches are begun.
    is_paused: requests behind it wait. is_late: its time is over. is_answering: its answer is
    being made."""

    __slots__ = ("asked", "in_line", "is_answering", "is_late", "is_paused", "whole")

    def __init__(self, whole: int) -> None:
        self.whole = whole
        self.asked = 0
        self.in_line = self.is_paused = self.is_late = self.is_answering = False


def _parse_in_turns(host: Host, x: Exchange) -> Steps:
    most = elements_max(x.handler.key)
    request = yield from produce.parse_in_slices(host.memory, x.position, x.end, x.version, most)
    step: ProduceSteps | None = None
    batches = request.batches
    for at in range(0, len(batches), produce.SLICE):
        if has_transactional(host.memory, batches[at : at + produce.SLICE]):
            step = ProduceSteps(host, x.version, request)
            break
        yield
    whole = 0 if step is None else (yield from step.refusal_in_turns(host, x))
    answers: list[PartitionAnswer | None] = [None] * len(batches)
    x.state = (request, answers, step, LongProduce(whole))
    x.silent = request.acks == 0
    x.deadline_ns = host.now_ns + request.timeout_ms * 1_000_000


def _begin_long(host: Host, x: Exchange) -> None:
    long: LongProduce = x.state[3]
    long.is_paused = True
    host.pause(x)
    _ask_part(host, x, long)


def _ask_part(host: Host, x: Exchange, long: LongProduce) -> None:
    """Asks for the next batches. The rest follows when they are answered, or after PACE_NS where
    that takes long: so a home has few of them in its ring, and no request keeps its place in line
    by waiting for replicas."""
    request, _, step, _ = x.state
    first, count = long.asked, len(request.batches)
    long.asked = min(count, first + produce.SLICE)
    _ask_batches(host, x, first, long.asked, long.whole)
    if not x.pending:
        host.work(x, iter((None,)), partial(_go_on_long, host, x, long))
    elif long.asked < count:
        host.later(x, _PACE, PACE_NS)
    elif step is None:
        _end_asking(host, x, long)


def _continue_long(host: Host, x: Exchange, long: LongProduce, *, paced: bool) -> None:
    """Something has come."""
    request, _, step, _ = x.state
    if long.in_line:
        step.continue_batches(host, x)
    pending = x.pending
    if long.asked < len(request.batches) and not paced and len(pending) == 1 and _PACE in pending:
        del pending[_PACE]
        paced = True
    is_open = x.answer is None and not long.is_answering and WORK not in pending
    if is_open and (paced or not pending):
        _go_on_long(host, x, long)


def _go_on_long(host: Host, x: Exchange, long: LongProduce) -> None:
    """Asks for more, or answers when there is nothing more to ask for."""
    request, _, step, _ = x.state
    if long.is_late:
        _finish_long(host, x, long)
    elif long.asked < len(request.batches):
        _ask_part(host, x, long)
    elif step is not None and step.routes and not long.in_line:
        long.in_line = True
        step.begin_batches(host, x)
    elif not x.pending:
        _finish_long(host, x, long)


def _end_asking(host: Host, x: Exchange, long: LongProduce) -> None:
    """Others may go on, on its connection and in line."""
    if long.is_paused:
        long.is_paused = False
        host.unpause(x)
        host.leave_line(x)


def _give_up_long(host: Host, x: Exchange, long: LongProduce) -> None:
    """Answers it now, without what was not asked for."""
    request, _, step, _ = x.state
    long.asked, long.is_late = len(request.batches), True
    x.pending.pop(_PACE, None)
    if long.in_line:
        step.give_up(host, x)
    if WORK not in x.pending:
        _finish_long(host, x, long)


def _finish_long(host: Host, x: Exchange, long: LongProduce) -> None:
    """Answers over several turns."""
    long.is_answering = True
    codes: Counter[int] = Counter()
    leaders = CurrentLeaders(host, x) if x.version >= produce.FIRST_LEADER else None
    made: list[bytes] = []

    def finish_made() -> None:
        _end_asking(host, x, long)
        for code, times in codes.items():
            host.failed(x, code, times)
        if x.silent:
            host.finish_silently(x, close=bool(codes))
        elif leaders is not None and codes[errors.NOT_LEADER_OR_FOLLOWER]:
            _finish_with_leaders(host, x, made[0], leaders)
        else:
            host.finish(x, [made[0]])

    host.work(x, _encode_long(x, codes, leaders, made), finish_made)


def _encode_long(
    x: Exchange, codes: "Counter[int]", leaders: CurrentLeaders | None, made: list[bytes]
) -> Steps:
    """Steps that count the error codes and add the encoded answer to `made`."""
    request, answers, _, _ = x.state
    for first in range(0, len(answers), produce.SLICE):
        last = min(len(answers), first + produce.SLICE)
        for answer in answers[first:last]:
            if answer.error:
                codes[answer.error] += 1
        if leaders is not None:
            _add_leaders(x, leaders, first, last)
        yield
    if not x.silent:
        made.append((yield from produce.encode_in_slices(request, answers, x.version, 0)))


HANDLER: Final[Handler] = Handler(*declared(0), begin_produce, complete, expire, keeps_body=True)
