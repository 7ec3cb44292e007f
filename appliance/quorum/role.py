"""The roles of a replica, and the moves between them."""

from enum import Enum
from typing import Final


class Role(Enum):
    """The role of a replica in its epoch."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


MOVES: Final = {
    Role.UNATTACHED: (Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER),
    Role.PROSPECTIVE: (
        Role.PROSPECTIVE,
        Role.UNATTACHED,
        Role.CANDIDATE,
        Role.FOLLOWER,
    ),
    Role.CANDIDATE: (
        Role.UNATTACHED,
        Role.PROSPECTIVE,
        Role.LEADER,
        Role.FOLLOWER,
    ),
    Role.LEADER: (Role.UNATTACHED, Role.RESIGNED, Role.FOLLOWER),
    Role.FOLLOWER: (Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER),
    Role.RESIGNED: (Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER),
}
