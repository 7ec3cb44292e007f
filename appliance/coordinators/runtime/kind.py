"""The declaration of one kind of coordinator to the rest of the appliance.

Callers: the network process (which partition is asked what, whose answers make one),
FindCoordinator and the I/O process (which topic, which requests, which shard).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple

from appliance.base import errors
from appliance.base.level import LevelTime
from appliance.config.broker import BrokerConfig
from appliance.config.internal_topics import InternalTopic
from appliance.coordinators.runtime.call import Call, expiry_time
from appliance.coordinators.runtime.room import Beside
from appliance.coordinators.runtime.shard import Shard, Values
from appliance.metadata.image import MetadataImage

_LARGEST: Final = (1 << 31) - 1
LONG: Final = 1 << 13
"""Bytes of a request from which on it is decided in parts, or over several turns."""

Part = tuple[int, bytes]
"""A partition, and the encoded body of what it is asked."""


Split = Callable[[int, bytes, int], Generator[None, None, list[Part]]]
"""(version, body, partitions of the topic) → steps; they raise MalformedRequest."""


class RowsOf(NamedTuple):
    """Where a request of one API has rows that are independent of each other (`request_parts.py`).

    path: the fields of its arrays from the outside in; the elements of the last one are the rows.
    name: the coordinated thing that an outer element belongs to; None: the request names one for
    all rows. head: bytes of an answer before its list. code_at: where an error code for the whole
    answer is in the head, -1: it has none. is_once: what is named again is not told again. split:
    steps that give the parts of an encoded request, where it need not be decoded for that."""

    path: tuple[str, ...]
    name: Callable[[Any], str] | None
    head: int
    code_at: int = -1
    is_once: bool = False
    split: "Split | None" = None


class CoordinatorPartition(NamedTuple):
    """One partition of the topic. partitions: how many the topic has. epoch: in which it is led."""

    partition: int
    partitions: int
    epoch: int


class Lent(NamedTuple):
    """The services of the process that a shard may use. new_id: gives 16 random bytes.
    take_producer_id: gives an id that no producer had, or None while one has to be asked for.
    believed: by what time (ms) things are old at this wall-clock time (`base.retention_clock`).
    time: level time, looked at in every turn. processes: that share the node's bounds. beside:
    gives all shards of the kind in this process.
    """

    new_id: Callable[[], bytes]
    take_producer_id: Callable[[], int | None]
    believed: Callable[[int], int] = expiry_time
    time: LevelTime = LevelTime()  # one that nobody looks at is the wall clock's
    processes: int = 1
    beside: Beside = tuple


class Kind(ABC):
    """KEY_TYPE: its number in FindCoordinator. TOPIC: what holds its records. APIS: the keys of the
    requests that it answers. LIST: the one that asks for all that is coordinated here. ADDING: the
    versions of those that write within a transaction (with producer_id and producer_epoch) from
    which on they add their partition to it (KIP-890). PATIENCE: the setting that says for how long
    (ms) an answer waits for its records to be committed, "": for ever."""

    KEY_TYPE: ClassVar[int]
    TOPIC: ClassVar[InternalTopic]
    APIS: ClassVar[frozenset[int]]
    LIST: ClassVar[int]
    ADDING: ClassVar[Mapping[int, int]] = {}
    PATIENCE: ClassVar[str] = ""

    @abstractmethod
    def grows(self, call: Call, request: Any) -> bool:
        """True if the request makes the log larger for good: a full disk refuses it."""

    @abstractmethod
    def shard(
        self,
        place: CoordinatorPartition,
        config: BrokerConfig,
        image: MetadataImage,
        lent: Lent,
    ) -> Shard[Any]:
        """The shard of a partition of the topic, for the leader epoch that it is led in now."""

    def rows(self, key: int, version: int) -> RowsOf | None:
        """Where a request has rows that may be decided in parts; None: it is decided as a whole."""
        return None

    def is_whole(self, key: int) -> bool:
        """True if a long request is prepared over several turns and then decided as a whole."""
        return False

    def takes_turns(self, key: int) -> bool:
        """True if a long request is decoded over several turns before a shard decides it."""
        return key == self.LIST or self.is_whole(key)

    def cut_whole(
        self, version: int, body: bytes, partitions: int
    ) -> Generator[None, None, list[Part]]:
        """Steps that give the `parts` of such a request. Raises MalformedRequest."""
        raise AssertionError("no request is decided as a whole")

    @abstractmethod
    def parts(self, key: int, version: int, body: bytes, partitions: int) -> list[Part]:
        """Which partitions are asked what of a request. Raises MalformedRequest."""

    @abstractmethod
    def splice(self, key: int, version: int, answers: Sequence[bytes]) -> bytes:
        """One encoded answer of those of several partitions, in the order of `parts`."""

    @abstractmethod
    def unserved(
        self, call: Call, request: Any, partition: int, partitions: int, *, is_led: bool = False
    ) -> Values:
        """The answer for a partition without a coordinator in service. partitions 0: there is no
        topic yet. is_led: this node leads the partition and its I/O process restarts, so clients
        ask here again (`unserved_code`).
        """


def unserved_code(*, is_led: bool) -> int:
    """Apache Kafka's error while a coordinator loads, or where another node is the coordinator.
    FindCoordinator would name this node again, so who is led here is not sent to look for it."""
    return errors.COORDINATOR_LOAD_IN_PROGRESS if is_led else errors.NOT_COORDINATOR


@lru_cache(maxsize=1 << 11)  # clients choose the keys, of up to 32 KB each
def partition_of(key: str, partitions: int) -> int:
    """Kafka's rule: Java's String.hashCode (of UTF-16 units) without its sign, modulo the count; of
    the one that has no positive counterpart 0."""
    value = 0
    encoded = key.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(encoded), 2):
        value = (value * 31 + (encoded[at] << 8 | encoded[at + 1])) & 0xFFFFFFFF
    if value > _LARGEST:
        value = -value & _LARGEST
    return value % partitions
