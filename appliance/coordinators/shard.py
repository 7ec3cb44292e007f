"""One partition of `__consumer_offsets` as a group coordinator: a value machine.

How the shell drives it, for every partition of the topic that lives in its ioproc:

1. `Shard(partition, settings, image, new_id)` is LOADING: every request is answered at once with
   COORDINATOR_LOAD_IN_PROGRESS. Read the partition from its start to the high watermark and call
   `replay(key, value, offset)` for each record of it, in order (skip control batches).
2. `activate(now_ms)` makes it ACTIVE and gives the loaded members a fresh session.
3. `handle(call, request, now_ms)` for a request, `tick(now_ms)` when `next_deadline_ms` has come,
   `on_topic_deleted(...)` when the image lost a topic: each gives an Outcome. Append its records in
   order before the next call (one batch, or several when they are many; max.message.bytes does not
   count); never call `replay` for them, they are applied already. Send its
   responses when the high watermark has reached the log end offset of that moment. An Outcome
   without records waits for what is in flight in the same way: nobody is told of what a power loss
   could take back.
4. A parked request (JoinGroup, SyncGroup) is answered by a later Outcome under its own token. A
   token whose connection is gone may come: drop the answer.
5. When an append fails, or the partition goes away: `resign()`, whose responses are sent at once.
   What waits for the failed append is answered by `refuse(call, request, NOT_COORDINATOR)`. A
   resigned shard answers NOT_COORDINATOR; replace it by a new one to serve again.

Invariant: `apply` is the only thing that changes durable state, live (called by `Turn.write`, with
the typed record) and at load (called by `replay`, with the decoded one). Members that wait and
deadlines are volatile and change directly.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators import (
    classic_join,
    classic_session,
    consumer_describe,
    consumer_heartbeat,
    expiry,
    listing,
    offset_fetch,
    offsets,
    replay,
)
from appliance.coordinators.call import NEVER, Call, Outcome
from appliance.coordinators.group import Group
from appliance.coordinators.offset_store import OffsetStore
from appliance.coordinators.records import decode
from appliance.coordinators.refusals import REFUSALS
from appliance.coordinators.routing import SYNC_GROUP, shard_of
from appliance.coordinators.settings import Settings
from appliance.coordinators.turn import Turn
from appliance.metadata.image import MetadataImage

LOADING: Final = "loading"
ACTIVE: Final = "active"
RESIGNED: Final = "resigned"

HANDLERS: Final[dict[int, Callable[[Turn, Call, Any], None]]] = {
    8: offsets.commit,
    9: offset_fetch.fetch,
    11: classic_join.join,
    12: classic_session.heartbeat,
    13: classic_session.leave,
    14: classic_session.sync,
    15: listing.describe,
    16: listing.list_groups,
    42: listing.delete_groups,
    47: offsets.delete,
    68: consumer_heartbeat.heartbeat,
    69: consumer_describe.describe,
}
"""By API key; a protocol that adds APIs adds its own, and its refusal to `REFUSALS`."""

_MEMBERS_ONLY: Final = frozenset((11, 12, 13, 14))
"""APIs of members: a group id must not be empty."""


class Shard:
    """The groups of one partition of `__consumer_offsets`.

    partition: its index. image: the metadata that this process follows (topic names and ids).
    new_id: gives 16 random bytes for a member id. groups: by id. offsets: what was committed.
    """

    def __init__(
        self,
        partition: int,
        settings: Settings,
        image: MetadataImage,
        new_id: Callable[[], bytes],
    ) -> None:
        self.partition = partition
        self.settings = settings
        self.image = image
        self.new_id = new_id
        self.state = LOADING
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self._wakes: list[tuple[int, int, str]] = []
        self._wake_number = 0
        self._expiry_ms = NEVER

    # Loading and ending ---------------------------------------------------------------------------

    def replay(self, key: bytes | None, value: bytes | None, offset: int) -> None:
        """Apply one record of the partition while loading; value None removes.

        Raises PeerError(CORRUPT_MESSAGE) for bytes that are no record of a group; types that nobody
        here knows are skipped. offset: of the record, for the text of an error.
        """
        assert self.state == LOADING, "live records are applied when they are decided"
        try:
            decoded = decode(key, value)
        except PeerError as cause:
            raise PeerError(cause.code, f"offset {offset}: {cause.message}") from cause
        if decoded is not None:
            self.apply(*decoded)

    def apply(self, key: Any, value: Any) -> None:
        """Change durable state as a record says; value None: a tombstone."""
        replay.APPLY[type(key)](self, key, value)

    def activate(self, now_ms: int) -> Outcome:
        """All was replayed: begin to serve. Loaded members have a whole session timeout to come."""
        assert self.state == LOADING
        self.state = ACTIVE
        turn = Turn(self, now_ms)
        self._expiry_ms = now_ms + self.settings.offsets_retention_check_interval_ms
        for group in list(self.groups.values()):
            group.loaded(turn)
        return turn.outcome

    def resign(self) -> Outcome:
        """Stop serving: every parked request is answered NOT_COORDINATOR."""
        self.state = RESIGNED
        turn = Turn(self, 0)
        for group in self.groups.values():
            for call in group.parked():
                turn.answer(call, group.parked_refusal(call, errors.NOT_COORDINATOR))
        self.groups.clear()
        self._wakes.clear()
        self._expiry_ms = NEVER
        return turn.outcome

    # Requests -------------------------------------------------------------------------------------

    def owns(self, group_id: str) -> bool:
        """Whether the group belongs to this partition."""
        return shard_of(group_id, self.settings.partitions) == self.partition

    def handle(self, call: Call, request: Any, now_ms: int) -> Outcome:
        """Decide a request. request: the decoded message (`wire.messages.decode_request`).

        A request for several groups (DescribeGroups, DeleteGroups, OffsetFetch from version 8 on,
        ListGroups) comes to every shard concerned: each answers for its own groups, and
        `routing.splice` makes one answer of them.
        """
        turn = Turn(self, now_ms)
        code = self._refused(call, request)
        if code == errors.NONE:
            try:
                HANDLERS[call.api_key](turn, call, request)
            except PeerError as refused:
                code = refused.code
        if code != errors.NONE:
            turn.answer(call, REFUSALS[call.api_key](turn, call, request, code))
        return turn.outcome

    def refuse(self, call: Call, request: Any, code: int) -> Outcome:
        """The answer with this error, for a request whose Outcome could not be carried out."""
        turn = Turn(self, 0)
        turn.answer(call, REFUSALS[call.api_key](turn, call, request, code))
        return turn.outcome

    def _refused(self, call: Call, request: Any) -> int:
        group_id = getattr(request, "group_id", None)
        if call.api_key == SYNC_GROUP and classic_session.lacks_protocol(call, request):
            return errors.INCONSISTENT_GROUP_PROTOCOL
        if group_id == "" and call.api_key in _MEMBERS_ONLY:
            return errors.INVALID_GROUP_ID
        if self.state == ACTIVE:
            if group_id is None or group_id in self.groups or self.owns(group_id):
                return errors.NONE
            return errors.NOT_COORDINATOR
        if self.state == LOADING:
            return errors.COORDINATOR_LOAD_IN_PROGRESS
        return errors.NOT_COORDINATOR

    # Time and topics ------------------------------------------------------------------------------

    @property
    def next_deadline_ms(self) -> int:
        """When `tick` wants to be called at the latest, NEVER when nothing is due."""
        first = self._wakes[0][0] if self._wakes else NEVER
        return min(first, self._expiry_ms)

    def schedule(self, group: Group, deadline_ms: int) -> None:
        """Wake the group then; earlier wake-ups that it has become void."""
        group.scheduled_ms = deadline_ms
        self._wake_number += 1
        heappush(self._wakes, (deadline_ms, self._wake_number, group.group_id))

    def tick(self, now_ms: int) -> Outcome:
        """Do what is due: sessions, rebalances, expiry of offsets."""
        turn = Turn(self, now_ms)
        while self._wakes and self._wakes[0][0] <= now_ms:
            deadline_ms, _, group_id = heappop(self._wakes)
            group = self.groups.get(group_id)
            if group is None or group.scheduled_ms != deadline_ms:
                continue  # it moved its wake-up, or is gone
            group.scheduled_ms = NEVER
            group.expire(turn)
            if self.groups.get(group_id) is group:
                # Of a huge group every look costs: it is looked at less often.
                grain_ms = 1 + group.size() // 1000
                turn.wake(group, max(group.next_deadline_ms(), now_ms + grain_ms))
        if self._expiry_ms <= now_ms:
            self._expiry_ms = now_ms + self.settings.offsets_retention_check_interval_ms
            expiry.expire_offsets(turn)
        return turn.outcome

    def on_topic_deleted(self, name: str, topic_id: bytes, now_ms: int) -> Outcome:
        """Remove the offsets committed for a topic that exists no more."""
        turn = Turn(self, now_ms)
        if self.state == ACTIVE:
            offsets.delete_of_topic(turn, name, topic_id)
        return turn.outcome
