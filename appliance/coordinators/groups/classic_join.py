"""JoinGroup, API key 11, versions 0 to 9.

0: no rebalance timeout (the session timeout counts). 4: a new dynamic member gets an id first and
must come again with it (KIP-394). 5: group instance id, static membership (KIP-345). 7: protocol
type in the answer. 9: skip_assignment (KIP-814).
"""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.bounds import GROUP_MEMBERS, PENDING_MEMBERS
from appliance.coordinators.groups.classic_answers import join_refused, joined, roster, sync_refused
from appliance.coordinators.groups.classic_group import ClassicGroup
from appliance.coordinators.groups.classic_rebalance import (
    complete_if_all_joined,
    prepare,
    rebalance,
)
from appliance.coordinators.groups.classic_state import (
    COMPLETING,
    EMPTY,
    PENDING_BYTES,
    PREPARING,
    RECORD_VERSION,
    STABLE,
)
from appliance.coordinators.groups.members import Member, Protocols, bytes_of, protocols_of
from appliance.coordinators.groups.records import GroupMetadataKey, GroupMetadataValue
from appliance.coordinators.groups.state import Turn, check_bytes, check_room, refuse
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.records import STRING_MAX, fits

KNOWN_ID_SINCE: Final = 4
SKIP_ASSIGNMENT_SINCE: Final = 9
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""A new member waits at most this long in one JoinGroup: it has no session yet that could end."""
_MS: Final = timedelta(milliseconds=1)


def join(turn: Turn, call: Call, request: Any) -> None:
    """Let a member in, or let it join again; parked until the next generation starts."""
    _check(turn, request)
    protocols = protocols_of(request)
    _check_texts(request, request.member_id, protocols)
    group = turn.state.groups.get(request.group_id)
    _check_bytes(turn, request, group, protocols)
    if group is None:
        group = _new_group(turn, request, protocols)
    if not isinstance(group, ClassicGroup):
        group.classic_join(turn, call, request)
        return
    if not _has_room(group, request.member_id, turn.state.settings.max_size):
        group.remove(request.member_id)
        refused = refuse(turn, GROUP_MEMBERS, request.group_id, "the group has no more room")
        turn.answer(call, join_refused(call, "", refused.code))
        return
    if not group.supports(request.protocol_type, protocols):
        raise PeerError(
            errors.INCONSISTENT_GROUP_PROTOCOL,
            f"protocol type {request.protocol_type!r} with {[name for name, _ in protocols]} is not"
            f" what the members of {group.group_id} speak",
        )
    if request.member_id:
        _join_known(turn, call, request, group, protocols)
    else:
        _join_new(turn, call, request, group, protocols)


def _check(turn: Turn, request: Any) -> None:
    settings = turn.state.settings
    low, high = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if not low <= request.session_timeout // _MS <= high:
        raise PeerError(
            errors.INVALID_SESSION_TIMEOUT,
            f"session timeout {request.session_timeout // _MS} ms is not within "
            f"group.min.session.timeout.ms={low} and group.max.session.timeout.ms={high}",
        )


def _check_texts(request: Any, member_id: str, protocols: Protocols) -> None:
    """All of it has to fit the group's record."""
    instance_id = getattr(request, "group_instance_id", None)
    names = [name for name, _ in protocols]
    if not fits(member_id, instance_id, request.protocol_type, *names):
        raise PeerError(
            errors.INVALID_REQUEST,
            f"member and instance id, protocol type and names take {STRING_MAX} bytes at most",
        )


def _check_bytes(turn: Turn, request: Any, group: Any, protocols: Protocols) -> None:
    """A known member may say more of itself than before, as long as there is room."""
    known = group.members.get(request.member_id) if isinstance(group, ClassicGroup) else None
    before = 0 if known is None else bytes_of(known.protocols)
    check_bytes(turn, request.group_id, bytes_of(protocols) - before)


def _check_pending(turn: Turn, group: ClassicGroup, member_id: str) -> None:
    """Checks that there is room for one more member to be, which is kept, and waited for by the
    others, until it joins. The error code is one on which consumers ask again."""
    most = turn.state.settings.max_pending
    if len(group.pending_joins) >= most:
        why = f"{most} members to be of this group have not joined yet"
        code = errors.COORDINATOR_LOAD_IN_PROGRESS
        raise refuse(turn, PENDING_MEMBERS, group.group_id, why, code)
    check_bytes(turn, group.group_id, PENDING_BYTES + len(member_id))


def _new_group(turn: Turn, request: Any, protocols: Protocols) -> Any:
    if request.member_id:
        raise PeerError(errors.UNKNOWN_MEMBER_ID, f"there is no group {request.group_id}")
    if not request.protocol_type or not protocols:
        raise PeerError(
            errors.INCONSISTENT_GROUP_PROTOCOL, "a protocol type and a protocol are needed"
        )
    check_room(turn, request.group_id)
    value = GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=turn.wall_ms,
        members=(),
    )
    turn.write_record(GroupMetadataKey(group=request.group_id), value, RECORD_VERSION)
    return turn.state.groups[request.group_id]


def _has_room(group: ClassicGroup, member_id: str, limit: int) -> bool:
    """group.max.size: while members join again, the last to come may be too many."""
    if group.state == EMPTY:
        return True
    if group.state == PREPARING:
        return member_id in group.awaiting_join or len(group.awaiting_join) < limit
    return member_id in group.members or len(group.members) < limit


# A member without an id ---------------------------------------------------------------------------


