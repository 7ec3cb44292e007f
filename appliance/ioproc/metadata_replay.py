"""The metadata as an I/O process follows it: each change reaches the coordinators, then the
partitions.

Invariant: what was removed but has not gone yet counts as not replayed (`partition_deletion.py`),
and the process table says how far this process is. Called by the shell before requests are decided:
a slice in a turn, and while there is more they wait.

An exception in one consequence of a change costs that consequence alone, as Kafka's fault handler
of metadata publishing logs it and goes on.
"""

from collections.abc import Callable
from functools import partial

from appliance.ioproc.coordination.coordinator_host import CoordinatorHost
from appliance.ioproc.lifecycle.partition_manager import PartitionManager
from appliance.ioproc.replication.replication_throttle import ReplicationThrottling
from appliance.ioproc.requests.request_time import RequestTime
from appliance.metadata.changes import Change, QuotaChanged, TopicRemoved
from appliance.metadata.follower import Follower
from appliance.ring.process_table import METADATA_OFFSET
from appliance.shell.bugs import Bugs
from appliance.shell.process_authorizer import ProcessAuthorizer
from appliance.shell.read_retries import ReadRetries
from appliance.shell.seat import Seat


class CoordinatorFollowing:
    """hosts: the coordinators here. committed: the word in shared memory that says up to where
    there is metadata. applied: up to where it is replayed. bugs: tells what consequences raise;
    without it, as in a simulation, an exception ends everything."""

    __slots__ = (
        "_billing",
        "_follower",
        "_guarding",
        "_home",
        "_hosts",
        "_me",
        "_processes",
        "_retries",
        "_said",
        "_throttling",
        "_wall_ms",
        "applied",
        "bugs",
        "committed",
    )

    def __init__(
        self,
        seat: Seat,
        follower: Follower,
        home: PartitionManager,
        hosts: tuple[CoordinatorHost, ...],
        throttling: ReplicationThrottling,
        billing: RequestTime,
        wall_ms: Callable[[], int],
        retries: ReadRetries,
    ) -> None:
        self.bugs: Bugs | None = None
        self._retries = retries
        self._me = seat.me
        self._processes = seat.processes
        self._follower = follower
        self._guarding = ProcessAuthorizer(seat.authorizer)
        self._home = home
        self._hosts = hosts
        self._throttling = throttling
        self._billing = billing
        self._wall_ms = wall_ms
        self._said = 0  # in the process table
        self.committed = seat.processes.word(METADATA_OFFSET)
        self.applied = follower.applied

    def replay_slice(self) -> bool:
        """Replay a slice of what is committed, and act upon it when that was all, by slices as
        well; whether everything was done."""
        roles = self._home.roles
        if roles.waiting:
            roles.tell_roles()
        else:
            changes = self._retries.attempt(self._follower.replay_slice, self.committed[0])
            if changes is None:
                return False
            self._act_upon(changes)
        if roles.waiting:
            return False
        self.applied = self._follower.applied
        self.say_applied()
        return self.applied == self.committed[0]

    def _act_upon(self, changes: list[Change]) -> None:
        now_ms = self._wall_ms()
        image = self._follower.image
        self._guard("rules", lambda: self._guarding.follow(changes, image))
        for host in self._hosts:
            self._guard("coordinators", partial(host.follow, image))
        self._guard("partitions", lambda: self._home.apply(changes, self.applied))
        self._guard("throttles", lambda: self._throttling.follow(image, changes))
        if any(isinstance(change, QuotaChanged) for change in changes):
            self._guard("quotas", lambda: self._billing.follow(image.quotas))
        for change in changes:
            if isinstance(change, TopicRemoved):
                self._guard("a topic that is deleted", partial(self._removed, change, now_ms))

    def _removed(self, change: TopicRemoved, now_ms: int) -> None:
        if not self._home.may_return(change.topic_id):
            self._deleted(change.name, change.topic_id, now_ms)

    def _guard(self, what: str, consequence: Callable[[], object]) -> None:
        if self.bugs is None:
            consequence()
        else:
            self.bugs.guard(f"metadata: {what}", consequence)

    def reread(self, changes: list[Change]) -> None:
        """So the settings file has changed what holds here."""
        self._home.apply(changes, self.applied)
        self._throttling.follow(self._follower.image, changes)

    def replay_committed(self) -> None:
        """At the start: all that is committed, before anything is open."""
        self._follower.catch_up(self.committed[0])
        self._guarding.load(self._follower.image)
        self.applied = self._follower.applied
        self.say_applied()
        self._throttling.read_settings(self._follower.image)
        self._billing.follow(self._follower.image.quotas)
        for host in self._hosts:
            host.follow(self._follower.image)

    def tell_gone(self, now_ms: int) -> None:
        """Tell of topics that will never come back."""
        self.say_applied()
        for name, topic_id in self._home.gone():
            self._deleted(name, topic_id, now_ms)

    def say_applied(self) -> None:
        """Publishes the applied offset, below removals whose rows are still in use."""
        applied = self._home.leaving.replayed(self.applied)
        if applied != self._said:
            self._said = applied
            self._processes.set_applied(self._me, applied)

    def _deleted(self, name: str, topic_id: bytes, now_ms: int) -> None:
        for host in self._hosts:
            host.topic_deleted(name, topic_id, now_ms)
