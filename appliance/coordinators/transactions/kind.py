"""The declaration of the coordinator of transactions."""

from collections.abc import Generator, Sequence
from typing import Any, ClassVar, Final

from appliance.base import errors
from appliance.config.bounds import TRANSACTION_BYTES, TRANSACTIONAL_IDS, setting_of
from appliance.config.broker import BrokerConfig
from appliance.config.internal_topics import TRANSACTIONS as TOPIC
from appliance.config.internal_topics import InternalTopic
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.kind import (
    CoordinatorPartition,
    Kind,
    Lent,
    Part,
    RowsOf,
    unserved_code,
)
from appliance.coordinators.runtime.room import ShardRoom, share_of
from appliance.coordinators.runtime.shard import Values
from appliance.coordinators.transactions import routing, settings
from appliance.coordinators.transactions.settings import TransactionSettings
from appliance.coordinators.transactions.shard import TransactionShard
from appliance.metadata.image import MetadataImage

_GROWING: Final = frozenset((routing.INIT_PRODUCER_ID, routing.ADD_PARTITIONS, routing.ADD_OFFSETS))
_NO_IMAGE: Final = MetadataImage()


class TransactionsKind(Kind):
    """InitProducerId is for it when there is a transactional id; without one control answers."""

    KEY_TYPE: ClassVar[int] = 1
    TOPIC: ClassVar[InternalTopic] = TOPIC
    APIS: ClassVar[frozenset[int]] = frozenset(TransactionShard.HANDLERS)
    LIST: ClassVar[int] = routing.LIST

    def grows(self, call: Call, request: Any) -> bool:
        """True if the request adds to the log for good. EndTxn does not: a transaction can end on a
        full disk.
        """
        return call.api_key in _GROWING

    def shard(
        self,
        place: CoordinatorPartition,
        config: BrokerConfig,
        image: MetadataImage,
        lent: Lent,
    ) -> TransactionShard:
        typed = settings.from_config(config, place.partitions)
        return TransactionShard(
            place.partition,
            place.epoch,
            typed,
            image,
            lent.take_producer_id,
            lent.believed,
            lent.time,
            ShardRoom(
                share_of(config, setting_of(TRANSACTIONAL_IDS), lent.processes),
                share_of(config, setting_of(TRANSACTION_BYTES), lent.processes),
                lent.beside,
            ),
        )

    def rows(self, key: int, version: int) -> RowsOf | None:
        return routing.rows(key, version)

    def is_whole(self, key: int) -> bool:
        return key in TransactionShard.PREPARE

    def cut_whole(
        self, version: int, body: bytes, partitions: int
    ) -> Generator[None, None, list[Part]]:
        return routing.cut_adding(version, body, partitions)

    def parts(self, key: int, version: int, body: bytes, partitions: int) -> list[Part]:
        return routing.parts(key, version, body, partitions)

    def splice(self, key: int, version: int, answers: Sequence[bytes]) -> bytes:
        return routing.splice(key, answers)

    def unserved(
        self, call: Call, request: Any, partition: int, partitions: int, *, is_led: bool = False
    ) -> Values:
        """ListTransactions names no id, so nobody else can be looked for; and where no partition is
        led there are no transactions."""
        code = unserved_code(is_led=is_led)
        if call.api_key == self.LIST and not is_led:
            code = errors.COORDINATOR_NOT_AVAILABLE if partitions else errors.NONE
        typed = TransactionSettings(partitions=max(partitions, 1))
        nobody = TransactionShard(partition, 0, typed, _NO_IMAGE, lambda: None)
        return nobody.refuse(call, request, nobody.wrong(call, request) or code)


TRANSACTIONS: Final = TransactionsKind()
