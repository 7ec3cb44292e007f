"""Replay of committed metadata in a network process, and its effects there.

Invariant: a request never sees an older image than an answer did. Whoever begins one compares the
shared's `committed[0]` with `applied`, which costs nothing while they are equal, and calls `follow`
when they are not. A little is replayed at once; of more `turn` replays a slice, and until all of it
is replayed requests stay where they lie, and answers of control untold, but for what other nodes
ask of control (`Handler.between_nodes`): they would have the same news only behind us. Requests
that have begun go on with the image they began with, and answers leave. An exception in one
consequence of a change costs that consequence alone, as in Kafka's fault handler of metadata
publishing.
"""

from collections.abc import Callable
from typing import Final

from appliance.handlers.nodes import STILL_TOLD_NS
from appliance.metadata.changes import (
    BrokerChanged,
    Change,
    ConfigChanged,
    ControllerChanged,
    KeptChanged,
    ProducerIdsTaken,
    QuotaChanged,
    TopicRemoved,
)
from appliance.metadata.effective import broker_config
from appliance.metadata.follower import Follower
from appliance.netproc.connections.client_activity import topics_removed
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.connections_state import ConnectionsState
from appliance.netproc.requests.client_throttling import ClientThrottling
from appliance.netproc.requests.host import NetprocHost
from appliance.netproc.transport.tls_listeners import TlsListeners
from appliance.shell.process_authorizer import ProcessAuthorizer
from appliance.shell.read_retries import ReadRetries
from appliance.shell.seat import Seat

_ELSEWHERE: Final = (ConfigChanged, ControllerChanged, ProducerIdsTaken, QuotaChanged)
"""What such a record changes is in no session of a fetch: one of thousands of partitions is not
looked through again for each block of producer ids."""


class MetadataFollowing:
    """Keeps the shared state's `applied` at where we are."""

    def __init__(
        self,
        seat: Seat,
        follower: Follower,
        host: NetprocHost,
        throttling: ClientThrottling,
        shared: ConnectionsState[Connection],
        sealing: TlsListeners,
        retries: ReadRetries,
    ) -> None:
        self._seat = seat
        self._retries = retries
        self._follower = follower
        self._host = host
        self._throttling = throttling
        self._shared = shared
        self._sealing = sealing
        self._guarding = ProcessAuthorizer(seat.authorizer)
        self._guarding.load(follower.image)
        self._living = self._unfenced()
        shared.applied = follower.applied
        self._set_limits()
        seat.rereading.then(self._reread)

    def follow(self) -> bool:
        """Replay committed metadata at once if it is little. True: all of it is replayed."""
        shared, follower = self._shared, self._follower
        committed: int = shared.committed[0]
        if committed != shared.applied:
            if follower.is_far(committed):
                return False
            return self._replay(follower.catch_up)
        return True

    def replay_slice(self) -> bool:
        """Replay a slice of what is committed; whether that was all. Once in a turn."""
        return self._replay(self._follower.replay_slice) and self.follow()

    def _replay(self, read: Callable[[int], list[Change] | None]) -> bool:
        """Act upon what is committed; False where there is more of it, or it cannot be read just
        now. Raises StorageFailed when it could not be for ten seconds."""
        changes = self._retries.attempt(read, self._shared.committed[0])
        if changes is None:
            return False
        self._act_upon(changes)
        return True

    def _act_upon(self, changes: list[Change]) -> None:
        self._shared.applied = applied = self._follower.applied
        image, guard = self._follower.image, self._shared.bugs.guard
        guard("metadata: rules", lambda: self._guarding.follow(changes, image))
        routes = any(not isinstance(change, _ELSEWHERE) for change in changes)
        self._host.renew(routes=routes)  # or requests would see an older image than `applied` says
        removed = [change for change in changes if isinstance(change, TopicRemoved)]
        if removed:
            guard("metadata: deleted topics", lambda: self._forget(removed))
        if any(isinstance(change, ConfigChanged | QuotaChanged) for change in changes):
            guard("metadata: limits", self._set_limits)
            guard("metadata: listeners", lambda: self._sealing.follow(changes, self._host.node_id))
        if any(isinstance(change, ConfigChanged | KeptChanged) for change in changes):
            guard("metadata: logins", lambda: self._host.logins.follow_changes(changes))
        if any(isinstance(change, BrokerChanged) for change in changes):
            guard("metadata: brokers", self._note_who_left)
        self._seat.processes.set_applied(self._seat.me, applied)

    def _forget(self, removed: list[TopicRemoved]) -> None:
        self._host.forget_files()
        topics_removed([one.habits for one in self._shared.open.values()], removed)

    def _reread(self, changes: list[Change]) -> None:
        self._set_limits()
        self._sealing.renew()
        self._host.logins.renew()

    def _note_who_left(self) -> None:
        before, self._living = self._living, self._unfenced()
        left = self._host.left
        for node_id in self._living:
            left.pop(node_id, None)
        for node_id in before - self._living:
            left[node_id] = self._host.now_ns + STILL_TOLD_NS

    def _unfenced(self) -> set[int]:
        return {one.broker_id for one in self._follower.image.brokers.values() if not one.fenced}

    def _set_limits(self) -> None:
        """Apply the dynamic settings: quotas and limits of connections."""
        image = self._follower.image
        config = broker_config(image, self._seat.config)
        self._shared.limits.set(
            config.int("max.connections"),
            config.int("max.connections.per.ip"),
            config.per_address("max.connections.per.ip.overrides"),
        )
        self._host.verifies = config.bool("transaction.partition.verification.enable")
        arrivals = config.limit("max.connection.creation.rate")
        self._throttling.configure(image.quotas, arrivals)
