"""How many producers all partitions of an I/O process remember, because a client names its own
producer id in each batch.

A producer is remembered until `producer.id.expiration.ms`, so that a batch sent twice is stored
once. Where there are too many, those that are silent for longer than any producer tries again are
forgotten first; a further new one is refused. Producers that are remembered are never refused, and
a follower remembers whatever its leader took. Called by `appends.py`.
"""

from typing import Final

from appliance.base.errors import POLICY_VIOLATION, PeerError
from appliance.config.bounds import PRODUCER_IDS, setting_of
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.logstore.producer_state import ProducerStates
from appliance.wire.batch_header import HEADER, HEADER_SIZE, MAGIC, MAGIC_AT

SILENT_MS: Final = 900_000
"""Seven times as long as producers try to deliver a batch (delivery.timeout.ms)."""
_AGAIN_MS: Final = 1000
"""Between two looks at all producers."""
_UNBOUNDED: Final = 1 << 62


class ProducerLimit:
    """most: producers. held: how many they remember;
    what is fetched from leaders is counted with the next look. is_full: a new one is one too
    many."""

    __slots__ = ("_looked_ms", "_most", "_served", "held", "is_full")

    def __init__(self, served: ServedPartitions, most: int = _UNBOUNDED) -> None:
        self._served = served
        self._most = most
        self._looked_ms = -_AGAIN_MS
        self.held = 0
        self.is_full = False

    def count_producers(self, states: ProducerStates) -> None:
        """Count those of a partition whose number has changed."""
        size = len(states.producers) + len(states.unverified)
        self.held += size - states.counted
        states.counted = size
        self.is_full = self.held >= self._most

    def check_batch(self, batch: memoryview, states: ProducerStates, now_ms: int) -> None:
        """Raises PeerError(POLICY_VIOLATION) for a batch of a producer that is one too many."""
        assert self.is_full
        if len(batch) < HEADER_SIZE or batch[MAGIC_AT] != MAGIC:
            return
        producer_id: int = HEADER.unpack_from(batch)[9]
        if producer_id < 0 or states.remembers(producer_id):
            return
        if now_ms - self._looked_ms >= _AGAIN_MS:
            self._looked_ms = now_ms
            self._make_room(now_ms)
        if self.is_full:
            why = f"{self._most} producers are remembered: {setting_of(PRODUCER_IDS)}"
            self._served.reach(PRODUCER_IDS, why)
            raise PeerError(POLICY_VIOLATION, why)

    def _make_room(self, now_ms: int) -> None:
        """Forget the silent ones, and count anew."""
        self.held = 0
        for partition in self._served.partitions.values():
            states = partition.log.producers
            states.expire(now_ms, SILENT_MS)
            states.counted = states.size()
            self.held += states.counted
        self.is_full = self.held >= self._most
