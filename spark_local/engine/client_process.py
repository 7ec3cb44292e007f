"""The process in which the runner's Kafka clients live: requests come in through stdin, answers go
out through stdout, and it ends when stdin does.

librdkafka asserts its own invariants and aborts the process when one does not hold. Here that costs
the requests that are on their way; clients.py starts another process. A request is (number, name of
a function of `_FUNCTIONS`, arguments), an answer (number, whether it went well, the result or what
went wrong in words). Requests are worked on side by side, so that none waits for another's timeout.
"""

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from spark_local import states
from spark_local.client_settings import ClientSettings
from spark_local.delivery import Noted
from spark_local.engine.frames import receive, send_frame
from spark_local.losses import TopicState

_THREADS: Final = 16
_TIMEOUT_S: Final = 10.0
_LOOK_S: Final = 0.05
_FLUSH_S: Final = 30.0
_BROKEN: Final = 70  # EX_SOFTWARE of sysexits.h
_QUIET: Final[dict[str, Any]] = {"log_level": 0, "client.id": "penstock-jobs"}

_PASSING: Final = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)
"""Of one connection, of which the client makes another one; or of a group's coordinator, which a
consumer without a group does not need."""

Span = tuple[int, int]
"""(first offset, next offset)"""
Record = tuple[bytes, bytes | None, list[tuple[str, str | bytes | None]]]
"""(value, key, headers)"""


def spans(kafka: ClientSettings, topic: str, limit_s: float = _TIMEOUT_S) -> dict[str, Span] | None:
    """Partition → its offsets; None for a topic that is not there."""
    consumer = _consumer(kafka)
    try:
        return _spans(consumer, topic, limit_s)
    finally:
        consumer.close()


def last_values(kafka: ClientSettings, topic: str, most: int) -> list[bytes] | None:
    """Values of the last records of every partition, `most` in all at most, the newest last; None
    for a topic that is not there. Raises KafkaException, and TimeoutError where a partition does
    not come to its end: a part of them would pass for all."""
    consumer = _consumer(kafka)
    try:
        known = _spans(consumer, topic, _TIMEOUT_S)
        if known is None:
            return None
        places = [
            TopicPartition(topic, int(number), max(low, high - most))
            for number, (low, high) in known.items()
            if high > low
        ]
        consumer.assign(places)
        found: list[tuple[int, bytes]] = []
        ended = 0
        while ended < len(places):
            message = consumer.poll(_TIMEOUT_S)
            if message is None:
                raise TimeoutError(f"_TIMED_OUT: {topic} was not read to its end")
            if (error := message.error()) is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    ended += 1
                elif not error.retriable() and error.code() not in _PASSING:
                    raise KafkaException(error)
            elif (value := message.value()) is not None:
                found.append((message.timestamp()[1], value))
        return [value for _, value in sorted(found, key=lambda pair: pair[0])[-most:]]
    finally:
        consumer.close()


def committed(kafka: ClientSettings, group: str, topics: list[str]) -> list[Noted]:
    """The offsets that a group has committed for partitions of these topics. Waits for a
    transaction that is being ended.
    """
    consumer = _consumer(kafka, **{"group.id": group})
    try:
        places = []
        for topic in topics:
            told = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
            if told.error is not None:  # no partitions are known, which says nothing of offsets
                raise KafkaException(told.error)
            places += [TopicPartition(topic, number) for number in told.partitions]
        found = consumer.committed(places, timeout=_TIMEOUT_S)
    finally:
        consumer.close()
    for place in found:
        if place.error is not None:
            raise KafkaException(place.error)
    return [
        (one.topic, str(one.partition), one.offset, _metadata(one))
        for one in found
        if one.offset >= 0
    ]


def _metadata(place: TopicPartition) -> str:
    """The metadata of a committed offset, "" if it is not UTF-8. Text ending with NUL is whole;
    other text may run on into memory behind it (confluent-kafka 2.15).
    """
    try:
        return place.metadata or ""
    except UnicodeDecodeError:
        return ""


