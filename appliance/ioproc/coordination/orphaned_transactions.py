"""Transactions that are open in a partition which comes back out of the trash. What ended meanwhile
has no marker there, and nobody will send it one; its last stable offset would stay for ever.

The coordinators of all I/O processes are asked whether they know such a transaction, and those that
other nodes lead by ListTransactions. One that somebody knows ends as any other; one that nobody
knows is aborted, since nobody can say that it was committed either. Invariant: it is aborted only
when every I/O process and every other node that leads coordinators has said, behind the return,
that all of its coordinators serve and none of them knows it, and none of them has moved meanwhile.
Until then it is asked about again. Whoever leads the partition asks.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.base.home import home_of
from appliance.base.ids import TRANSACTIONS_TOPIC
from appliance.coordinators.runtime.call import NEVER
from appliance.ioproc.coordination.coordinator_host import CoordinatorHost
from appliance.ioproc.coordination.remote_markers import RemoteMarkers
from appliance.ioproc.netproc_peer import NetprocPeer, refusal
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.requests.appends import Appends
from appliance.metadata.image import MetadataImage
from appliance.ring.messages import KNOWN, Message
from appliance.ring.ring import RingWriter
from appliance.ring.slots import pack_knows, read_knows
from appliance.shell.log import NOTICE, Log
from appliance.wire import markers

AGAIN_MS: Final = 1_000
AT_ONCE: Final = 0

Leaders = tuple[tuple[int, int], ...]
"""Node and leader epoch."""


class OrphanedTransaction(NamedTuple):
    """begun: the offset where it began."""

    partition: Partition
    producer_id: int
    begun: int

    @property
    def is_open(self) -> bool:
        partition = self.partition
        return (
            partition.broken is None
            and partition.log.producers.open.get(self.producer_id) == self.begun
        )


class PendingCoordinators:
    """The coordinators that have not denied knowing it yet. homes: I/O processes here. nodes: that
    lead coordinators. led: leader and epoch of each of those, when this began.
    """

    __slots__ = ("homes", "led", "nodes", "one")

    def __init__(self, one: OrphanedTransaction) -> None:
        self.one = one
        self.homes: set[int] = set()
        self.nodes: set[int] = set()
        self.led: Leaders | None = None

    def begin_round(self, homes: Iterable[int], led: Leaders, me: int) -> None:
        """Starts again with all coordinators."""
        self.homes, self.led = set(homes), led
        self.nodes = {leader for leader, _ in led} - {me}

    @property
    def nobody(self) -> bool:
        """All have said it."""
        return self.led is not None and not self.homes and not self.nodes


class OrphanedTransactions:
    """me: index of this process. writers: the ring to each I/O process, by index. host: of the
    transactions. away: the ways to other nodes, None: there are none. due_ms: when `turn` has
    something to do, wall clock."""

    def __init__(
        self,
        me: int,
        writers: Mapping[int, RingWriter],
        host: CoordinatorHost,
        appends: Appends,
        partitions: Mapping[int, Partition],
        image: Callable[[], MetadataImage],
        rows: Mapping[tuple[bytes, int], int],
        events: Log,
        away: RemoteMarkers | None = None,
    ) -> None:
        self._away = away
        self._me = me
        self._writers = writers
        self._host = host
        self._appends = appends
        self._partitions = partitions
        self._image = image
        self._rows = rows
        self._events = events
        self._left: dict[int, PendingCoordinators] = {}  # by token
        self._number = 0
        self.due_ms = NEVER

    # Who asks -------------------------------------------------------------------------------------

    def came_back(self, partition: Partition) -> None:
        """It was in the trash, and is served now."""
        for producer_id, begun in partition.log.producers.open.items():
            self._number += 1
            self._left[self._number] = PendingCoordinators(
                OrphanedTransaction(partition, producer_id, begun)
            )
            self.due_ms = AT_ONCE

    def ask_due(self, now_ms: int) -> None:
        """Ask about all that are open still, whoever has not said that nobody knows them."""
        led = self._led() if self._left else ()
        for token, asked in list(self._left.items()):
            one = asked.one
            if not (one.is_open and self._partitions.get(one.partition.handle) is one.partition):
                del self._left[token]
                continue
            if not one.partition.leads:
                asked.led = None  # who leads asks; it may be this node, later
                continue
            if asked.led != led:
                asked.begin_round(self._writers, led, self._node_id)
            if asked.nobody:  # another node was the last to say it, or there was no room
                self._abort(one, now_ms)
            for home in asked.homes:
                self._writers[home].push(*pack_knows(one.partition.handle, token, one.producer_id))
            for node in asked.nodes:
                self._ask_node(node, asked)
        self.due_ms = now_ms + AGAIN_MS if self._left else NEVER

    def answered(self, home: int, token: int, code: int, now_ms: int) -> None:
        """Takes an I/O process's answer to a KNOWS."""
        asked = self._left.get(token)
        if asked is None or home not in asked.homes:
            return
        if code == errors.CONCURRENT_TRANSACTIONS:
            del self._left[token]  # its marker will come
        elif code == errors.NONE:
            asked.homes.remove(home)
            if asked.nobody:
                self._abort(asked.one, now_ms)

    def _ask_node(self, node: int, asked: PendingCoordinators) -> None:
        """Asks a coordinator for open transactions of the producer; an answer after the next turn
        is ignored.
        """
        led = asked.led

        def done(answer: Any) -> None:
            said = not isinstance(answer, PeerError) and answer.error_code == errors.NONE
            if said and not answer.transaction_states and asked.led is led:
                asked.nodes.discard(node)
                self.due_ms = AT_ONCE if asked.nobody else self.due_ms

        if self._away is not None and node >= 0:
            self._away.open_of(node, asked.one.producer_id, AGAIN_MS, done)

    def _abort(self, one: OrphanedTransaction, now_ms: int) -> None:
        if not (one.is_open and one.partition.leads):
            return
        partition, producer_id = one.partition, one.producer_id
        known = partition.log.producers.producers[producer_id]
        marker = markers.Marker(False, max(known.coordinator_epoch, 0))
        batch = markers.build(producer_id, known.epoch, marker, now_ms)
        if self._appends.append_own(partition, memoryview(bytearray(batch)), now_ms):
            self._events.event(
                NOTICE,
                "transaction-aborted",
                partition=partition,
                producer=producer_id,
                offset=one.begun,
                cause="it ended while its topic was deleted, and no coordinator knows how",
            )

    # Who is asked ---------------------------------------------------------------------------------

    def answer_known(self, asker: NetprocPeer, message: Message) -> None:
        """Answers whether a coordinator here knows that transaction (KNOWS)."""
        code = self._knows(message.handle, read_knows(message).producer_id)
        asker.out.append(refusal(KNOWN, code, message.handle, message.token))

    def _knows(self, handle: int, producer_id: int) -> int:
        image = self._image()
        key = next((key for key, row in self._rows.items() if row == handle), None)
        asked = None if key is None else image.topics_by_id.get(key[0])
        shards = self._host.shards()
        if key is None or asked is None or len(shards) < self._ours(image):
            return errors.COORDINATOR_LOAD_IN_PROGRESS
        codes = (shard.knows(producer_id, (asked.name, key[1])) for shard in shards)
        return next(filter(None, codes), errors.NONE)

    def _ours(self, image: MetadataImage) -> int:
        """How many partitions of the coordinators' topic this process has to serve."""
        topic = image.topics_by_name.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return 0
        count = len(self._writers)
        return sum(
            home_of(topic.topic_id, one.index, count) == self._me
            for one in topic.partitions
            if self._away is None or one.leader == self._node_id
        )

    @property
    def _node_id(self) -> int:
        return -1 if self._away is None else self._away.node_id

    def _led(self) -> Leaders:
        """The leader and epoch of each transaction coordinator."""
        topic = self._image().topics_by_name.get(TRANSACTIONS_TOPIC)
        if self._away is None or topic is None:
            return ()
        return tuple((one.leader, one.leader_epoch) for one in topic.partitions)
