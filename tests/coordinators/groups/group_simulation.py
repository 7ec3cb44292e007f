"""Members of one group under one seed: they join, work, stall, crash, return, and the shard too.

Each member is a client as real ones are: one request at a time, told what to do next by the answer.
Faults: an answer is lost, a member stalls or crashes, the shard's process dies and its successor
loads the log. After every event the invariants hold; once faults stop, everybody finds together.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from coordinator_world import World, subscription

from appliance.base import errors
from appliance.coordinators.groups.classic_state import COMPLETING, PREPARING, STABLE

PARTITIONS = 4
RETRY_MS = 100
HEARTBEAT_MS = 500
SESSION_MS = 6000
REBALANCE_MS = 9000
REQUEST_TIMEOUT_MS = 12_000


@dataclass
class Member:
    """A client. next_ms: when it acts next. waits_for: the token of its parked request."""

    name: str
    instance: str | None
    version: int
    protocols: tuple[str, ...]
    id: str = ""
    generation: int = -1
    protocol: str = ""
    stage: str = "join"  # what it does next: join, sync, work
    owned: tuple[int, ...] = ()
    roster: tuple[str, ...] = ()
    next_ms: int = 0
    waits_for: int | None = None
    waits_until: int = 0
    heard: list[Any] = field(default_factory=list)


class Simulation:
    """trace: what happened, for comparing two runs. position: the next offset per partition."""

    def __init__(self, seed: int, members: int = 5, room: int | None = None) -> None:
        self.random = Random(seed)
        delay = self.random.choice((0, 0, 700))
        self.world = World(
            initial_rebalance_delay_ms=delay, max_size=room or self.random.choice((4, 100))
        )
        self.members = [self._member(number) for number in range(members)]
        self.owner: dict[int, Member] = {}  # token → who asked
        self.trace: list[str] = []
        self.faulty = True
        self.given: dict[tuple[int, int], str] = {}  # (generation, partition) → member id
        self.highest = [0] * PARTITIONS
        self.finished_rebalances = 0

    def _member(self, number: int) -> Member:
        return Member(
            name=f"m{number}",
            instance=f"i{number}" if self.random.random() < 0.4 else None,
            version=self.random.choice((2, 3, 5, 9)) if number else 9,
            protocols=self.random.choice((("range",), ("range", "sticky"), ("sticky", "range"))),
            next_ms=self.world.now + self.random.randrange(2000),
        )

    # The world goes on ----------------------------------------------------------------------------

    def run(self, events: int) -> None:
        for _ in range(events):
            self.step()
        self.faulty = False
        for _ in range(events):
            self.step()
            if self.settled():
                return
        raise AssertionError(f"stuck: {self.group().state} {self.members}")

    def settled(self) -> bool:
        """Everybody that has room works in one generation, and every partition has an owner."""
        group = self.group()
        if group is None or group.state != STABLE or group.pending_syncs or group.pending_joins:
            return False
        working = [one for one in self.members if one.stage == "work"]
        inside = {one.id for one in working if one.generation == group.generation}
        room = min(len(self.members), self.world.settings.max_size)
        return inside == set(group.members) and len(inside) == room

    def step(self) -> None:
        actor = min(self.members, key=lambda one: one.next_ms)
        due = self.world.shard.next_deadline_ms
        if due < actor.next_ms:
            self.world.now = max(self.world.now, due)
            self.note("tick")
            self.deliver(self.world.tick())
        else:
            self.world.now = max(self.world.now, actor.next_ms)
            if not self._fault(actor):
                self._act(actor)
        self.check()

    def note(self, text: str) -> None:
        self.trace.append(f"{self.world.now} {text}")

    def group(self) -> Any:
        return self.world.shard.state.groups.get("g")

    def _fault(self, actor: Member) -> bool:
        if not self.faulty:
            return False
        chance = self.random.random()
        if chance < 0.01:
            self.note(f"{actor.name} stalls")
            actor.next_ms += self.random.randrange(2 * REBALANCE_MS)
            return True
        if chance < 0.02:
            self.note(f"{actor.name} crashes")
            self._reset(actor)
            actor.waits_for = None
            actor.next_ms += self.random.randrange(3 * SESSION_MS)
            return True
        if chance < 0.025:
            self.note("shard restarts")
            self.owner.clear()
            self.world.restart()
            return True
        return False

    # What a member does ---------------------------------------------------------------------------

    def _act(self, member: Member) -> None:
        if member.waits_for is not None:
            if self.world.now < member.waits_until:
                member.next_ms = member.waits_until
                return
            self.owner.pop(member.waits_for, None)  # it gives up on that connection
            member.waits_for = None
        getattr(self, f"_{member.stage}")(member)

    def _join(self, member: Member) -> None:
        named = [
            {"name": one, "metadata": subscription("t")}
            for one in dict.fromkeys(("common", *member.protocols))
        ]
        self._send(
            member,
            11,
            member.version,
            session_timeout=SESSION_MS,
            rebalance_timeout=REBALANCE_MS,
            member_id=member.id,
            group_instance_id=self._instance(member),
            protocol_type="consumer",
            protocols=named,
        )

    def _instance(self, member: Member) -> str | None:
        return member.instance if member.version >= 5 else None

    def _sync(self, member: Member) -> None:
        assignments = [
            {"member_id": one, "assignment": bytes(range(at, PARTITIONS, len(member.roster)))}
            for at, one in enumerate(member.roster)
        ]
        self._send(
            member,
            14,
            5,
            generation_id=member.generation,
            member_id=member.id,
            group_instance_id=self._instance(member),
            protocol_type="consumer",
            protocol_name=member.protocol,
            assignments=assignments,
        )

    def _work(self, member: Member) -> None:
        chance = self.random.random()
        if chance < 0.5 and member.owned:
            self._commit(member)
        elif chance < 0.52 and self.faulty:
            self._send(member, 13, 5, members=[self._who(member)])
            self._reset(member)
        else:
            self._send(member, 12, 4, generation_id=member.generation, **self._who(member))

    def _who(self, member: Member) -> dict[str, Any]:
        return {"member_id": member.id, "group_instance_id": self._instance(member)}

    def _commit(self, member: Member) -> None:
        """Go on from what is committed, as a consumer that just fetched its position."""
        partition = self.random.choice(member.owned)
        kept = self.world.shard.state.offsets.find_offset("g", "t", partition)
        offset = (0 if kept is None else kept.offset) + self.random.randrange(10)
        row = {"partition_index": partition, "committed_offset": offset, "committed_metadata": ""}
        self._send(
            member,
            8,
            9,
            generation_id_or_member_epoch=member.generation,
            topics=[{"name": "t", "partitions": [row]}],
            **self._who(member),
        )

    def _send(self, member: Member, key: int, version: int, **fields: Any) -> None:
        token, answers = self.world.ask(key, version, group_id="g", **fields)
        self.note(f"{member.name} asks {key} {member.stage} {member.generation}")
        self.owner[token] = member
        member.waits_for = token
        member.waits_until = self.world.now + REQUEST_TIMEOUT_MS
        member.next_ms = member.waits_until
        self.deliver(answers)

    # What a member hears --------------------------------------------------------------------------

    def deliver(self, answers: list[Any]) -> None:
        for token, message in answers:
            member = self.owner.pop(token, None)
            if member is None or member.waits_for != token:
                continue  # it gave up, or crashed
            if self.faulty and self.random.random() < 0.02:
                self.note(f"{member.name} does not hear")
                continue
            member.waits_for = None
            member.next_ms = self.world.now + self.random.randrange(1, HEARTBEAT_MS)
            self._hear(member, message)

    def _hear(self, member: Member, message: Any) -> None:
        kind = type(message).__name__
        code = int(getattr(message, "error_code", 0))
        if kind == "OffsetCommitResponse":
            code = int(message.topics[0].partitions[0].error_code)
        self.note(f"{member.name} hears {kind} {code}")
        if code == errors.MEMBER_ID_REQUIRED:
            member.id = message.member_id
        elif code in (errors.UNKNOWN_MEMBER_ID, errors.FENCED_INSTANCE_ID):
            self._reset(member)
        elif code == errors.GROUP_MAX_SIZE_REACHED:
            self._reset(member)
            member.next_ms += RETRY_MS
        elif code in (errors.ILLEGAL_GENERATION, errors.REBALANCE_IN_PROGRESS):
            if kind != "OffsetCommitResponse" or code == errors.ILLEGAL_GENERATION:
                member.stage, member.owned = "join", ()
        elif code:
            raise AssertionError(f"{member.name} must not hear {code} of {kind}")
        elif kind == "JoinGroupResponse":
            member.id, member.generation = message.member_id, message.generation_id
            member.protocol = message.protocol_name
            member.roster = tuple(one.member_id for one in message.members)
            if message.leader == member.id and not getattr(message, "skip_assignment", False):
                assert member.roster, "a leader must know the members"
            if getattr(message, "skip_assignment", False):
                member.roster = ()
            member.stage = "sync"
        elif kind == "SyncGroupResponse":
            member.owned, member.stage = tuple(message.assignment), "work"
            self._took(member)

    def _took(self, member: Member) -> None:
        """No partition has two owners in one generation, but a static member and its successor."""
        name = member.instance if self._instance(member) else member.id
        for partition in member.owned:
            before = self.given.setdefault((member.generation, partition), name)
            assert before == name, f"{partition} is of {before} and {name} in {member.generation}"

    def _reset(self, member: Member) -> None:
        member.id, member.generation, member.owned, member.stage = "", -1, (), "join"

    # What holds always ----------------------------------------------------------------------------

    def check(self) -> None:
        for partition in range(PARTITIONS):
            kept = self.world.shard.state.offsets.find_offset("g", "t", partition)
            offset = 0 if kept is None else kept.offset
            assert offset >= self.highest[partition], f"partition {partition} went back"
            self.highest[partition] = offset
        group = self.group()
        if group is None:
            return
        assert set(group.awaiting_join) <= set(group.members)
        assert set(group.awaiting_sync) <= set(group.members)
        assert set(group.pending_syncs) <= set(group.members)
        assert not set(group.pending_joins) & set(group.members)
        if group.state == PREPARING:
            assert group.join_deadline_ms <= self.world.now + 2 * REBALANCE_MS
        else:
            assert not group.awaiting_join
        if group.state == COMPLETING:
            assert group.sync_deadline_ms <= self.world.now + 2 * REBALANCE_MS
            assert group.leader in group.members
        else:
            assert not group.awaiting_sync
        for member in group.members.values():
            waits = (
                member.member_id in group.awaiting_join or member.member_id in group.awaiting_sync
            )
            limit = self.world.now + SESSION_MS
            assert waits or member.deadline_ms <= limit, f"{member.member_id} has no session"
        deadline = group.next_deadline_ms()
        assert self.world.shard.next_deadline_ms <= deadline, "nobody would wake it up"
