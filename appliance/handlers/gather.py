"""The common shape of requests that ask one thing of every partition they name (ListOffsets,
DeleteRecords, …).

A plan turns each (topic, partition) of the decoded request into one ring operation or an immediate
answer; when all completions are in, the answers are encoded grouped by topic as they were asked. A
partition that is asked the same twice is asked once, and answered as often as it was named, as
Kafka does. Many partitions are asked and answered in several turns.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, Final, TypeVar

from appliance.authorization.needs import Need
from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.handlers.exchange import Exchange, Host, Piece, Steps
from appliance.handlers.paced import PACE, PacedAsking
from appliance.metadata.parts import PartitionImage
from appliance.ring.messages import Message
from appliance.wire import error_codes, messages
from appliance.wire.plain import encode
from appliance.wire.plain_sliced import encode_in_slices

Values = dict[str, Any]
T = TypeVar("T")

MANY: Final = 256
"""Rows that are looked at between two stops of `Host.work`, some hundred µs."""


@dataclass(slots=True)
class GatheredPartition:
    """One partition: its index, what is asked of it, and in the end its answer. value: a timestamp,
    offset or epoch. epoch: the current leader epoch that the client knows, -1: none. before:
    what came before the completion, in pieces. first: the one that asks the same."""

    partition: int
    value: int
    epoch: int
    flags: int
    answer: Values | None = None
    before: list[bytes] | None = None
    first: "GatheredPartition | None" = None


@dataclass(slots=True)
class Gathering:
    """topics, flat: the partitions, by topic and in the order of their indexes in completions.
    anywhere: a replica answers, too, that another node leads."""

    op: int
    need: Need  # of each topic
    failed: Callable[[GatheredPartition, int], Values]  # the answer for an error code
    answered: Callable[[GatheredPartition, Message], Values]  # the answer for a completion
    topic_field: str
    reply: Callable[[Host, Exchange, Values, int], None] | None = None  # another than ours
    anywhere: bool = False
    topics: list[tuple[str, list[GatheredPartition]]] = field(default_factory=list)
    flat: list[GatheredPartition] = field(default_factory=list)
    paced: PacedAsking | None = None  # partitions are asked over several turns
    late: bool = False  # the time to answer is over
    finishing: bool = False  # the answer is being made, over several turns

    def add_topic(self, topic: str) -> list[GatheredPartition]:
        """The list of a topic's partitions, empty."""
        rows: list[GatheredPartition] = []
        self.topics.append((topic, rows))
        return rows

    def add_rows(self, topic: str, made: Iterable[GatheredPartition]) -> Steps:
        """Adds partitions of one topic as they are made, with a stop after MANY in all."""
        rows, flat = self.add_topic(topic), self.flat
        for asked in made:
            rows.append(asked)
            flat.append(asked)
            if len(flat) % MANY == 0:
                yield


def decode(host: Host, x: Exchange) -> Any:
    """The request of this exchange, decoded; raises MalformedRequest."""
    if x.decoded is not None:
        request, x.decoded = x.decoded, None
        return request
    return messages.decode_request(x.handler.key, x.version, host.memory[x.position : x.end])


def reply_in_turns(host: Host, x: Exchange, values: Values, count: int) -> None:
    """As `reply`, over several turns where the response has many rows. count: of them."""
    if count <= MANY:
        reply(host, x, values)
        return
    made: list[Piece] = []
    codes: Counter[int] = Counter()

    def finish_made() -> None:
        for code, times in codes.items():
            host.failed(x, code, times)
        host.finish(x, made)

    host.work(x, _encode(x, values, made, codes), finish_made)


def _encode(x: Exchange, values: Values, made: list[Piece], codes: "Counter[int]") -> Steps:
    key, version = x.handler.key, x.version
    codes.update((yield from error_codes.told_in_slices(key, version, values)))
    yield
    made.append((yield from encode_in_slices(key, version, values)))


def reply(host: Host, x: Exchange, values: Values) -> None:
    """Finish with a response built from plain values; its errors are counted."""
    key, version = x.handler.key, x.version
    for code in error_codes.collect_codes(key, version, values):
        host.failed(x, code)
    host.finish(x, [encode(key, version, values)])


def in_turns(host: Host, x: Exchange, count: int, steps: Steps, then: Callable[[], None]) -> None:
    """Do `steps` for so many rows: at once where they are few, else over several turns; then
    `then`."""
    if count > MANY:
        host.work(x, steps, then)
    else:
        for _ in steps:
            pass
        then()


def in_slices(host: Host, x: Exchange, steps: Steps, then: Callable[[], None]) -> None:
    """Do the first of `steps` at once, and what is left over several turns; then `then`."""
    for _ in steps:
        host.work(x, steps, then)
        return
    then()


def rows_of(things: Iterable[T], do: Callable[[T], object], many: int = MANY) -> Steps:
    """Does this with each of them, with a stop after so many."""
    for number, one in enumerate(things, 1):
        do(one)
        if number % many == 0:
            yield


def partition_of(host: Host, topic: bytes, partition: int, by_id: bool) -> PartitionImage | None:
    """A partition in the image; `topic` is a name, or an id when by_id."""
    image = host.image
    if by_id:
        found = image.topics_by_id.get(topic)
    else:
        found = image.topics_by_name.get(topic.decode("utf-8", "replace"))
    if found is None or not 0 <= partition < len(found.partitions):
        return None
    return found.partitions[partition]


