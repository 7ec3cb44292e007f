"""A kind of coordinator in a few lines: it counts. It shows what every kind gets from the runtime,
with the rules of none.

EndTxn of a name with `committed` adds one to the name's count; without it, it waits until somebody
adds or until a second has passed, and is answered CONCURRENT_TRANSACTIONS then.
"""

from typing import ClassVar

from appliance.base import errors
from appliance.config.internal_topics import InternalTopic
from appliance.coordinators.runtime.kind import Kind, partition_of, unserved_code
from appliance.coordinators.runtime.records import RecordTypes
from appliance.coordinators.runtime.shard import Shard
from appliance.coordinators.runtime.turn import Timed
from appliance.metadata.image import MetadataImage
from appliance.wire import messages
from appliance.wire.declared import of, record

ADD = 26
TOPIC = InternalTopic("__transaction_state", "name", "counts", "", "", {}, {})
TALLIES = RecordTypes()
PATIENCE_MS = 1000


@record
class Count:
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 1
    count: int = of("int32")


@TALLIES.declare(0, value=Count)
@record
class Name:
    TYPE: ClassVar = 0
    name: str = of("string")


class Waiting(Timed):
    def __init__(self, name, call):
        super().__init__()
        self.name = name
        self.call = call

    def wake_up(self, turn):
        if turn.state.waiting.get(self.name) is self:
            del turn.state.waiting[self.name]
            turn.answer(self.call, answer(errors.CONCURRENT_TRANSACTIONS))


class Tally:
    def __init__(self, partition, partitions, image):
        self.partition = partition
        self.partitions = partitions
        self.image = image
        self.counts = {}
        self.waiting = {}


def answer(code):
    return {"throttle_time": 0, "error_code": code}


def add(turn, call, request):
    name, state = request.transactional_id, turn.state
    waiting = state.waiting.pop(name, None)
    if waiting is not None:
        turn.answer(waiting.call, answer(errors.NONE))
    if request.committed:
        turn.write_record(Name(name=name), Count(count=state.counts.get(name, 0) + 1))
        turn.answer(call, answer(errors.NONE))
    else:
        state.waiting[name] = Waiting(name, call)
        turn.wake_at(state.waiting[name], turn.now_ms + PATIENCE_MS)


def count(state, key, value):
    if value is None:
        state.counts.pop(key.name, None)
    else:
        state.counts[key.name] = value.count


class TallyShard(Shard[Tally]):
    HANDLERS: ClassVar = {ADD: add}
    REFUSALS: ClassVar = {ADD: lambda turn, call, request, code: answer(code)}
    RECORDS: ClassVar = TALLIES
    APPLY: ClassVar = {Name: count}

    def follow(self, image):
        self.state.image = image

    def wrong(self, call, request):
        return errors.NONE if request.transactional_id else errors.INVALID_REQUEST

    def owns_request(self, request):
        state = self.state
        return partition_of(request.transactional_id, state.partitions) == state.partition

    def loaded(self, turn):
        pass

    def parked(self):
        for waiting in self.state.waiting.values():
            yield waiting.call, lambda call, code: answer(code)

    def forget_state(self):
        self.state.counts.clear()
        self.state.waiting.clear()

    def forget_topic(self, turn, name, topic_id):
        if name in turn.state.counts:
            turn.write_record(Name(name=name), None)

    def size(self):
        return len(self.state.counts)


class TallyKind(Kind):
    KEY_TYPE: ClassVar = 1
    TOPIC: ClassVar = TOPIC
    APIS: ClassVar = frozenset((ADD,))
    LIST: ClassVar = 66

    def grows(self, call, request):
        return request.committed

    def shard(self, place, config, image, lent):
        return TallyShard(Tally(place.partition, place.partitions, image))

    def parts(self, key, version, body, partitions):
        request = messages.decode_request(key, version, body)
        return [(partition_of(request.transactional_id, partitions), body)]

    def splice(self, key, version, answers):
        raise AssertionError("one name, one partition")

    def unserved(self, call, request, partition, partitions, *, is_led=False):
        nobody = TallyShard(Tally(partition, max(partitions, 1), MetadataImage()))
        return nobody.refuse(call, request, unserved_code(is_led=is_led))
