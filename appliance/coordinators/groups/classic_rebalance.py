"""The rebalance of a classic group: begin it, wait for members, start a generation, lose members.

Invariant: in PreparingRebalance a join deadline is set, in CompletingRebalance a sync deadline, so
that no phase can last for ever. Callers: the classic APIs and the group's own wake-up.
"""

from itertools import islice
from typing import Final

from appliance.base import errors
from appliance.coordinators.groups.classic_answers import (
    join_refused,
    joined,
    roster,
    sync_refused,
)
from appliance.coordinators.groups.classic_state import (
    COMPLETING,
    EMPTY,
    PREPARING,
    STABLE,
    ClassicState,
)
from appliance.coordinators.groups.members import Member
from appliance.coordinators.groups.state import Turn
from appliance.coordinators.runtime.call import NEVER

_NAMED: Final = 20
"""Topics that a line of the log names at most."""


def rebalance(turn: Turn, group: ClassicState) -> None:
    """Begin a rebalance, or go on with the one under way if now everybody has joined."""
    if group.state != PREPARING:
        prepare(turn, group)
    elif group.previous_state != EMPTY:
        complete_if_all_joined(turn, group)


def prepare(turn: Turn, group: ClassicState) -> None:
    """Every member has to join again."""
    if group.state == COMPLETING:
        _call_back_those_who_wait_for_an_assignment(turn, group)
    group.pending_syncs.clear()
    group.sync_deadline_ms = NEVER
    first = group.state == EMPTY
    group.become(PREPARING, turn.wall_ms)
    if first:
        _await_more_members(turn, group)
    elif group.everybody_joined():
        complete_join(turn, group)
    else:
        _await_joins(turn, group)


def _call_back_those_who_wait_for_an_assignment(turn: Turn, group: ClassicState) -> None:
    waiting, group.awaiting_sync = group.awaiting_sync, {}
    for member in group.members.values():
        if member.member_id in waiting:
            turn.answer(waiting[member.member_id], sync_refused(errors.REBALANCE_IN_PROGRESS))
            group.keep_alive(turn, member)


def _await_more_members(turn: Turn, group: ClassicState) -> None:
    """A new group gets group.initial.rebalance.delay.ms, longer while members keep coming."""
    delay = turn.state.settings.initial_rebalance_delay_ms
    if delay == 0:
        complete_join(turn, group)
        return
    group.grew = False
    group.initial_delay_ms = delay
    group.initial_left_ms = max(group.rebalance_timeout_ms() - delay, 0)
    _end_joins_at(turn, group, turn.now_ms + delay)


def _await_joins(turn: Turn, group: ClassicState) -> None:
    group.initial_delay_ms = 0
    _end_joins_at(turn, group, turn.now_ms + group.rebalance_timeout_ms())


def _end_joins_at(turn: Turn, group: ClassicState, deadline_ms: int) -> None:
    group.join_deadline_ms = deadline_ms
    turn.wake_at(group, deadline_ms)


def complete_if_all_joined(turn: Turn, group: ClassicState) -> None:
    """Start the next generation if nobody is missing."""
    if group.state == PREPARING and group.everybody_joined():
        complete_join(turn, group)


def complete_join(turn: Turn, group: ClassicState) -> None:
    """Start the next generation with those who joined; static members may come later."""
    assert group.state == PREPARING, f"{group.group_id} completes a join as {group.state}"
    group.join_deadline_ms = NEVER
    for member in list(group.members.values()):
        if member.member_id not in group.awaiting_join and member.instance_id is None:
            _note_loss(turn, group, member, "it did not join again in time")
            group.remove(member.member_id)
    if not group.members:
        _become_empty(turn, group)
    elif group.elect_leader():
        _begin_generation(turn, group)
    else:
        # Static members only, none of them back: their sessions decide who stays.
        _await_joins(turn, group)


def _become_empty(turn: Turn, group: ClassicState) -> None:
    group.generation += 1
    group.protocol = None
    group.leader = None
    group.write_record(turn, {})
    note_rebalanced(turn, group)
    assert group.state == EMPTY


