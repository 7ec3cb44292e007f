"""Members of a consumer group that go: of their own will, or because they were not heard of.

Whoever stays hears of it at its next heartbeat, by the group's new epoch. When only members of the
classic protocol are left, the group becomes a classic one again. Callers: the heartbeats and
LeaveGroup, and the group's own wake-up.
"""

from collections.abc import Sequence

from appliance.coordinators.groups import migration
from appliance.coordinators.groups.consumer_state import ConsumerState
from appliance.coordinators.groups.consumer_target import refresh, write_member_tombstones
from appliance.coordinators.groups.state import Turn


def fence(turn: Turn, group: ConsumerState, leaving: Sequence[str]) -> None:
    """Put these members out; what they had is free."""
    if migration.may_downgrade(turn, group, leaving):
        migration.downgrade(turn, group, leaving)
        return
    for member_id in leaving:
        write_member_tombstones(turn, group, member_id)
    refresh(turn, group, bump=True)


def expire(turn: Turn, group: ConsumerState) -> None:
    """Put out those who were not heard of, did not give up in time what they must, or did not send
    the JoinGroup or SyncGroup that they were asked for."""
    late = [one for one, due in group.deadlines.items() if due.first() <= turn.now_ms]
    for one in late:
        due, member = group.deadlines[one], group.members[one]
        cause = (
            "no heartbeat in time" if due.session <= turn.now_ms else "it is late in a rebalance"
        )
        who = {"client": member.client_id, "peer": member.client_host.lstrip("/")}
        told = {"member": one, **who, "cause": cause}
        turn.add_note("member-lost", group.group_id, told, is_loss=True)
    if late:
        fence(turn, group, late)
