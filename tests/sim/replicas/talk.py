"""What brokers, their controller and their clients say to each other: the fields of Kafka's
messages that decide."""

from typing import NamedTuple


class Key(tuple):
    """Topic id and partition, as a trace shows them."""

    __slots__ = ()

    def __repr__(self):
        return f"p{self[1]}"


class Entry(NamedTuple):
    """One batch of one record, as a log keeps it. who, number: the producer and its sequence;
    who is -1 for what nobody counts."""

    epoch: int
    who: int
    number: int


class Entries(tuple):
    """Some of them, as a trace shows them."""

    __slots__ = ()

    def __repr__(self):
        return f"{len(self)}:{self[0] if self else ''}"


class Register(NamedTuple):
    """previous_epoch: of its registration before, when it still has all that it had; else -1.
    disk: number of the one that it has."""

    broker: int
    incarnation: bytes
    previous_epoch: int
    disk: int


class Registered(NamedTuple):
    """epoch: -1 when it must ask again."""

    epoch: int


def directory(broker, disk):
    """The id of the folder that a broker has on this disk."""
    return b"disk" + bytes([disk]) + broker.to_bytes(11, "big")


class Assign(NamedTuple):
    """These partitions are on this disk (AssignReplicasToDirs)."""

    broker: int
    epoch: int
    disk: int
    keys: tuple


class Beat(NamedTuple):
    broker: int
    epoch: int
    offset: int
    want_shut_down: bool


class Beaten(NamedTuple):
    """stale: it must register again."""

    stale: bool
    shut_down: bool


class Follow(NamedTuple):
    """It has the metadata before `offset`."""

    offset: int


class Records(NamedTuple):
    """The metadata from `offset` to `end`."""

    offset: int
    end: int


class Alter(NamedTuple):
    """A leader wants these in sync: broker → its epoch."""

    broker: int
    broker_epoch: int
    key: tuple
    leader_epoch: int
    partition_epoch: int
    isr: tuple


class Altered(NamedTuple):
    key: tuple
    partition_epoch: int
    error: int


class Fetch(NamedTuple):
    broker: int
    broker_epoch: int
    session_id: int
    session_epoch: int
    partitions: tuple
    forgotten: tuple
    wait_ms: int


class Part(NamedTuple):
    """One partition of an answer."""

    key: tuple
    error: int
    diverging: tuple | None = None
    entries: Entries = Entries()
    high_watermark: int = -1
    log_start: int = -1


class Fetched(NamedTuple):
    error: int
    session_id: int
    parts: tuple = ()


class Earliest(NamedTuple):
    key: tuple
    leader_epoch: int


class EarliestIs(NamedTuple):
    """offset: -1 from who does not lead."""

    key: tuple
    leader_epoch: int
    offset: int


class Produce(NamedTuple):
    token: int
    key: tuple
    acks: int
    who: int
    number: int


class Produced(NamedTuple):
    """offset: -1 when it was not written, or nobody knows. leader: where to ask, -1: anybody."""

    token: int
    offset: int
    leader: int


class Read(NamedTuple):
    key: tuple
    offset: int


class Had(NamedTuple):
    """offset: of the first entry. high_watermark: -1 from who does not lead."""

    key: tuple
    log_start: int
    high_watermark: int
    offset: int
    entries: Entries


class Trim(NamedTuple):
    """Records below are wanted no more (DeleteRecords)."""

    key: tuple
    offset: int
