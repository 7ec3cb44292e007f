"""Transactions that are open in a partition which comes back out of the trash. What ended meanwhile
has no marker there, and nobody will send it one; its last stable offset would stay for ever.

The coordinators of all I/O processes are asked whether they know such a transaction. One that
somebody knows ends as any other; one that nobody knows is aborted, since nobody can say that it was
committed either. Invariant: it is aborted only when every I/O process has said, behind the return,
that all of its coordinators serve and none of them knows it. Until then it is asked about again.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from appliance.base import errors
from appliance.base.home import home_of
from appliance.base.ids import TRANSACTIONS_TOPIC
from appliance.coordinators.runtime.call import NEVER
from appliance.ioproc.appending import Appends
from appliance.ioproc.asker import Asker, refusal
from appliance.ioproc.coordinating.host import CoordinatorHost
from appliance.ioproc.partition import Partition
from appliance.metadata.image import MetadataImage
from appliance.ring.messages import KNOWN, KNOWS, Message
from appliance.ring.ring import RingWriter
from appliance.shell.log import NOTICE, Log
from appliance.wire import markers

AGAIN_MS: Final = 1_000
AT_ONCE: Final = 0


class Left(NamedTuple):
    """begun: the offset where it began."""

    partition: Partition
    producer_id: int
    begun: int

    @property
    def is_open(self) -> bool:
        partition = self.partition
        return (
            partition.broken is None
            and partition.leads
            and partition.log.producers.open.get(self.producer_id) == self.begun
        )


class LeftOpen:
    """me: index of this process. writers: the ring to each I/O process, by index. host: of the
    transactions. due_ms: when `turn` has something to do, wall clock."""

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
    ) -> None:
        self._me = me
        self._writers = writers
        self._host = host
        self._appends = appends
        self._partitions = partitions
        self._image = image
        self._rows = rows
        self._events = events
        self._left: dict[int, tuple[Left, set[int]]] = {}  # by token; who has not said that
        self._number = 0
        self.due_ms = NEVER

    # Who asks -------------------------------------------------------------------------------------

    def came_back(self, partition: Partition) -> None:
        """It was in the trash, and is served now."""
        for producer_id, begun in partition.log.producers.open.items():
            self._number += 1
            self._left[self._number] = Left(partition, producer_id, begun), set(self._writers)
            self.due_ms = AT_ONCE

    def turn(self, now_ms: int) -> None:
        """Ask about all that are open still, whoever has not said that nobody knows them."""
        for token, (one, missing) in list(self._left.items()):
            if not (one.is_open and self._partitions.get(one.partition.handle) is one.partition):
                del self._left[token]
                continue
            if not missing:  # there was no room for the marker
                self._abort(one, now_ms)
            for home in missing:
                self._writers[home].push(KNOWS, 0, one.partition.handle, token, one.producer_id)
        self.due_ms = now_ms + AGAIN_MS if self._left else NEVER

    def answered(self, home: int, token: int, code: int, now_ms: int) -> None:
        """What an I/O process says to a KNOWS."""
        found = self._left.get(token)
        if found is None or home not in found[1]:
            return
        one, missing = found
        if code == errors.CONCURRENT_TRANSACTIONS:
            del self._left[token]  # its marker will come
        elif code == errors.NONE:
            missing.remove(home)
            if not missing:
                self._abort(one, now_ms)

    def _abort(self, one: Left, now_ms: int) -> None:
        if not one.is_open:
            return
        partition, producer_id = one.partition, one.producer_id
        known = partition.log.producers.producers[producer_id]
        marker = markers.Marker(False, max(known.coordinator_epoch, 0))
        batch = markers.build(producer_id, known.epoch, marker, now_ms)
        if self._appends.own(partition, memoryview(bytearray(batch)), now_ms):
            self._events.event(
                NOTICE,
                "transaction-aborted",
                partition=partition,
                producer=producer_id,
                offset=one.begun,
                cause="it ended while its topic was deleted, and no coordinator knows how",
            )

    # Who is asked ---------------------------------------------------------------------------------

    def tell(self, asker: Asker, message: Message) -> None:
        """Whether a coordinator here knows that transaction (KNOWS)."""
        code = self._knows(message.handle, message.a)
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
        homes = (home_of(topic.topic_id, one.index, len(self._writers)) for one in topic.partitions)
        return sum(home == self._me for home in homes)
