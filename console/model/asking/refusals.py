"""Maps errors of a broker or librdkafka to a Failure with a remedy."""

from typing import TYPE_CHECKING, Final

from console.model.asking.failure import UNREACHABLE, Failure

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_UNREACHABLE_NAMES: Final = frozenset(
    (
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "_DESTROY_BROKER",
        "_TIMED_OUT",
        "_RESOLVE",
        "_MSG_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "REQUEST_TIMED_OUT",
        "NETWORK_EXCEPTION",
        "BROKER_NOT_AVAILABLE",
    )
)
_HINTS: Final = {
    "TOPIC_ALREADY_EXISTS": "add --if-not-exists to accept an existing topic",
    "UNKNOWN_TOPIC_OR_PARTITION": "penstock topic list shows the topics",
    "OFFSET_OUT_OF_RANGE": "penstock topic describe shows first and next offset of each partition",
    "INVALID_CONFIG": "penstock config describe KEY explains a setting",
    "INVALID_REPLICATION_FACTOR": "penstock cluster status shows the nodes",
    "MESSAGE_TOO_LARGE": "max.message.bytes of the topic holds for a whole batch: raise it, or make"
    " batches smaller with -X batch.size=BYTES; one record above 1 MB needs -X"
    " message.max.bytes=BYTES, too",
}
_AGAIN: Final = "try again, or give it longer with --timeout SECONDS"


def name_of_code(code: int) -> str:
    """Kafka's name of an error code; the number as text when we have no name for it."""
    from appliance.base import errors

    for name, known in vars(errors).items():
        if known == code and name.isupper():
            return name
    return str(code)


def failure_of(error: "KafkaError") -> Failure:
    """The Failure for an error of a broker or librdkafka."""
    name = _name(error)
    text = error.str() or name
    if name in _UNREACHABLE_NAMES:
        return Failure(text, _AGAIN, code=UNREACHABLE, name=name, kafka_code=error.code())
    return Failure(text, _HINTS.get(name, ""), name=name, kafka_code=error.code())


def check(code: int, message: str | None, about: str) -> None:
    """Raises Failure for an error code in an answer. message: the broker's reason, None without."""
    if code:
        name = name_of_code(code)
        hint = _HINTS.get(name, "")
        raise Failure(message or f"{about}: {name}", hint, name=name, kafka_code=code)


def no_answer(server: str) -> Failure:
    """A broker that took too long."""
    return Failure(
        f"{server} did not answer in time",
        _AGAIN,
        where=server,
        code=UNREACHABLE,
        name="_TIMED_OUT",
    )


def _name(error: "KafkaError") -> str:
    """Kafka's name of the error; librdkafka shortens some. Its own errors begin with `_`."""
    name = name_of_code(error.code())
    return str(error.name()) if name == str(error.code()) else name
