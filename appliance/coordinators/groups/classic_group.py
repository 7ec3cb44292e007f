"""A classic group as the rest of the coordinator sees it: what it shows, allows, goes through."""

from collections.abc import Iterator
from typing import Any, ClassVar

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.groups import classic_rebalance
from appliance.coordinators.groups.classic_answers import join_refused, sync_refused
from appliance.coordinators.groups.classic_state import (
    COMPLETING,
    EMPTY,
    STABLE,
    ClassicState,
    unknown_member,
)
from appliance.coordinators.groups.records import GroupMetadataKey
from appliance.coordinators.groups.state import Turn
from appliance.coordinators.groups.subscription import CONSUMER
from appliance.coordinators.runtime.call import NEVER, Call


class ClassicGroup(ClassicState):
    """The state of a rebalance behind the methods of every group."""

    KIND: ClassVar = "classic"

    @property
    def state_name(self) -> str:
        return self.state

    @property
    def shown_protocol_type(self) -> str:
        return self.protocol_type or ""

    def is_empty(self) -> bool:
        return self.state == EMPTY

    def size(self) -> int:
        return len(self.members) + len(self.pending_joins)

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed

    def offset_kept_from(self, commit_timestamp: int) -> int | None:
        if self.protocol_type is None:
            return commit_timestamp
        if self.state == EMPTY:
            return commit_timestamp if self.state_since_ms < 0 else self.state_since_ms
        if self.state == STABLE and self.subscribed is not None:
            return commit_timestamp
        return None

    def check_commit(self, turn: Turn, call: Call, request: Any) -> None:
        generation = request.generation_id_or_member_epoch
        instance_id = getattr(request, "group_instance_id", None)
        if generation < 0 and self.state == EMPTY:
            return
        if generation < 0 and not request.member_id and instance_id is None:
            raise unknown_member("", self.group_id)
        member = self.check_member(request.member_id, instance_id)
        if generation != self.generation:
            raise PeerError(errors.ILLEGAL_GENERATION, f"generation is {self.generation}")
        if self.state == COMPLETING:
            raise PeerError(errors.REBALANCE_IN_PROGRESS, "the leader's assignment is awaited")
        self.keep_alive(turn, member)

    def check_pending_commit(self, turn: Turn, request: Any) -> None:
        """Producers of old versions do not say who their members are."""
        generation = getattr(request, "generation_id", -1)
        member_id = getattr(request, "member_id", "")
        instance_id = getattr(request, "group_instance_id", None)
        if generation < 0 and (self.state == EMPTY or not (member_id or instance_id is not None)):
            return
        self.check_member(member_id, instance_id)
        if generation != self.generation:
            raise PeerError(errors.ILLEGAL_GENERATION, f"generation is {self.generation}")

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may ask."""

    def check_delete(self) -> None:
        if self.state != EMPTY:
            raise PeerError(errors.NON_EMPTY_GROUP, f"{self.group_id} has members")

    def check_offset_delete(self) -> None:
        if self.state != EMPTY and self.protocol_type != CONSUMER:
            raise PeerError(errors.NON_EMPTY_GROUP, f"{self.group_id} has members")

    def write_tombstones(self, turn: Turn) -> None:
        turn.write_record(GroupMetadataKey(group=self.group_id), None)

    def next_deadline_ms(self) -> int:
        return min(
            self.join_deadline_ms,
            self.sync_deadline_ms,
            min((member.deadline_ms for member in self.members.values()), default=NEVER),
            min(self.pending_joins.values(), default=NEVER),
        )

    def parked(self) -> Iterator[Call]:
        yield from self.awaiting_join.values()
        yield from self.awaiting_sync.values()

    def parked_refusal(self, call: Call, code: int) -> dict[str, Any]:
        return join_refused(call, "", code) if call.api_key == 11 else sync_refused(code)

    def loaded(self, turn: Turn) -> None:
        for member in self.members.values():
            self.keep_alive(turn, member)
        # The limit was lowered: the last to join must go. Nobody leads: the group has just
        # become a classic one (`migration`), and its members were to join anew.
        if len(self.members) > turn.state.settings.max_size or (
            self.members and self.leader is None
        ):
            classic_rebalance.prepare(turn, self)

    def expire(self, turn: Turn) -> None:
        classic_rebalance.expire(turn, self)
