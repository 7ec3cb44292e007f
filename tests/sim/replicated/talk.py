"""What brokers, their controller and their clients say to each other."""

from typing import NamedTuple

from appliance.wire.batch_header import HEADER_SIZE, read_header


class Beat(NamedTuple):
    """A broker lives. unclean: what it had in its page cache before this life is lost."""

    broker: str
    life: int
    unclean: bool


class State(NamedTuple):
    """Who leads in which epoch, and who is in sync; each change has a number."""

    number: int
    epoch: int
    leader: str
    in_sync: tuple


class Alter(NamedTuple):
    """A leader wants these in sync. joins: (broker, life) of the one that is new, or ()."""

    epoch: int
    number: int
    in_sync: tuple
    joins: tuple


class Altered(NamedTuple):
    """refused: the one who joins is not whom the controller knows. Else a State tells what became
    of it, perhaps long ago."""

    number: int
    refused: bool


class EpochEnd(NamedTuple):
    epoch: int
    asked: int


class EpochEnded(NamedTuple):
    epoch: int
    found: int
    end: int


class Fetch(NamedTuple):
    epoch: int
    broker: str
    life: int
    offset: int


class Fetched(NamedTuple):
    """high_watermark: -1 from who does not lead that epoch. A log start behind what was fetched
    from: there is nothing any more."""

    epoch: int
    high_watermark: int
    log_start: int
    data: bytes


class Produce(NamedTuple):
    token: int
    acks: int
    batch: bytes


class Produced(NamedTuple):
    token: int
    done: bool
    base: int


class Trim(NamedTuple):
    """Records below are wanted no more (DeleteRecords)."""

    offset: int


class Read(NamedTuple):
    offset: int


class Had(NamedTuple):
    """What a client reads. high_watermark: -1 from who does not lead."""

    high_watermark: int
    data: bytes


def batches(data):
    """The whole batches of `data`: (header, bytes)."""
    found, at = [], 0
    while len(data) - at >= HEADER_SIZE:
        header = read_header(data, at)
        if at + header.size > len(data):
            break
        found.append((header, bytes(data[at : at + header.size])))
        at += header.size
    return found