def absent(host: Host, topic: bytes, partition: int, by_id: bool, epoch: int = -1) -> int:
    """The error code for a partition without a route: there is none, or another node leads it.
    epoch: the client's leader epoch, which Kafka compares first where it has a replica."""
    found = partition_of(host, topic, partition, by_id)
    if found is None or found.leader == host.node_id:  # of its own, which has no row any more
        if by_id and topic not in host.image.topics_by_id:
            return errors.UNKNOWN_TOPIC_ID
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    if epoch >= 0 and host.node_id in found.replicas:
        if epoch < found.leader_epoch:
            return errors.FENCED_LEADER_EPOCH
        if epoch > found.leader_epoch:
            return errors.UNKNOWN_LEADER_EPOCH
    return errors.NOT_LEADER_OR_FOLLOWER


def refusal(host: Host, x: Exchange, need: Need, topic: bytes, by_id: bool) -> int:
    """The error code for who may not do this with the topic, or NONE. An id that no topic has is
    nobody's; of a name it is not told whether there is a topic."""
    if x.rights.everything:
        return errors.NONE
    if not by_id:
        return x.rights.refusal(need, topic.decode(errors="replace"))
    image = host.image.topics_by_id.get(topic)
    return errors.NONE if image is None else x.rights.refusal(need, image.name)


def ask_partitions(host: Host, x: Exchange, gathering: Gathering, count: int, plan: Steps) -> None:
    """Ask every partition; finishes when there is nothing to wait for. plan: adds the partitions of
    the request to the gathering, `count` or fewer."""
    x.state = gathering
    parts = _ask_in_parts(host, x, gathering)
    if count > MANY:
        gathering.paced = PacedAsking(host, x, parts, lambda: _end_asking(host, x, gathering))
        gathering.paced.begin_in_line(plan)
        return
    for steps in (plan, parts):
        for _ in steps:
            pass
    _end_asking(host, x, gathering)


def _end_asking(host: Host, x: Exchange, gathering: Gathering) -> None:
    if gathering.late or not x.pending:
        _finish(host, x)


def _ask_in_parts(host: Host, x: Exchange, gathering: Gathering) -> Steps:
    """Asks every partition, with a stop after MANY."""
    index = 0
    for topic, rows in gathering.topics:
        refused = errors.NONE
        if not x.rights.everything:
            refused = x.rights.refusal(gathering.need, topic)
        name = topic.encode()
        known: dict[tuple[int, int, int], GatheredPartition] = {}
        for asked in rows:
            if gathering.late:
                return
            if refused:
                asked.answer = gathering.failed(asked, refused)
            elif asked.answer is None:
                first = known.setdefault((asked.partition, asked.value, asked.epoch), asked)
                if first is asked:
                    _ask_one(host, x, gathering, name, asked, index)
                else:
                    asked.first = first
            index += 1
            if index % MANY == 0:
                yield


def _ask_one(
    host: Host, x: Exchange, gathering: Gathering, name: bytes, asked: GatheredPartition, index: int
) -> None:
    route = host.route(name, asked.partition, by_id=False)
    if route is None and gathering.anywhere:
        route = host.replica(name, asked.partition, by_id=False)
    if route is None:
        code = absent(host, name, asked.partition, False, asked.epoch)
        asked.answer = gathering.failed(asked, code)
    else:
        host.ask_home(x, index, route, gathering.op, asked.flags, asked.value, asked.epoch, 0, 0)


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    gathering: Gathering = x.state
    if x.answer is not None:
        return  # too late
    if index != PACE:
        _take_answer(gathering, index, message)
    if gathering.paced is None or not gathering.paced.take_completion(index):
        _finish_if_complete(host, x)


def _take_answer(gathering: Gathering, index: int, message: Message | None) -> None:
    asked = gathering.flat[index]
    if message is None:
        asked.answer = gathering.failed(asked, errors.NOT_LEADER_OR_FOLLOWER)
    elif message.flags != 1:
        asked.answer = gathering.failed(asked, message.flags - 1)
    else:
        asked.answer = gathering.answered(asked, message)


def expire(host: Host, x: Exchange) -> None:
    """Answer without those that have not answered in time; what they were asked may yet be done."""
    gathering: Gathering | None = x.state
    if gathering is None or gathering.finishing:
        return  # it is not decoded yet, or nearly answered
    gathering.late = True
    if gathering.paced is not None and gathering.paced.is_asking:
        gathering.paced.give_up()
    else:
        _finish(host, x)


def _finish_if_complete(host: Host, x: Exchange) -> None:
    if not x.pending and x.answer is None:
        _finish(host, x)


def _finish(host: Host, x: Exchange) -> None:
    gathering: Gathering = x.state
    gathering.finishing = True
    topics: list[Values] = []
    tell, count = gathering.reply or reply_in_turns, len(gathering.flat)
    in_turns(
        host,
        x,
        count,
        _collect(gathering, topics),
        lambda: tell(host, x, {"throttle_time": 0, "topics": topics}, count),
    )


def _collect(gathering: Gathering, topics: list[Values]) -> Steps:
    """The topics of the answer, with the answers of their partitions."""
    count = 0
    for topic, rows in gathering.topics:
        answers: list[Values] = []
        topics.append({gathering.topic_field: topic, "partitions": answers})
        for asked in rows:
            if asked.answer is None and asked.first is not None:
                asked.answer = asked.first.answer
            if asked.answer is None:
                assert gathering.late, "everybody has answered"
                asked.answer = gathering.failed(asked, errors.REQUEST_TIMED_OUT)
            answers.append(asked.answer)
            count += 1
            if count % MANY == 0:
                yield