class Positions:
    """Offsets of groups, committed as a consumer does that was assigned its partitions.

    An admin client would ask for the same, but aborts: one whose request to alter a group's offsets
    has timed out in an outage does so when the broker is back (librdkafka 2.16, every time). A
    consumer is kept for each group, because closing one waits for a broker that is away.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[tuple[ClientSettings, str], _Group] = {}

    def commit(
        self,
        kafka: ClientSettings,
        group: str,
        positions: dict[tuple[str, str], int],
        limit_s: float = _TIMEOUT_S,
    ) -> None:
        """(topic, partition) → next offset. Raises KafkaException, TimeoutError."""
        with self._lock:
            known = self._groups.get((kafka, group))
            if known is None:
                known = self._groups[kafka, group] = _Group(kafka, group)
        known.commit(positions, limit_s)


class _Group:
    def __init__(self, kafka: ClientSettings, group: str) -> None:
        self._lock = threading.Lock()
        self._told: list[tuple[KafkaError | None, list[TopicPartition]]] = []
        self._consumer = _consumer(
            kafka, **{"group.id": group, "on_commit": lambda *told: self._told.append(told)}
        )

    def commit(self, positions: dict[tuple[str, str], int], limit_s: float) -> None:
        places = [TopicPartition(t, int(p), at) for (t, p), at in sorted(positions.items())]
        with self._lock:
            self._consumer.poll(0)  # what is told of an earlier commit
            self._told.clear()
            self._consumer.commit(offsets=places, asynchronous=True)
            end = time.monotonic() + limit_s
            while not (mine := [one for one in self._told if _said(one[1]) == _said(places)]):
                if time.monotonic() > end:
                    raise TimeoutError("_TIMED_OUT: the offsets were not taken")
                self._consumer.poll(_LOOK_S)
            error, done = mine[0]
        for refused in (error, *(place.error for place in done)):
            if refused is not None:
                raise KafkaException(refused)


def _said(places: list[TopicPartition]) -> list[tuple[str, int, int]]:
    return [(place.topic, place.partition, place.offset) for place in places]


class Descriptions:
    """Topics as the broker describes them, by an admin client that is kept for each cluster."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[ClientSettings, AdminClient] = {}

    def describe(
        self, kafka: ClientSettings, topics: list[str], *asked: str
    ) -> dict[str, TopicState]:
        """Topic → its id, and where its partitions begin ("first" is asked) and end ("end"). A
        topic that is not there is left out. Raises KafkaException."""
        admin = self._admin(kafka)
        answers = admin.describe_topics(TopicCollection(topics), request_timeout=_TIMEOUT_S)
        found = {}
        for topic, answer in answers.items():
            try:
                told = answer.result(_TIMEOUT_S + 1)
            except KafkaException as refused:
                if refused.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise
            places = [TopicPartition(topic, one.id) for one in told.partitions]
            spans = {
                kind: _offsets(admin, places, _SPECS[kind]) if kind in asked else {}
                for kind in ("first", "end")
            }
            found[topic] = TopicState(_id(told.topic_id), spans["first"], spans["end"])
        return found

    def setting(self, kafka: ClientSettings, topic: str, name: str) -> str | None:
        """The value of a topic's setting; None where it has none of that name, or the user may not
        ask. Raises KafkaException."""
        where = ConfigResource(ResourceType.TOPIC, topic)
        answer = self._admin(kafka).describe_configs([where], request_timeout=_TIMEOUT_S)[where]
        try:
            told = answer.result(_TIMEOUT_S + 1)
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
            return None
        return None if name not in told else str(told[name].value)

    def _admin(self, kafka: ClientSettings) -> AdminClient:
        with self._lock:
            if kafka not in self._clients:
                self._clients[kafka] = AdminClient(_QUIET | kafka.librdkafka())
            return self._clients[kafka]


_SPECS: Final[dict[str, Any]] = {
    "first": OffsetSpec.earliest(),  # type: ignore[no-untyped-call]
    "end": OffsetSpec.latest(),  # type: ignore[no-untyped-call]
}


def _offsets(admin: AdminClient, places: list[TopicPartition], spec: Any) -> dict[str, int]:
    asked = admin.list_offsets(dict.fromkeys(places, spec), request_timeout=_TIMEOUT_S)
    return {
        str(place.partition): answer.result(_TIMEOUT_S + 1).offset
        for place, answer in asked.items()
    }


