"""What replicas of a quorum and their clients say to each other."""

from typing import NamedTuple


class Ask(NamedTuple):
    """A request of the machine, with a number that its answer carries."""

    number: int
    sender: int
    what: tuple


class Answer(NamedTuple):
    """data: the records that a fetch found."""

    number: int
    sender: int
    what: tuple
    data: bytes


class Put(NamedTuple):
    value: bytes


class Done(NamedTuple):
    """leader: where to ask again, when it is not agreed."""

    agreed: bool
    leader: int
    offset: int
