"""Which partition of `__transaction_state` is asked what, and one answer out of several.

Pure functions for the network process. What names one transactional id goes to one partition as it
came; DescribeTransactions and the brokers' AddPartitionsToTxn are split, ListTransactions goes to
all, and the answers are spliced.
"""

from collections.abc import Generator, Sequence
from typing import Any, Final

from appliance.base.errors import MalformedRequest
from appliance.coordinators.runtime import routing
from appliance.coordinators.runtime.kind import Part, RowsOf, partition_of
from appliance.coordinators.runtime.request_parts import ROWS
from appliance.coordinators.runtime.routing import first_text
from appliance.coordinators.transactions.partitions import OF_BROKERS
from appliance.wire import messages
from appliance.wire.varint import read_uvarint, skip_tagged_fields, uvarint

INIT_PRODUCER_ID: Final = 22
ADD_PARTITIONS: Final = 24
ADD_OFFSETS: Final = 25
END: Final = 26
DESCRIBE: Final = 65
LIST: Final = 66

_CODE_AT: Final = 4  # behind the throttle time
_CODE_END: Final = _CODE_AT + 2
_PRODUCER: Final = 8 + 2 + 1  # bytes of id, epoch and verify_only
_INDEX: Final = 4


def rows(key: int, version: int) -> RowsOf | None:
    """Where a request has rows that may be decided in parts."""
    if key == DESCRIBE:
        return RowsOf(("transactional_ids",), _id, _CODE_AT, is_once=True)
    if key == ADD_PARTITIONS and version >= OF_BROKERS:
        return RowsOf(("transactions",), _id, _CODE_END, _CODE_AT)
    return None


def parts(key: int, version: int, body: bytes, partitions: int) -> list[Part]:
    """Which partitions are asked what. Raises MalformedRequest."""
    if key == LIST:
        return [(partition, body) for partition in range(partitions)]
    if key == DESCRIBE:
        return _split(key, version, body, "transactional_ids", partitions)
    if key == ADD_PARTITIONS and version >= OF_BROKERS:
        return _split(key, version, body, "transactions", partitions)
    return [(partition_of(first_text(key, version, body), partitions), body)]


def cut_adding(version: int, body: bytes, partitions: int) -> Generator[None, None, list[Part]]:
    """Steps that split an AddPartitionsToTxn as `parts` does, by its bytes: nothing is made of its
    topics here. Raises MalformedRequest."""
    if version < OF_BROKERS:
        return parts(ADD_PARTITIONS, version, body, partitions)
    found: dict[int, list[bytes]] = {}
    memory, end = memoryview(body), len(body)
    count, at = read_uvarint(memory, 0, end)
    for _ in range(count - 1):
        begin = at
        name, at = _text(memory, at)
        at = yield from _skip_topics(memory, at + _PRODUCER)
        at = skip_tagged_fields(memory, at, end)
        found.setdefault(partition_of(name, partitions), []).append(body[begin:at])
        yield
    rest = body[at:]
    return [
        (where, uvarint(len(several) + 1) + b"".join(several) + rest)
        for where, several in sorted(found.items())
    ] or [(0, body)]


def _skip_topics(memory: memoryview, at: int) -> Generator[None, None, int]:
    """The position behind an array of topics."""
    end = len(memory)
    count, at = read_uvarint(memory, at, end)
    for number in range(1, count):
        size, at = read_uvarint(memory, at, end)
        indexes, at = read_uvarint(memory, at + size - 1, end)
        if not size or not indexes:
            raise MalformedRequest("null for a topic that cannot be null")
        at = skip_tagged_fields(memory, at + _INDEX * (indexes - 1), end)
        if number % ROWS == 0:
            yield
    return at


def _text(memory: memoryview, at: int) -> tuple[str, int]:
    size, at = read_uvarint(memory, at, len(memory))
    end = at + size - 1
    if not at <= end <= len(memory):
        raise MalformedRequest(f"an id of {size - 1} bytes, {len(memory) - at} remain")
    try:
        return str(memory[at:end], "utf-8"), end
    except UnicodeDecodeError as cause:
        raise MalformedRequest(f"the id is not UTF-8: {cause}") from cause


def _split(key: int, version: int, body: bytes, field: str, partitions: int) -> list[Part]:
    request = messages.decode_request(key, version, body)
    return [
        (partition, body if part is request else messages.encode_request(part))
        for partition, part in routing.split(request, field, _id, partitions).items()
    ]


def _id(one: Any) -> str:
    name: str = one if isinstance(one, str) else one.transactional_id
    return name


def splice(key: int, answers: Sequence[bytes]) -> bytes:
    """One encoded answer of those of several partitions: their lists, put together; every version
    that several can answer is flexible.

    Of ListTransactions a partition that failed makes the answer its error, as a part of the
    transactions would look like all of them.
    """
    if key == DESCRIBE:
        return routing.splice(answers, _CODE_AT, flexible=True)
    if key == ADD_PARTITIONS:
        return routing.splice(answers, _CODE_END, flexible=True)
    for answer in answers:
        if answer[_CODE_AT:_CODE_END] != b"\0\0":
            return answer
    return routing.splice(answers, _states_end(answers[0]), flexible=True)


def _states_end(answer: bytes) -> int:
    """Behind the states that were asked for and are none, of which every partition tells alike."""
    memory, end = memoryview(answer), len(answer)
    count, at = read_uvarint(memory, _CODE_END, end)
    for _ in range(count - 1):
        size, at = read_uvarint(memory, at, end)
        at += size - 1
    return at
