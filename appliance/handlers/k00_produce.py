"""Produce, API key 0, versions 3 to 13.

5: log start offset in the answer. 8: record errors and a message. 9: flexible. 10: who leads, to
who asked the wrong node (KIP-951). 11: errors of transactions. 12: partitions join a transaction
implicitly. 13: topic ids. Versions 0 to 2 are advertised and refused: old librdkafka takes the
advertised minimum as a sign that it may compress. What transactional batches need besides:
`transactional_produce.py`.
"""

from typing import Final

from appliance.authorization.apis import declared
from appliance.authorization.needs import WRITE_TOPIC
from appliance.base import errors
from appliance.base.ids import INTERNAL_TOPICS
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, Handler, Host, Piece, Route
from appliance.handlers.leaders import NO_TAGS, CurrentLeaders
from appliance.handlers.record_errors import explain
from appliance.handlers.transactional_produce import FLAGS_AT, OWN, ProduceSteps
from appliance.metadata.effective import log_config
from appliance.ring.messages import APPEND, UNVERIFIED, Message
from appliance.wire import produce
from appliance.wire.batch_header import CODEC_MASK, HEADER_SIZE, TRANSACTIONAL_BIT
from appliance.wire.compression import ZSTD
from appliance.wire.produce import Batch, PartitionAnswer, ProduceRequest

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
}


def begin(host: Host, x: Exchange) -> None:
    request = produce.parse(host.memory, x.position, x.end, x.version)
    acks = request.acks
    answers: list[PartitionAnswer | None] = [None] * len(request.batches)
    step: ProduceSteps | None = None
    for _, _, position, length in request.batches:
        if length >= HEADER_SIZE and host.memory[position + FLAGS_AT] & TRANSACTIONAL_BIT:
            step = ProduceSteps(host, x.version, request)
            break
    x.state = (request, answers, step)
    x.silent = acks == 0
    x.deadline_ns = host.now_ns + request.timeout_ms * 1_000_000
    whole = 0 if step is None else step.refusal(host, x)
    refused = 0 if -1 <= acks <= 1 else errors.INVALID_REQUIRED_ACKS
    by_id = x.version >= produce.FIRST_TOPIC_ID
    everything = x.rights.everything
    overtaking = host.overtaking
    before_zstd = x.version < produce.FIRST_ZSTD
    for index, batch in enumerate(request.batches):
        topic, partition, position, length = batch
        route = host.route(topic, partition, by_id)
        code = whole or refused
        if not (everything or whole):
            code = gather.refusal(host, x, WRITE_TOPIC, topic, by_id) or refused
        if code or route is None or length <= 0 or route.topic in INTERNAL_TOPICS:
            code = code or _why_not(host, batch, route, by_id)
            answers[index] = _failed(code, request, batch)
        elif before_zstd and _is_zstd(host, batch):
            answers[index] = _failed(errors.UNSUPPORTED_COMPRESSION_TYPE, request, batch)
        elif overtaking.any and overtaking.would(host.memory, batch, host.now_ns):
            answers[index] = _failed(errors.NOT_LEADER_OR_FOLLOWER, request, batch)
        elif step is None:
            host.ask(x, index, route, APPEND, 0, position, 0, length, acks)
        else:
            step.routes[index] = route
    if step is not None and step.routes:
        step.begin(host, x)
    if not x.pending:
        _finish(host, x)


def _is_zstd(host: Host, batch: Batch) -> bool:
    """True for records in zstd, which clients of these versions cannot ask for (KIP-110)."""
    position, length = batch.position, batch.length
    return length >= HEADER_SIZE and host.memory[position + FLAGS_AT] & CODEC_MASK == ZSTD


def _why_not(host: Host, batch: Batch, route: Route | None, by_id: bool) -> int:
    if route is None:
        return gather.absent(host, batch.topic, batch.partition, by_id)
    if route.topic in INTERNAL_TOPICS:
        return errors.INVALID_TOPIC_EXCEPTION
    return errors.INVALID_RECORD


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
    request, answers, step = x.state
    if index >= OWN:
        for at, (code, text) in step.hear(host, x, index, message, payload).items():
            answers[at] = PartitionAnswer(code, -1, -1, -1, text)
    elif message is None:
        batch = request.batches[index]
        host.overtaking.refused(host.memory, batch, host.now_ns)
        answers[index] = _failed(errors.NOT_LEADER_OR_FOLLOWER, request, batch)
    elif message.flags == 1:
        answers[index] = produce.answered((0, message.a, message.b, message.c, None, (), NO_TAGS))
    elif message.op == UNVERIFIED:
        step.unverified(x, index, message.a)
    else:
        batch = request.batches[index]
        answers[index] = _refused(host, x, message.flags - 1, request, batch, message.c)
    if step is not None:
        step.go_on(host, x)
    if not x.pending and x.answer is None:
        _finish(host, x)


def expire(host: Host, x: Exchange) -> None:
    """Answer what is still open as timed out; the batches may yet be appended, so their bytes stay
    reserved."""
    request, answers, step = x.state
    for index, answer in enumerate(answers):
        if answer is None:
            answers[index] = _failed(errors.REQUEST_TIMED_OUT, request, request.batches[index])
    _finish(host, x)
    if step is not None:
        step.give_up(host, x)


def _finish(host: Host, x: Exchange) -> None:
    request, answers, _ = x.state
    moved = False
    for answer in answers:
        if answer.error:
            host.failed(x, answer.error)
            moved = moved or answer.error == errors.NOT_LEADER_OR_FOLLOWER
    if x.silent:
        host.finish_silently(x, close=any(answer.error for answer in answers))
    elif moved and x.version >= produce.FIRST_LEADER:
        _finish_with_leaders(host, x)
    else:
        host.finish(x, [produce.encode(request, answers, x.version, 0)])


def _finish_with_leaders(host: Host, x: Exchange) -> None:
    """The answer with who leads what was not appended because of that."""
    request, answers, _ = x.state
    leaders = CurrentLeaders(host, x)
    by_id = x.version >= produce.FIRST_TOPIC_ID
    for index, answer in enumerate(answers):
        if answer.error == errors.NOT_LEADER_OR_FOLLOWER:
            batch = request.batches[index]
            tags = leaders.of_produce(batch.topic, batch.partition, by_id)
            answers[index] = answer._replace(leader=tags)
    body, tags = produce.encode(request, answers, x.version, 0), leaders.endpoints()
    pieces: list[Piece] = [body[:-1] + tags[:1]]  # the time of throttling stands at its end
    if len(tags) > 1:
        pieces.append(tags[1:])
    host.finish(x, pieces)


HANDLER: Final[Handler] = Handler(*declared(0), begin, complete, expire, keeps_body=True)
