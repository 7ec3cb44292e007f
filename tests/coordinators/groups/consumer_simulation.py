"""Members of both protocols in one group under one seed: they join, work, stall, crash, come back,
change what they read; topics grow; the shard dies and its successor loads the log.

The promise that is checked after every event: whatever a member of the group believes to own,
nobody else in the group believes to own. Once faults stop, everybody finds together and every
partition that somebody reads has its owner.
"""

from dataclasses import dataclass
from random import Random
from typing import Any

from consumer_world import ConsumerWorld, held
from coordinator_world import image_of

from appliance.base import errors
from appliance.coordinators.groups import embedded
from appliance.coordinators.groups.classic_group import ClassicGroup
from appliance.coordinators.groups.classic_state import STABLE
from appliance.coordinators.groups.consumer_group import ConsumerGroup
from appliance.wire import kraft_records as kraft

SESSION_MS = 6000
REBALANCE_MS = 9000
BEAT_MS = 500
TIMEOUT_MS = 12_000
REJOIN = (errors.UNKNOWN_MEMBER_ID, errors.FENCED_MEMBER_EPOCH, errors.FENCED_INSTANCE_ID)
LATER = (
    errors.UNRELEASED_INSTANCE_ID,
    errors.GROUP_MAX_SIZE_REACHED,
    errors.GROUP_ID_NOT_FOUND,  # a classic group has members waiting beyond group.consumer.max.size
)

Place = tuple[str, int]


@dataclass
class Client:
    """owned: what it believes to own. epoch: member epoch, or generation. stage: of a classic
    client: join, sync, work. roster: what a classic leader was told. stale: a static member whom a
    classic group kept though it never came to a generation; it has not heard of that yet."""

    name: str
    classic: bool
    instance: str | None
    reads: dict[str, Any]
    id: str = ""
    epoch: int = 0
    owned: frozenset[Place] = frozenset()
    stage: str = "join"
    roster: tuple[Any, ...] = ()
    lives: int = 0
    next_ms: int = 0
    token: int | None = None
    waits_until: int = 0
    stale: bool = False

    def topics(self) -> tuple[str, ...]:
        return self.reads.get("subscribed_topic_names") or ("t", "u")


