"""One partition of `__consumer_offsets` as a group coordinator (`runtime.shard` says how it is
driven): the groups that hash to it and what they committed.

Another protocol adds its APIs to HANDLERS and `refusals.REFUSALS`, its records to `records.RECORDS`
and `replay.APPLY`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from appliance.authorization.apis import NEEDS
from appliance.authorization.needs import WRITE_TRANSACTION
from appliance.base import errors
from appliance.base.level import LevelTime
from appliance.coordinators.groups import (
    classic_join,
    classic_session,
    consumer_describe,
    consumer_heartbeat,
    expiry,
    group_descriptions,
    offset_fetch,
    offsets,
    refusals,
    replay,
    transactional_offsets,
)
from appliance.coordinators.groups.records import RECORDS
from appliance.coordinators.groups.routing import SYNC_GROUP, TXN_OFFSET_COMMIT
from appliance.coordinators.groups.settings import GroupSettings
from appliance.coordinators.groups.state import GroupsState, Turn
from appliance.coordinators.runtime.call import Call, expiry_time
from appliance.coordinators.runtime.records import RecordTypes
from appliance.coordinators.runtime.room import ShardRoom
from appliance.coordinators.runtime.shard import (
    Apply,
    Handlers,
    Hold,
    Prepare,
    Refusals,
    Shard,
    Values,
)
from appliance.metadata.image import MetadataImage

_MEMBERS_ONLY: Final = frozenset((11, 12, 13, 14, TXN_OFFSET_COMMIT))
"""APIs of members and their producers: a group id must not be empty."""


def _refused(call: Call, request: Any) -> int:
    """The error code of a caller without the rights that the request needs as a whole, on the group
    it names.
    """
    need = NEEDS.get(call.api_key)
    if need is None or not hasattr(request, "group_id"):
        return errors.NONE
    if call.api_key == TXN_OFFSET_COMMIT and (
        code := call.rights.refusal(WRITE_TRANSACTION, request.transactional_id)
    ):
        return code
    return call.rights.refusal(need, request.group_id)


class GroupShard(Shard[GroupsState]):
    """partition: its index. image: the metadata that this process follows (topic names and ids).
    new_id: gives 16 random bytes for a member id.
    """

    HANDLERS: ClassVar[Handlers] = {
        8: offsets.commit,
        9: offset_fetch.fetch,
        11: classic_join.join,
        12: classic_session.heartbeat,
        13: classic_session.leave,
        14: classic_session.sync,
        15: group_descriptions.describe,
        16: group_descriptions.list_groups,
        28: transactional_offsets.commit,
        42: group_descriptions.delete_groups,
        47: offsets.delete,
        68: consumer_heartbeat.heartbeat,
        69: consumer_describe.describe,
    }
    REFUSALS: ClassVar[Refusals] = refusals.REFUSALS
    PREPARE: ClassVar[Mapping[int, Prepare]] = {9: offset_fetch.prepare}
    RECORDS: ClassVar[RecordTypes] = RECORDS
    APPLY: ClassVar[Apply] = replay.APPLY
    HOLD: ClassVar[Hold] = replay.HOLD

    def __init__(
        self,
        partition: int,
        settings: GroupSettings,
        image: MetadataImage,
        new_id: Callable[[], bytes],
        believed: Callable[[int], int] = expiry_time,
        time: LevelTime | None = None,
        room: ShardRoom | None = None,
    ) -> None:
        state = GroupsState(partition, settings, image, new_id, believed, room)
        super().__init__(state, time)

    def follow(self, image: MetadataImage) -> None:
        self.state.image = image

    def wrong(self, call: Call, request: Any) -> int:
        if not call.rights.everything and (code := _refused(call, request)):
            return code
        if call.api_key == SYNC_GROUP and classic_session.lacks_protocol(call, request):
            return errors.INCONSISTENT_GROUP_PROTOCOL
        if call.api_key in _MEMBERS_ONLY and request.group_id == "":
            return errors.INVALID_GROUP_ID
        return errors.NONE

    def owns_request(self, request: Any) -> bool:
        group_id = getattr(request, "group_id", None)
        state = self.state
        return group_id is None or group_id in state.groups or state.owns(group_id)

    def loaded(self, turn: Turn) -> None:
        expiry.Rounds().begin_rounds(turn)
        for group in list(self.state.groups.values()):
            group.loaded(turn)

    def ended(self, producer_id: int, *, committed: bool) -> None:
        replay.ended(self.state, producer_id, committed=committed)

    def parked(self) -> Iterator[tuple[Call, Callable[[Call, int], Values]]]:
        for group in self.state.groups.values():
            for call in group.parked():
                yield call, group.parked_refusal

    def forget_state(self) -> None:
        self.state.groups.clear()
        self.state.held.total = 0
        self.state.offsets.clear()
        self.state.pending.clear()

    def forget_topic(self, turn: Turn, name: str, topic_id: bytes) -> None:
        offsets.delete_of_topic(turn, name, topic_id)

    def size(self) -> int:
        return len(self.state.groups)

    def held_bytes(self) -> int:
        return self.state.held.total