def _id(told: Any) -> str:
    """A topic's id; "" of a broker that has none."""
    text = "" if told is None else str(told)
    return "" if set(text) <= set("A=") else text


def produce(kafka: ClientSettings, topic: str, records: list[Record]) -> None:
    """Returns when all are acknowledged. Raises TimeoutError when they are not in time."""
    producer = Producer(_QUIET | kafka.librdkafka(enable_idempotence=True))
    for value, key, headers in records:
        producer.produce(topic, value, key=key, headers=headers)
        producer.poll(0)
    if producer.flush(_FLUSH_S):
        producer.purge()
        raise TimeoutError(f"{topic} did not take its records")


class Teller:
    """Writes states of jobs in a thread of its own. While the broker is away only the newest of a
    job is kept: it says more than those before it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending: dict[tuple[ClientSettings, str], dict[str, Any] | None] = {}
        self._writers: dict[ClientSettings, states.States] = {}
        self._ends = False
        self._thread = threading.Thread(target=self._run, name="teller", daemon=True)
        self._thread.start()

    def write_state(self, kafka: ClientSettings, job: str, state: dict[str, Any] | None) -> None:
        """None: the job is no more."""
        with self._changed:
            self._pending.pop((kafka, job), None)
            self._pending[kafka, job] = state
            self._changed.notify()

    def close(self) -> None:
        """Write what is pending; returns when that is acknowledged, or does not work."""
        with self._changed:
            self._ends = True
            self._changed.notify()
        self._thread.join()
        for writer in self._writers.values():
            writer.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._ends)
                if not self._pending:
                    return
                kafka, job = next(iter(self._pending))
                state = self._pending.pop((kafka, job))
            if kafka not in self._writers:
                self._writers[kafka] = states.States(kafka)
            with suppress(KafkaException):  # refused; the next state says more
                self._writers[kafka].write_state(job, state)


def _consumer(kafka: ClientSettings, **more: Any) -> Consumer:
    fixed = {"enable.auto.commit": False, "enable.partition.eof": True}
    return Consumer(_QUIET | kafka.librdkafka(group_id="penstock-jobs") | fixed | more)


def _spans(consumer: Consumer, topic: str, limit_s: float) -> dict[str, Span] | None:
    metadata = consumer.list_topics(topic, timeout=limit_s).topics[topic]
    if metadata.error is not None:
        return None
    return {
        str(number): consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=limit_s)
        for number in metadata.partitions
    }


def _answer(function: Callable[..., Any], words: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, function(*words)
    except KafkaException as refused:
        error = refused.args[0]
        return False, f"{error.name()}: {error.str()}"
    except Exception as problem:  # the runner judges it
        return False, f"{type(problem).__name__}: {problem}"


def _end(bug: BaseException) -> None:
    """A thread cannot go on. The process ends, and clients.py starts another one."""
    os.write(2, "".join(traceback.format_exception(bug)).encode())
    os._exit(_BROKEN)


def main() -> None:
    """Until stdin ends. A Ctrl-C is for the runner, which then closes our stdin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    lock = threading.Lock()
    threading.excepthook = lambda died: _end(died.exc_value or died.exc_type())
    teller = Teller()
    descriptions = Descriptions()
    functions: dict[str, Callable[..., Any]] = {
        "spans": spans,
        "last_values": last_values,
        "create": states.create,
        "committed": committed,
        "commit": Positions().commit,
        "produce": produce,
        "describe": descriptions.describe,
        "setting": descriptions.setting,
        "tell": teller.write_state,
    }

    def work(number: int, name: str, words: tuple[Any, ...]) -> None:
        try:
            answer = _answer(functions[name], words)
            with lock:
                send_frame(answers, (number, *answer))
        except BaseException as bug:  # nobody would be answered by this thread
            _end(bug)

    pool = ThreadPoolExecutor(_THREADS)
    while True:
        try:
            number, name, words = receive(requests)
        except EOFError:
            break
        if name == "tell":  # in their order
            work(number, name, words)
        else:
            pool.submit(work, number, name, words)
    teller.close()
    os._exit(0)  # what still waits for a broker waits for nobody


if __name__ == "__main__":
    main()