def _begin_generation(turn: Turn, group: ClassicState) -> None:
    group.generation += 1
    group.protocol = group.select_protocol()
    group.subscribed = group.find_subscribed()
    group.become(COMPLETING, turn.wall_ms)
    waiting, group.awaiting_join = group.awaiting_join, {}
    for member in group.members.values():
        call = waiting.get(member.member_id)
        if call is not None:
            members = roster(group) if member.member_id == group.leader else ()
            turn.answer(call, joined(group, member.member_id, members=members))
        member.is_new = False
        group.keep_alive(turn, member)
    group.pending_syncs = dict.fromkeys(group.members)
    group.sync_deadline_ms = turn.now_ms + group.rebalance_timeout_ms()
    turn.wake_at(group, group.sync_deadline_ms)


def note_rebalanced(turn: Turn, group: ClassicState) -> None:
    """A generation has its members, or there is nobody left."""
    topics = ",".join(islice(group.subscribed or (), _NAMED))
    told = {"generation": group.generation, "members": len(group.members), "topics": topics}
    turn.add_note("group-rebalanced", group.group_id, told, is_loss=False)


# Losing members -----------------------------------------------------------------------------------


def _note_loss(turn: Turn, group: ClassicState, member: Member, cause: str) -> None:
    who = {"client": member.client_id, "peer": member.client_host.lstrip("/")}
    told = {"member": member.member_id, **who, "cause": cause}
    turn.add_note("member-lost", group.group_id, told, is_loss=True)


def drop_member(turn: Turn, group: ClassicState, member: Member) -> None:
    """Remove a member; what it waits for is answered UNKNOWN_MEMBER_ID, so that it joins anew."""
    join = group.awaiting_join.get(member.member_id)
    if join is not None:
        turn.answer(join, join_refused(join, "", errors.UNKNOWN_MEMBER_ID))
    sync = group.awaiting_sync.get(member.member_id)
    if sync is not None:
        turn.answer(sync, sync_refused(errors.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)


def after_loss(turn: Turn, group: ClassicState) -> None:
    """Members are gone: share out what they had."""
    if group.state in (STABLE, COMPLETING):
        prepare(turn, group)
    elif group.previous_state != EMPTY or not group.members:
        complete_if_all_joined(turn, group)


def expire(turn: Turn, group: ClassicState) -> None:
    """Do what is due: ids never used, sessions, the end of a phase."""
    now = turn.now_ms
    for member_id in [one for one, until in group.pending_joins.items() if until <= now]:
        if group.forget_pending(member_id):
            complete_if_all_joined(turn, group)
    for member in list(group.members.values()):
        if member.deadline_ms <= now and member.member_id in group.members:
            _end_session(turn, group, member)
    if group.join_deadline_ms <= now:
        _end_joins(turn, group)
    if group.sync_deadline_ms <= now:
        _end_syncs(turn, group)


def _end_session(turn: Turn, group: ClassicState, member: Member) -> None:
    waits = member.member_id in group.awaiting_join or member.member_id in group.awaiting_sync
    if waits and not member.is_new:
        member.deadline_ms = NEVER  # it cannot send heartbeats now; its answer begins a session
        return
    silent = f"no heartbeat for {member.session_timeout_ms} ms"
    _note_loss(turn, group, member, "it never used its id" if member.is_new else silent)
    drop_member(turn, group, member)
    if group.state in (STABLE, COMPLETING):
        prepare(turn, group)
    else:
        complete_if_all_joined(turn, group)


def _end_joins(turn: Turn, group: ClassicState) -> None:
    if group.initial_delay_ms and group.grew and group.initial_left_ms:
        group.grew = False
        delay = min(turn.state.settings.initial_rebalance_delay_ms, group.initial_left_ms)
        group.initial_left_ms = max(group.initial_left_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay
        _end_joins_at(turn, group, turn.now_ms + delay)
        return
    complete_join(turn, group)


def _end_syncs(turn: Turn, group: ClassicState) -> None:
    group.sync_deadline_ms = NEVER
    missing = list(group.pending_syncs)
    for member_id in missing:
        member = group.members.get(member_id)
        if member is not None:
            _note_loss(turn, group, member, "no SyncGroup in time")
            drop_member(turn, group, member)
    if missing and group.state in (STABLE, COMPLETING):
        prepare(turn, group)
