"""A transaction shard with its log, driven by requests that went over the wire and back; markers
are written when the test says so."""

from itertools import count

from appliance.base import errors
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.shard import ACTIVE
from appliance.coordinators.transactions.delayed_requests import ID_PATIENCE_MS, PATIENCE_MS
from appliance.coordinators.transactions.settings import TransactionSettings
from appliance.coordinators.transactions.shard import TransactionShard
from appliance.coordinators.transactions.state import move_transaction
from appliance.coordinators.transactions.states import NAMES, PREPARED
from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft
from appliance.wire.build import build
from appliance.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    request_type,
)
from appliance.wire.plain import encode
from tests.callers import rights

START_MS = 1_000_000
TIMEOUT_MS = 60_000
INIT, ADD, OFFSETS, END, DESCRIBE, LIST = 22, 24, 25, 26, 65, 66
CONCURRENT = errors.CONCURRENT_TRANSACTIONS
FENCED = errors.PRODUCER_FENCED
MAPPING = errors.INVALID_PRODUCER_ID_MAPPING
INVALID = errors.INVALID_TXN_STATE
NOBODY = (-1, -1)


def image_at(version: int) -> MetadataImage:
    """t with four partitions, committed offsets with five; the finalized transaction.version."""
    image = MetadataImage()

    def apply(record):
        image.apply(image.applied_offset + 1, record)

    apply(kraft.FeatureLevelRecord(name="transaction.version", feature_level=version))
    for name, partitions in (("t", 4), ("__consumer_offsets", 5)):
        topic_id = name.encode()[:16].ljust(16, b".")
        apply(kraft.TopicRecord(name=name, topic_id=topic_id))
        for index in range(partitions):
            apply(
                kraft.PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=(1,),
                    isr=(1,),
                    leader=1,
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=(b"d" * 16,),
                )
            )
    return image