class Simulation:
    def __init__(self, seed: int, clients: int = 5, classic_share: float = 0.4) -> None:
        self.random = Random(seed)
        self.cooperative = self.random.random() < 0.5
        self.world = ConsumerWorld(
            image_of(t=4, u=3),
            consumer_session_timeout_ms=SESSION_MS,
            consumer_max_size=self.random.choice((4, 100)),
        )
        self.world.check_every = 4
        if self.world.settings.consumer_max_size == 4:
            clients = 4  # a group that is full turns members away, whom nobody would ever let in
        self.classic_share = classic_share
        self.clients = [self._client(number) for number in range(clients)]
        self.by_token: dict[int, Client] = {}
        self.trace: list[str] = []
        self.faulty = True
        self.kinds: dict[str, None] = {}
        self.kind = ""

    def _client(self, number: int) -> Client:
        return Client(
            name=f"m{number}",
            classic=self.random.random() < self.classic_share,
            instance=f"i{number}" if self.random.random() < 0.4 else None,
            reads=self._reads(),
            next_ms=self.world.now + self.random.randrange(2000),
        )

    def _reads(self) -> dict[str, Any]:
        return self.random.choice((
            {"subscribed_topic_names": ("t",), "subscribed_topic_regex": ""},
            {"subscribed_topic_names": ("t", "u"), "subscribed_topic_regex": ""},
            {"subscribed_topic_names": (), "subscribed_topic_regex": "t|u"},
        ))  # fmt: skip

    # The world goes on ----------------------------------------------------------------------------

    def run(self, events: int) -> None:
        for _ in range(events):
            self.step()
        self.faulty = False
        for _ in range(2 * events):
            self.step()
            if self.settled():
                return
        raise AssertionError(f"stuck: {vars(self.group())}\n{self.clients}")

    def group(self) -> Any:
        return self.world.shard.state.groups.get("g")

    def step(self) -> None:
        actor = min(self.clients, key=lambda one: one.next_ms)
        due = self.world.shard.next_deadline_ms
        if due < actor.next_ms:
            self.world.now = max(self.world.now, due)
            self.note("tick")
            self.deliver(self.world.tick())
        else:
            self.world.now = max(self.world.now, actor.next_ms)
            if not (self.faulty and self.fault(actor)):
                self.act(actor)
        self.check()

    def note(self, text: str) -> None:
        self.trace.append(f"{self.world.now} {text}")

    def fault(self, client: Client) -> bool:
        chance = self.random.random()
        if chance < 0.01:
            self.note(f"{client.name} stalls")
            client.next_ms += self.random.randrange(2 * REBALANCE_MS)
        elif chance < 0.02:
            self.note(f"{client.name} crashes")
            self.reset(client, afresh=True)
            client.next_ms += self.random.randrange(3 * SESSION_MS)
        elif chance < 0.03:
            self.note(f"{client.name} comes back in the other protocol")
            self.reset(client, afresh=True)
            client.classic = self.random.random() < self.classic_share
            client.next_ms += self.random.randrange(SESSION_MS)
        elif chance < 0.035:
            self.note("shard restarts")
            self.by_token.clear()
            self.world.restart()
        elif chance < 0.04:
            self.note("topic grows")
            self.grow()
        else:
            return False
        return True

    def grow(self) -> None:
        image = self.world.image
        topic = image.topics_by_name[self.random.choice(("t", "u"))]
        record = kraft.PartitionRecord(
            partition_id=len(topic.partitions),
            topic_id=topic.topic_id,
            replicas=(1,),
            isr=(1,),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=(b"d" * 16,),
        )
        image.apply(image.applied_offset + 1, record)

    def reset(self, client: Client, *, afresh: bool = False) -> None:
        client.epoch, client.owned, client.stage = 0, frozenset(), "join"
        client.stale = False
        if afresh or client.classic:
            client.id = ""
        if afresh:
            client.token = None

    # What clients do ------------------------------------------------------------------------------

    def act(self, client: Client) -> None:
        if client.token is not None:
            if self.world.now < client.waits_until:
                client.next_ms = client.waits_until
                return
            self.by_token.pop(client.token, None)
            client.token = None
        if client.classic:
            getattr(self, f"_{client.stage}")(client)
        else:
            self._beat(client)

    def _beat(self, client: Client) -> None:
        if client.epoch == 0 and not client.id:
            client.lives += 1
            client.id = f"{client.name}-{client.lives}"
        fields: dict[str, Any] = {"member_id": client.id, "member_epoch": client.epoch}
        chance = self.random.random()
        if client.epoch and self.faulty and chance < 0.03:
            away = client.instance is not None and chance < 0.02
            self._ask(
                client, 68, 1, **fields | {"member_epoch": -2 if away else -1},
                instance_id=client.instance, rebalance_timeout=-1, topic_partitions=None,
            )  # fmt: skip
            self.reset(client, afresh=True)
            return
        if client.epoch and chance < 0.2 and client.owned:
            self._commit(client)
            return
        if client.epoch and self.faulty and chance < 0.23:
            client.reads = self._reads()
            fields |= client.reads
        whole = client.epoch == 0 or chance > 0.5
        if client.epoch == 0 or chance > 0.9:
            fields |= client.reads
        self._ask(
            client, 68, 1, **fields,
            instance_id=client.instance,
            rebalance_timeout=REBALANCE_MS if whole else -1,
            topic_partitions=self._owned_rows(client) if whole or client.owned else None,
        )  # fmt: skip

    def _owned_rows(self, client: Client) -> list[dict[str, Any]]:
        image = self.world.image
        return [
            {"topic_id": image.topics_by_name[topic].topic_id, "partitions": tuple(numbers)}
            for topic, numbers in by_topic(client.owned).items()
        ]

    def _join(self, client: Client) -> None:
        if not self.cooperative:
            client.owned = frozenset()
        self._ask(
            client, 11, 9,
            session_timeout=SESSION_MS,
            rebalance_timeout=REBALANCE_MS,
            member_id=client.id,
            group_instance_id=client.instance,
            protocol_type="consumer",
            protocols=[{"name": "p", "metadata": subscription(client.topics(), client.owned)}],
        )  # fmt: skip

    def _sync(self, client: Client) -> None:
        self._ask(
            client, 14, 5,
            generation_id=client.epoch,
            member_id=client.id,
            group_instance_id=client.instance,
            protocol_type="consumer",
            protocol_name="p",
            assignments=self._share_out(client),
        )  # fmt: skip

    def _share_out(self, leader: Client) -> list[dict[str, Any]]:
        """What a leader does: in turn, to whoever reads it, but in a cooperative group not what
        somebody else still owns."""
        told = {one.member_id: embedded.subscription(one.metadata) for one in leader.roster}
        owner = {
            (topic, one): member_id
            for member_id, its in told.items()
            for topic, numbers in its.owned.items()
            for one in numbers
        }
        shares: dict[str, set[Place]] = {member_id: set() for member_id in told}
        turn = 0
        for topic in ("t", "u"):
            readers = [one for one in told if topic in told[one].topics]
            for partition in range(len(self.world.image.topics_by_name[topic].partitions)):
                if not readers:
                    continue
                turn += 1
                chosen = readers[turn % len(readers)]
                if owner.get((topic, partition), chosen) == chosen:
                    shares[chosen].add((topic, partition))
        return [
            {
                "member_id": member_id,
                "assignment": embedded.encode_assignment(by_topic(frozenset(share)), b"\0\1"),
            }
            for member_id, share in shares.items()
        ]

    def _work(self, client: Client) -> None:
        who = {"member_id": client.id, "group_instance_id": client.instance}
        chance = self.random.random()
        if chance < 0.02 and self.faulty:
            self._ask(client, 13, 5, members=[who])
            self.reset(client, afresh=True)
        elif chance < 0.2 and client.owned:
            self._commit(client)
        else:
            self._ask(client, 12, 4, generation_id=client.epoch, **who)

    def _commit(self, client: Client) -> None:
        topic, partition = min(client.owned)
        row = {"partition_index": partition, "committed_offset": 1, "committed_metadata": ""}
        self._ask(
            client, 8, 9,
            member_id=client.id,
            group_instance_id=client.instance,
            generation_id_or_member_epoch=client.epoch,
            topics=[{"name": topic, "partitions": [row]}],
        )  # fmt: skip

    def _ask(self, client: Client, key: int, version: int, **fields: Any) -> None:
        token, answers = self.world.ask(key, version, group_id="g", **fields)
        self.note(f"{client.name} asks {key} {client.id} {client.epoch} {sorted(client.owned)}")
        self.by_token[token] = client
        client.token = token
        client.waits_until = client.next_ms = self.world.now + TIMEOUT_MS
        self.deliver(answers)

    # What they hear -------------------------------------------------------------------------------

    def deliver(self, answers: list[Any]) -> None:
        for token, message in answers:
            client = self.by_token.pop(token, None)
            if client is None or client.token != token:
                continue
            if self.faulty and self.random.random() < 0.03:
                self.note(f"{client.name} does not hear")
                continue
            client.token = None
            client.next_ms = self.world.now + self.random.randrange(1, BEAT_MS)
            self.hear(client, message)

    def hear(self, client: Client, message: Any) -> None:
        kind = type(message).__name__
        code = int(getattr(message, "error_code", 0))
        if kind == "OffsetCommitResponse":
            code = int(message.topics[0].partitions[0].error_code)
        self.note(f"{client.name} hears {kind} {code}")
        if kind == "LeaveGroupResponse" or (
            kind == "ConsumerGroupHeartbeatResponse" and message.member_epoch < 0
        ):
            return
        if code == errors.MEMBER_ID_REQUIRED:
            client.id = message.member_id
        elif code in REJOIN:
            self.reset(client)
        elif code in LATER:
            client.next_ms += SESSION_MS // 2
        elif code == errors.ILLEGAL_GENERATION:
            client.stage, client.owned, client.stale = "join", frozenset(), False
        elif code == errors.REBALANCE_IN_PROGRESS:
            client.stage = "join" if kind != "OffsetCommitResponse" else client.stage
        elif code == errors.STALE_MEMBER_EPOCH:
            pass
        elif code:
            raise AssertionError(f"{client.name} must not hear {code} of {kind}")
        else:
            self.hear_well(client, kind, message)

    def hear_well(self, client: Client, kind: str, message: Any) -> None:
        if kind == "ConsumerGroupHeartbeatResponse":
            client.epoch = message.member_epoch
            if message.assignment is not None:
                names = {
                    one.topic_id: name for name, one in self.world.image.topics_by_name.items()
                }
                client.owned = frozenset(
                    (names[one.topic_id.bytes], partition)
                    for one in message.assignment.topic_partitions
                    for partition in one.partitions
                )
        elif kind == "JoinGroupResponse":
            client.id, client.epoch = message.member_id, message.generation_id
            client.roster = () if message.skip_assignment else tuple(message.members)
            client.stage = "sync"
        elif kind == "SyncGroupResponse":
            given = frozenset(
                (topic, one)
                for topic, numbers in embedded.assignment(message.assignment).items()
                for one in numbers
            )
            lost = client.owned - given
            client.owned = given
            client.stage = "join" if lost and self.cooperative else "work"

    # What holds always ----------------------------------------------------------------------------

    def members(self) -> list[Client]:
        group = self.group()
        return [] if group is None else [c for c in self.clients if c.id in group.members]

    def check(self) -> None:
        group = self.group()
        owner: dict[Place, str] = {}
        if group is not None:
            self._mark_stale(group)
        for client in self.members():
            if client.stale:
                continue
            for place in sorted(client.owned):
                other = owner.setdefault(place, client.name)
                assert other == client.name, f"{place}: both {other} and {client.name}"
            if isinstance(group, ConsumerGroup):
                image = self.world.image
                allowed = {
                    (image.topics_by_id[topic].name, number)
                    for topic, number in held(group, client.id)
                }
                assert client.owned <= allowed, f"{client.name} believes too much"

    def _mark_stale(self, group: Any) -> None:
        """The classic protocol leaves static members in the group who do not come: they are told
        at their next request, others work on their partitions meanwhile."""
        became, self.kind = self.kind != group.KIND, group.KIND
        self.kinds[group.KIND] = None
        for client in self.members():
            if client.classic and client.instance is not None:
                if isinstance(group, ClassicGroup):
                    client.stale = client.stage != "join" and client.epoch < group.generation
                elif became:
                    client.stale = client.epoch < group.current(client.id).epoch

    def settled(self) -> bool:
        """Everybody is in, owns what it is to own, and nothing that is read lacks an owner."""
        group, members = self.group(), self.members()
        if (
            group is None
            or len(members) != len(self.clients)
            or (len(group.members) != len(members))
        ):
            return False
        read = dict.fromkeys(topic for one in self.clients for topic in one.topics())
        owned = {place for one in members for place in one.owned}
        if isinstance(group, ClassicGroup):
            working = all(one.stage == "work" and one.epoch == group.generation for one in members)
            return group.state == STABLE and working and {topic for topic, _ in owned} == set(read)
        topics = self.world.image.topics_by_name
        wanted = {(name, p) for name in read for p in range(len(topics[name].partitions))}
        return group.state_name == "Stable" and owned == wanted


def by_topic(places: frozenset[Place]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for topic, partition in sorted(places):
        found[topic] = (*found.get(topic, ()), partition)
    return found


def subscription(topics: tuple[str, ...], owned: frozenset[Place]) -> bytes:
    """A version 1 subscription of the consumer protocol."""

    def text(one: str) -> bytes:
        return len(one).to_bytes(2, "big") + one.encode()

    def many(rows: list[bytes]) -> bytes:
        return len(rows).to_bytes(4, "big") + b"".join(rows)

    rows = [
        text(topic) + many([one.to_bytes(4, "big") for one in numbers])
        for topic, numbers in by_topic(owned).items()
    ]
    return b"\0\1" + many([text(one) for one in topics]) + b"\xff" * 4 + many(rows)
