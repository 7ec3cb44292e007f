"""How long replicas of a quorum wait, in ms; the names are those of `controller.quorum.*`."""

from collections.abc import Callable

from appliance.base.dataclass import dataclass
from appliance.quorum.role import Role


@dataclass(slots=True, frozen=True)
class Times:
    """election_timeout: for votes, at least; up to twice as long. fetch_timeout: for the leader's
    answer, and for the fetches of a majority half as long again. election_backoff: after a lost
    election, at most. lost: after the connection to the leader was closed, at most: its process is
    gone as a rule, and a pre-vote disturbs nobody when it is not."""

    election_timeout: int = 1000
    fetch_timeout: int = 2000
    election_backoff: int = 1000
    lost: int = 50

    def __post_init__(self) -> None:
        assert self.lost > 0 and self.election_timeout > 0 and self.fetch_timeout > 0
        assert self.election_backoff > 0

    @property
    def check_quorum(self) -> int:
        """How long a leader goes on without hearing from a majority."""
        return self.fetch_timeout * 3 // 2

    @property
    def reluctance(self) -> int:
        """How much longer than others who holds back waits for somebody to be elected: long enough
        for any of them, and no longer, for there may be nobody else."""
        return self.fetch_timeout * 5

    def patience(self, role: Role, chance: Callable[[int], int], *, stands: bool) -> int:
        """How long a replica waits in this role."""
        if role is Role.FOLLOWER:
            return self.fetch_timeout
        if role is Role.LEADER:
            return self.fetch_timeout // 2
        if not stands:
            return 1 + chance(self.lost)  # until it asks who leads
        return self.election_timeout + chance(self.election_timeout)