def _join_new(
    turn: Turn, call: Call, request: Any, group: ClassicGroup, protocols: Protocols
) -> None:
    instance_id = getattr(request, "group_instance_id", None)
    unique = UUID(bytes=turn.state.new_id(), version=4)
    member_id = f"{call.client_id if instance_id is None else instance_id}-{unique}"
    _check_texts(request, member_id, protocols)
    if instance_id is None and call.version >= KNOWN_ID_SINCE:
        _check_pending(turn, group, member_id)
        until = turn.now_ms + request.session_timeout // _MS
        group.give_out(member_id, until)
        turn.wake_at(group, until)
        turn.answer(call, join_refused(call, member_id, errors.MEMBER_ID_REQUIRED))
    elif instance_id in group.static_members:
        _replace_static(turn, call, request, group, protocols, instance_id, member_id)
    else:
        _add(turn, call, request, group, protocols, member_id)


def _add(
    turn: Turn,
    call: Call,
    request: Any,
    group: ClassicGroup,
    protocols: Protocols,
    member_id: str,
) -> None:
    member = Member(
        member_id=member_id,
        instance_id=getattr(request, "group_instance_id", None),
        client_id=call.client_id,
        client_host=call.client_host,
        rebalance_timeout_ms=_rebalance_timeout_ms(request),
        session_timeout_ms=request.session_timeout // _MS,
        protocols=protocols,
        is_new=True,
        deadline_ms=turn.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS,
    )
    if group.state == PREPARING and group.previous_state == EMPTY:
        group.grew = True
    group.add(member, request.protocol_type)
    group.awaiting_join[member_id] = call
    turn.wake_at(group, member.deadline_ms)
    rebalance(turn, group)


def _rebalance_timeout_ms(request: Any) -> int:
    timeout = getattr(request, "rebalance_timeout", request.session_timeout) // _MS
    return int(timeout if timeout >= 0 else request.session_timeout // _MS)


# A member with an id ------------------------------------------------------------------------------


def _join_known(
    turn: Turn, call: Call, request: Any, group: ClassicGroup, protocols: Protocols
) -> None:
    instance_id = getattr(request, "group_instance_id", None)
    if request.member_id in group.pending_joins and instance_id is None:
        _add(turn, call, request, group, protocols, request.member_id)
        return
    member = group.check_member(request.member_id, instance_id)
    changed = member.protocols != protocols
    is_leader = member.member_id == group.leader
    if group.state == PREPARING or changed or (group.state == STABLE and is_leader):
        # A leader that joins again wants new assignments, though its own metadata is the same.
        _join_again(turn, call, request, group, member, protocols)
        return
    # It may have missed the answer to its last JoinGroup.
    members = roster(group) if is_leader and group.state == COMPLETING else ()
    turn.answer(call, joined(group, member.member_id, members=members))


def _join_again(
    turn: Turn,
    call: Call,
    request: Any,
    group: ClassicGroup,
    member: Member,
    protocols: Protocols,
) -> None:
    _update(turn, call, request, group, member, protocols)
    rebalance(turn, group)


def _update(
    turn: Turn,
    call: Call,
    request: Any,
    group: ClassicGroup,
    member: Member,
    protocols: Protocols,
) -> None:
    group.change_protocols(member, protocols)
    member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
    member.session_timeout_ms = request.session_timeout // _MS
    earlier = group.awaiting_join.get(member.member_id)
    if earlier is not None:
        turn.answer(earlier, join_refused(earlier, member.member_id, errors.REBALANCE_IN_PROGRESS))
    group.awaiting_join[member.member_id] = call


# A static member that came back -------------------------------------------------------------------


def _replace_static(
    turn: Turn,
    call: Call,
    request: Any,
    group: ClassicGroup,
    protocols: Protocols,
    instance_id: str,
    member_id: str,
) -> None:
    old_leader = group.leader
    old_id = group.static_members[instance_id]
    _fence(turn, group, old_id)
    member = group.rename_static(instance_id, old_id, member_id)
    _update(turn, call, request, group, member, protocols)
    group.keep_alive(turn, member)
    if group.state == STABLE and group.select_protocol() == group.protocol:
        _resume(turn, call, group, member, old_leader)
    elif group.state in (STABLE, COMPLETING):
        # The leader may be assigning to the old id, or the protocol has to change.
        prepare(turn, group)
    elif group.previous_state != EMPTY:
        complete_if_all_joined(turn, group)


def _fence(turn: Turn, group: ClassicGroup, old_id: str) -> None:
    join_call = group.awaiting_join.pop(old_id, None)
    if join_call is not None:
        turn.answer(join_call, join_refused(join_call, old_id, errors.FENCED_INSTANCE_ID))
    sync_call = group.awaiting_sync.pop(old_id, None)
    if sync_call is not None:
        turn.answer(sync_call, sync_refused(errors.FENCED_INSTANCE_ID))


def _resume(
    turn: Turn, call: Call, group: ClassicGroup, member: Member, old_leader: str | None
) -> None:
    """Same group, same protocol: it goes on with the assignment it had, nobody else notices."""
    del group.awaiting_join[member.member_id]
    group.write_record(turn, {one.member_id: one.assignment for one in group.members.values()})
    if call.version < SKIP_ASSIGNMENT_SINCE:
        # It must not think itself the leader: it would assign, and nobody asked for that.
        turn.answer(call, joined(group, member.member_id, leader=old_leader))
        return
    leads = member.member_id == group.leader
    members = roster(group) if leads else ()
    turn.answer(call, joined(group, member.member_id, members=members, skip_assignment=leads))
