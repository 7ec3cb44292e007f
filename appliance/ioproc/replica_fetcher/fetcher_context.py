"""Shared context of the replica fetcher: this node and its settings, the other nodes' addresses,
and the partitions that are about to be truncated.
"""

from collections.abc import Callable
from typing import Final

from appliance.base import errors
from appliance.base.clock import Clock
from appliance.base.errors import StorageFailed
from appliance.config import between_nodes
from appliance.config.broker import BrokerConfig
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.replica_fetcher.divergence import DivergencePoint
from appliance.ioproc.replica_fetcher.fetched_records import FetchedRecords, LogStart
from appliance.ioproc.turn.core import Core
from appliance.metadata.endpoints import inter_broker
from appliance.metadata.image import MetadataImage
from appliance.peers.between import carry_to_brokers
from appliance.peers.link import Link, Watcher
from appliance.replication.catch_up_throttle import Writing
from appliance.replication.throttle import ReplicationThrottle
from appliance.shell.log import WARNING, Log
from appliance.wire.fetch_follower import FollowerFetchLimits

_EXPECTED: Final = frozenset(
    (
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.FENCED_LEADER_EPOCH,
        errors.UNKNOWN_LEADER_EPOCH,
        errors.UNKNOWN_TOPIC_ID,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""While one of the two knows newer metadata than the other."""


class FetcherContext:
    """node_id: this one. image: the metadata as they are now. parted: whose logs part from the
    leader's, or lie outside of it. until_ns: when this turn has taken enough, monotonic. writing:
    whether somebody writes who may wait for this node."""

    def __init__(
        self,
        config: BrokerConfig,
        image: Callable[[], MetadataImage],
        core: Core,
        checkpoint: LogStart,
        throttle: ReplicationThrottle,
        watcher: Watcher,
        clock: Clock,
        events: Log,
    ) -> None:
        """checkpoint: makes a log start durable. throttle: of what is fetched. watcher: the
        loop."""
        self.node_id = config.int("node.id")
        self.limits = FollowerFetchLimits(
            config.int("replica.fetch.wait.max.ms"),
            config.int("replica.fetch.min.bytes"),
            config.int("replica.fetch.response.max.bytes"),
            config.int("replica.fetch.max.bytes"),
        )
        self.pause_ms = config.int("replica.fetch.backoff.ms")
        self.timeout_ms = config.int("replica.socket.timeout.ms")
        self.taking = FetchedRecords(core, checkpoint)
        self.throttle = throttle
        self.parted: dict[Partition, DivergencePoint] = {}
        self.until_ns = 0
        self.writing = Writing()
        self._way = between_nodes.to_brokers(config)
        self._carry = carry_to_brokers(config, clock, events)
        self._image = image
        self._core = core
        self._watcher = watcher
        self._clock = clock
        self._events = events

    # Other nodes ----------------------------------------------------------------------------------

    def endpoint(self, node: int) -> tuple[str, int] | None:
        """Host and port at which another node takes requests of its peers."""
        return inter_broker(self._image(), node, self._way)

    def link(self, node: int, host: str, port: int) -> Link:
        """A connection to it, for one question at a time."""
        me = f"penstock-{self.node_id}"
        return Link(
            node, host, port, self._watcher, self._clock, me, in_flight=1, carry=self._carry
        )

    def replica(self) -> tuple[int, int]:
        """This node's identity in a fetch: its id, and the epoch of its registration (KIP-903)."""
        broker = self._image().brokers.get(self.node_id)
        return self.node_id, -1 if broker is None else broker.epoch

    # Partitions -----------------------------------------------------------------------------------

    def is_level(self, partition: Partition, now_ms: int) -> bool:
        """True if its whole log is durable, so that a fetch from its end may acknowledge it.
        Otherwise requests a sync.
        """
        log = partition.log
        if partition.broken is not None:
            return False
        if log.has_unwritten:  # it led, and what it was given found no room
            self._core.appends.forget_partition(partition)
            try:
                log.take_back(now_ms)
            except StorageFailed as failure:
                self._core.fail(partition, failure)
                return False
        if not partition.unseen:
            return True
        self._core.syncing.request_sync(partition)
        return False

    # What people should know ----------------------------------------------------------------------

    def warn(self, event: str, /, **fields: object) -> None:
        """At most one line a second of each kind."""
        self._events.event_seldom(WARNING, event, **fields)

    def report_bug(self, where: str, bug: Exception, **fields: object) -> None:
        """Tell an exception that costs one answer of a leader."""
        self._core.barrier.report_bug(where, bug, **fields)

    def confine_bug(self, where: str, partition: Partition, bug: Exception) -> None:
        """Tell an exception that may have left a log half changed: its partition goes offline."""
        self._core.barrier.confine_bug(where, partition, bug)
        self._core.tell_observers()

    def refused(self, partition: Partition, error: int) -> None:
        """The leader refused one partition."""
        if error not in _EXPECTED:
            node = partition.role.leader
            self.warn("fetch-refused", partition=partition, node=node, cause=f"error {error}")
