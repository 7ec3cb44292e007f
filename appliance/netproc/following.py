"""What follows in a network process when control has committed metadata.

Invariant: a request never sees an older image than an answer did. Whoever begins one compares
`committed[0]` with `applied`, which costs nothing while they are equal, and calls `follow` when
they are not.
"""

from appliance.metadata.changes import ConfigChanged, QuotaChanged, TopicRemoved
from appliance.metadata.effective import broker_config
from appliance.metadata.follower import Follower
from appliance.netproc.connection import Floor
from appliance.netproc.habits import topics_removed
from appliance.netproc.host import NetprocHost
from appliance.netproc.throttling import Throttling
from appliance.ring.process_table import METADATA_OFFSET
from appliance.shell.seat import Seat


class Following:
    """committed: the word in shared memory that says up to where. applied: up to where we are."""

    def __init__(
        self,
        seat: Seat,
        follower: Follower,
        host: NetprocHost,
        throttling: Throttling,
        floor: Floor,
    ) -> None:
        self._seat = seat
        self._follower = follower
        self._host = host
        self._throttling = throttling
        self._floor = floor
        self.committed = seat.processes.word(METADATA_OFFSET)
        self.applied = follower.applied
        self._set_limits()

    def follow(self) -> None:
        """Replay what control has committed since, and act upon it."""
        committed: int = self.committed[0]
        if committed == self.applied:
            return
        changes = self._follower.catch_up(committed)
        self.applied = self._follower.applied
        self._host.renew()
        removed = [change for change in changes if isinstance(change, TopicRemoved)]
        if removed:
            self._host.forget_files()
            topics_removed(list(self._floor.habits()), removed)
        if any(isinstance(change, ConfigChanged | QuotaChanged) for change in changes):
            self._set_limits()
        self._seat.processes.set_applied(self._seat.me, committed)

    def _set_limits(self) -> None:
        """What may be changed while we run: quotas, and how many connections there may be."""
        image = self._follower.image
        config = broker_config(image, self._seat.config)
        self._floor.limits.set(
            config.int("max.connections"),
            config.int("max.connections.per.ip"),
            config.per_address("max.connections.per.ip.overrides"),
        )
        arrivals = config.limit("max.connection.creation.rate")
        self._throttling.configure(image.quotas, arrivals)