class World:
    """log: every record ever written, in order. now: ms. endings: whose markers are to be written.
    ids: the producer ids that may be given; none left: one must be asked for. rights: of who asks.
    check_up_to: how long the log may be for a check after each turn."""

    check_up_to = 100

    def __init__(self, version: int = 2, **settings: int) -> None:
        self.image = image_at(version)
        self.settings = TransactionSettings(**{"partitions": 1, **settings})
        self.now = START_MS
        self.log: list[tuple[bytes, bytes | None]] = []
        self.tokens = count(1)
        self.ids = iter(range(1000, 9000))
        self.epoch = 0
        self.rights = rights()
        self.endings = []
        self.openings = []
        self.calls: dict[int, Call] = {}
        self.answers: dict[int, object] = {}
        self.shard = self.new_shard()
        self.carry_out(self.shard.activate(self.now))

    def new_shard(self) -> TransactionShard:
        return TransactionShard(
            0, self.epoch, self.settings, self.image, lambda: next(self.ids, None)
        )

    def ask(self, key: int, version: int, **fields):
        """The answer, decoded; of who waits that after its patience."""
        token = self.send(key, version, **fields)
        for ms in (PATIENCE_MS, ID_PATIENCE_MS - PATIENCE_MS):
            if token not in self.answers:
                self.tick(ms)
        return self.answers.pop(token)

    def send(self, key: int, version: int, **fields) -> int:
        """The token of a request; its answer comes into `answers`."""
        message = build(request_type(key, version), fields)
        request = decode_request(key, version, encode_request(message))
        call = Call(key, version, next(self.tokens), self.rights)
        self.calls[call.token] = call
        self.carry_out(self.shard.handle(call, request, self.now))
        return call.token

    def carry_out(self, outcome) -> None:
        """What the shell does after a turn."""
        self.log += outcome.records
        for token, values in outcome.responses:
            key, version = self.calls[token].api_key, self.calls.pop(token).version
            self.answers[token] = decode_response(key, version, encode(key, version, values))
        self.endings += self.shard.take_endings()
        self.openings += self.shard.take_openings()
        self.check()

    def tick(self, ms: int = 0) -> None:
        self.now += ms
        self.carry_out(self.shard.tick(self.now))

    def mark(self, *partitions) -> None:
        """Markers of the oldest ending are written in these partitions, or in all of them, which
        ends it."""
        ending = self.endings[0] if partitions else self.endings.pop(0)
        self.carry_out(self.shard.marked(ending, partitions or ending.partitions, self.now))

    def restart(self, kept: int | None = None) -> None:
        """Another coordinator loads the log: all of it, or the first `kept` records."""
        if kept is not None:
            del self.log[kept:]
        self.epoch += 1
        self.endings = []
        self.openings = []
        self.carry_out(self.shard.resign())
        self.shard = self.replayed()
        self.carry_out(self.shard.activate(self.now))

    def replayed(self) -> TransactionShard:
        shard = self.new_shard()
        for offset, (key, value) in enumerate(self.log):
            shard.replay(key, value, offset)
        return shard

    def transactions(self, shard=None):
        known = (shard or self.shard).state.known
        return {name: one.transaction for name, one in known.items()}

    def check(self) -> None:
        """Replaying the log gives what wrote it, and what is decided is being ended."""
        if self.shard.phase != ACTIVE or len(self.log) > self.check_up_to:
            return
        assert self.transactions(self.replayed()) == self.transactions()
        under_way = {ending.number for ending in self.endings}
        for known in self.shard.state.known.values():
            if known.transaction.state in PREPARED and known.unmarked:
                assert known.unmarked <= known.transaction.partitions
            elif known.transaction.state in PREPARED:
                raise AssertionError("nobody completes it")
        assert len(under_way) == len(self.endings)

    # Requests as clients make them ----------------------------------------------------------------

    def init(self, name="x", version=5, timeout=TIMEOUT_MS, producer=NOBODY):
        """An error code, or producer id and epoch."""
        answer = self.ask(
            INIT,
            version,
            transactional_id=name,
            transaction_timeout=timeout,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        assert (answer.producer_id == -1) == bool(answer.error_code.value)
        return answer.error_code.value or (answer.producer_id, answer.producer_epoch)

    def add(self, producer, *indexes, name="x", topic="t", version=3, verify=False):
        """The error code of each partition."""
        one = {
            "producer_id": producer[0],
            "producer_epoch": producer[1],
            "topics": [{"name": topic, "partitions": indexes}],
            "transactional_id": name,
        }
        if version > 3:
            answer = self.ask(ADD, version, transactions=[one | {"verify_only": verify}])
            (result,) = answer.results_by_transaction
            topics = result.topic_results
        else:
            fields = {f"v3_and_below_{field}": value for field, value in one.items()}
            topics = self.ask(ADD, version, **fields).results_by_topic_v3_and_below
        return [p.partition_error_code.value for t in topics for p in t.results_by_partition]

    def end(self, producer, commit=True, name="x", version=3):
        """An error code; of version 5 without one the next producer id and epoch."""
        answer = self.ask(
            END,
            version,
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        code = answer.error_code.value
        return code if version < 5 or code else (answer.producer_id, answer.producer_epoch)

    def state(self, name="x") -> str:
        known = self.shard.state.known.get(name)
        return NAMES[known.transaction.state] if known else "none"

    def jump(self, epoch: int, name="x"):
        """As if so many transactions had been; the producer then."""
        turn = self.shard._turn(self.now)
        known = self.shard.state.known[name]
        move_transaction(turn, name, known.transaction._replace(epoch=epoch))
        self.carry_out(turn)
        return known.transaction.producer_id, epoch

    def delete_topic(self, name="t") -> None:
        topic_id = self.image.topics_by_name[name].topic_id
        self.image.apply(self.image.applied_offset + 1, kraft.RemoveTopicRecord(topic_id=topic_id))
        self.shard.follow(self.image)
        self.carry_out(self.shard.on_topic_deleted(name, topic_id, self.now))
