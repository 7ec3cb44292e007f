"""The declaration of the coordinator of groups and committed offsets."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from appliance.base import errors
from appliance.config.bounds import GROUP_BYTES, setting_of
from appliance.config.bounds import GROUPS as GROUPS_KEPT
from appliance.config.broker import BrokerConfig
from appliance.config.internal_topics import OFFSETS, InternalTopic
from appliance.coordinators.groups import routing, settings
from appliance.coordinators.groups.settings import GroupSettings
from appliance.coordinators.groups.shard import GroupShard
from appliance.coordinators.groups.transactional_offsets import ADDING_SINCE
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
from appliance.metadata.image import MetadataImage

_GROWING: Final = frozenset(
    (
        routing.OFFSET_COMMIT,
        routing.TXN_OFFSET_COMMIT,
        routing.JOIN_GROUP,
        routing.SYNC_GROUP,
        routing.CONSUMER_GROUP_HEARTBEAT,
    )
)
_DECODED_IN_TURNS: Final = frozenset(
    (
        routing.OFFSET_FETCH,
        routing.JOIN_GROUP,
        routing.SYNC_GROUP,
        routing.LIST_GROUPS,
        routing.CONSUMER_GROUP_HEARTBEAT,
    )
)
_NO_IMAGE: Final = MetadataImage()


class GroupsKind(Kind):
    """KIP-848 adds its groups to these, not a kind of its own."""

    KEY_TYPE: ClassVar[int] = 0
    TOPIC: ClassVar[InternalTopic] = OFFSETS
    APIS: ClassVar[frozenset[int]] = frozenset(GroupShard.HANDLERS)
    LIST: ClassVar[int] = routing.LIST_GROUPS
    ADDING: ClassVar[Mapping[int, int]] = {routing.TXN_OFFSET_COMMIT: ADDING_SINCE}
    PATIENCE: ClassVar[str] = "offsets.commit.timeout.ms"

    def grows(self, call: Call, request: Any) -> bool:
        """True if the request adds to the log for good. A ConsumerGroupHeartbeat does so only when
        it joins, so members can stay and leave on a full disk.
        """
        if call.api_key == routing.CONSUMER_GROUP_HEARTBEAT:
            return bool(request.member_epoch == 0)
        return call.api_key in _GROWING

    def shard(
        self,
        place: CoordinatorPartition,
        config: BrokerConfig,
        image: MetadataImage,
        lent: Lent,
    ) -> GroupShard:
        typed = settings.from_config(config, place.partitions)
        most, most_bytes = (
            share_of(config, setting_of(one), lent.processes) for one in (GROUPS_KEPT, GROUP_BYTES)
        )
        room = ShardRoom(most, most_bytes, lent.beside)
        return GroupShard(
            place.partition, typed, image, lent.new_id, lent.believed, lent.time, room
        )

    def rows(self, key: int, version: int) -> RowsOf | None:
        return routing.rows(key, version)

    def takes_turns(self, key: int) -> bool:
        return key in _DECODED_IN_TURNS

    def parts(self, key: int, version: int, body: bytes, partitions: int) -> list[Part]:
        return routing.parts(key, version, body, partitions)

    def splice(self, key: int, version: int, answers: Sequence[bytes]) -> bytes:
        return routing.splice(key, version, answers)

    def unserved(
        self, call: Call, request: Any, partition: int, partitions: int, *, is_led: bool = False
    ) -> Values:
        """ListGroups names no group, so nobody else can be looked for; and where no partition is
        led there are no groups."""
        code = unserved_code(is_led=is_led)
        if call.api_key == self.LIST and not is_led:
            code = errors.COORDINATOR_NOT_AVAILABLE if partitions else errors.NONE
        nobody = GroupShard(
            partition, GroupSettings(partitions=max(partitions, 1)), _NO_IMAGE, bytes
        )
        return nobody.refuse(call, request, nobody.wrong(call, request) or code)


GROUPS: Final = GroupsKind()
