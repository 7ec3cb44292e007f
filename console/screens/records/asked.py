"""The typed query of a topic: where to look and what to keep."""

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Asked:
    """seek: as in the box; at first the last fifty records of each partition. keep: the filter."""

    seek: str = "-50"
    keep: str = ""
