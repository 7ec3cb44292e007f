"""What replicas of a quorum and their clients say to each other."""

from typing import NamedTuple


class Ask(NamedTuple):
    """A request of a node, as it goes over the wire, with a number that its answer carries."""

    number: int
    key: int
    version: int
    body: bytes


class Answer(NamedTuple):
    number: int
    body: bytes


class Put(NamedTuple):
    """A setting that a client wants."""

    name: str


class Done(NamedTuple):
    """leader: where to ask again, when it is not agreed."""

    agreed: bool
    leader: int
    offset: int
