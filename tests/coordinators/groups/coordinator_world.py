"""A shard with its log, driven by requests that went over the wire and back."""

from itertools import count
from types import SimpleNamespace

from appliance.coordinators.groups.classic_state import EMPTY, PENDING_BYTES, STABLE
from appliance.coordinators.groups.consumer_state import bytes_of
from appliance.coordinators.groups.settings import GroupSettings
from appliance.coordinators.groups.shard import GroupShard
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.shard import ACTIVE
from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft
from appliance.wire.build import build, response
from appliance.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    request_type,
)
from appliance.wire.plain import encode
from tests.callers import rights

START_MS = 1_000_000


def image_of(**topics: int) -> MetadataImage:
    """Topics by name with their number of partitions; ids are the names filled up."""
    image = MetadataImage()
    for name, partitions in topics.items():
        add_topic(image, name, name.encode().ljust(16, b"."), partitions)
    return image


def add_topic(image: MetadataImage, name: str, topic_id: bytes, partitions: int) -> None:
    image.apply(image.applied_offset + 1, kraft.TopicRecord(name=name, topic_id=topic_id))
    for index in range(partitions):
        record = kraft.PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=(1,),
            isr=(1,),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=(b"d" * 16,),
        )
        image.apply(image.applied_offset + 1, record)


def held_by(group):
    """Bytes of what its members say, and of ids that were given out."""
    if group.KIND == "classic":
        given = sum(PENDING_BYTES + len(one) for one in group.pending_joins)
        return given + sum(member.held_bytes() for member in group.members.values())
    return sum(map(bytes_of, group.members.values()))


class World:
    """log: every record ever written, in order. now: ms. check_every: turns between two checks."""

    check_every = 1

    def __init__(self, image: MetadataImage | None = None, **settings: int) -> None:
        self.image = image_of(t=4, u=4) if image is None else image
        self.settings = GroupSettings(**{"partitions": 1, **settings})
        self.now = START_MS
        self.log: list[tuple[bytes, bytes | None]] = []
        self.turns = 0
        self.tokens = count(1)
        self.ids = count(1)
        self.calls: dict[int, Call] = {}
        self.shard = self.new_shard()
        self.carry_out(self.shard.activate(self.now))

    def new_id(self) -> bytes:
        return next(self.ids).to_bytes(16, "big")

    def new_shard(self, partition: int = 0) -> GroupShard:
        return GroupShard(partition, self.settings, self.image, self.new_id)

    def ask(self, key: int, version: int, **fields):
        """(token, answers that came out of it: [(token, decoded message)])."""
        message = build(request_type(key, version), fields)
        request = decode_request(key, version, encode_request(message))
        token = next(self.tokens)
        self.calls[token] = Call(key, version, token, rights("app", address="127.0.0.1"))
        return token, self.carry_out(self.shard.handle(self.calls[token], request, self.now))

    def answer(self, key: int, version: int, **fields):
        """The answer to a request that is not parked."""
        token, answers = self.ask(key, version, **fields)
        assert [one for one, _ in answers] == [token], answers
        return answers[0][1]

    def tick(self):
        return self.carry_out(self.shard.tick(self.now))

    def pass_time(self, ms: int):
        """Live through `ms`, waking up whenever the shard asks for it."""
        until = self.now + ms
        answers = []
        while self.shard.next_deadline_ms <= until:
            self.now = max(self.now, self.shard.next_deadline_ms)
            answers += self.tick()
        self.now = until
        return answers

    def carry_out(self, outcome):
        self.log += outcome.records
        self.turns += 1
        if self.turns % self.check_every == 0:
            self.check()
        return [(token, self.decoded(token, values)) for token, values in outcome.responses]

    def decoded(self, token: int, values):
        call = self.calls.pop(token)
        body = encode_response(response(call.api_key, call.version, values))
        assert body == encode(call.api_key, call.version, values)
        return decode_response(call.api_key, call.version, body)

    def restart(self) -> None:
        """Die and load what a compacted log would hold. Parked requests die with it."""
        self.calls.clear()
        newest: dict[bytes, bytes | None] = {}
        for key, value in self.log:
            newest.pop(key, None)
            newest[key] = value
        self.log = [(key, value) for key, value in newest.items() if value is not None]
        self.shard = self.replayed()
        self.carry_out(self.shard.activate(self.now))

    def replayed(self) -> GroupShard:
        shard = self.new_shard()
        for offset, (key, value) in enumerate(self.log):
            shard.replay(key, value, offset)
        return shard

    def check(self) -> None:
        """Replaying all records must give what the live shard holds."""
        if self.shard.phase != ACTIVE:
            return
        groups = self.shard.state.groups.values()
        said = sum(len(g.group_id) + held_by(g) for g in groups)
        assert self.shard.held_bytes() == said, "what is kept is counted"
        other = self.replayed()
        assert other.state.offsets.by_group == self.shard.state.offsets.by_group
        assert list(other.state.groups) == list(self.shard.state.groups)
        for name, live in self.shard.state.groups.items():
            if live.state in (STABLE, EMPTY):
                assert durable(other.state.groups[name]) == durable(live)


def durable(group):
    """What a classic group's record says."""
    return SimpleNamespace(
        state=group.state,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader,
        subscribed=group.subscribed,
        members=[
            (
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                member.metadata(group.protocol),
                member.assignment,
            )
            for member in group.members.values()
        ],
    )


def subscription(*topics: str) -> bytes:
    """A version 0 subscription of the consumer protocol."""
    names = b"".join(len(one).to_bytes(2, "big") + one.encode() for one in topics)
    return b"\x00\x00" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"
