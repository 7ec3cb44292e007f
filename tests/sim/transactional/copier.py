"""Producers that read on from the offset which they committed last, and write what they read
within transactions: whoever does that writes everything exactly once."""

from collections import deque

from sim.transactional.asking import RETRIED, Asking, Lost, Refused
from sim.transactional.machine import OUTPUTS

from appliance.base import errors
from appliance.wire.batch import NewRecord, build_batch
from appliance.wire.batch_header import read_header

PRODUCE, OFFSETS_OF, INIT, ADD, ADD_OFFSETS, END, COMMIT = 0, 9, 22, 24, 25, 26, 28
TIMEOUT_MS = 150
"""Of a transaction."""
IN_FLIGHT = 2  # requests to write


def goes_to(number):
    """The partitions into which the copy of this record is written, by their place in OUTPUTS."""
    first = number % len(OUTPUTS)
    return (first,) if number % 2 else (first, (first + 1) % len(OUTPUTS))


class Abandoned(Exception):
    """The program ends; the next one begins."""


class Hurried(Exception):
    """It aborts without waiting for what it has sent, which may still be written: as old clients
    do, whose epoch stays the same (KIP-890). Also when a batch can never be written any more."""


class Copier(Asking):
    """One of the instances with this transactional id, one of which fences the other.

    rising: its epoch rises with each transaction, and partitions join it when they are written
    (KIP-890); else it says so before. careful: it commits what it begins, and waits for nothing."""

    going_on = True
    careful = False

    def __init__(self, world, name, transactional_id, books, *, rising):
        super().__init__(world, name)
        self.id = transactional_id
        self.books = books
        self.rising = rising
        self.forgets = rising  # what comes late is refused by its epoch alone

    def live(self):
        expected = (-1, -1)
        while self.going_on:
            try:
                yield from self.session(expected)
            except Refused as refused:
                self.world.reached("a producer is fenced")
                self.say(f"is told {refused.code}")
                again = self.world.rng.random() < 0.5 and expected == (-1, -1)
                expected = self.producer if again else (-1, -1)
            except Abandoned:
                self.world.reached("a program abandons its transaction")
                self.say("abandons")
                expected = (-1, -1)
            yield self.world.rng.uniform(1, 60)

    def session(self, expected):
        rng = self.world.rng
        self.producer = expected
        found = yield from self.persist(
            INIT, 5 if self.rising else 4,
            {
                "transactional_id": self.id, "transaction_timeout": TIMEOUT_MS,
                "producer_id": expected[0], "producer_epoch": expected[1],
            },
        )  # fmt: skip
        self.renew((found.producer_id, found.producer_epoch))
        self.books.took_over(self.producer)
        least = self.books.done[self.id]
        position = yield from self.committed()
        self.books.fetched(self.id, position, least)
        while self.going_on:
            numbers = range(position, position + rng.randint(1, 3))
            if (yield from self.transaction(numbers)):
                position = numbers.stop
            self.perhaps_abandon()
            yield rng.uniform(0, 10)

    def renew(self, producer):
        self.producer = producer
        self.sequences = dict.fromkeys(OUTPUTS, 0)

    def committed(self):
        topics = [{"name": "t", "partition_indexes": (0,)}]
        found = yield from self.persist(
            OFFSETS_OF, 7, {"group_id": self.id, "topics": topics, "require_stable": True},
            lambda found: found.error_code or found.topics[0].partitions[0].error_code,
        )  # fmt: skip
        return max(found.topics[0].partitions[0].committed_offset, 0)

    def drop(self):
        """The program is killed, and nobody goes on where it was."""
        self.say("is killed")
        self.living.close()
        self.asked.clear()

    # A transaction --------------------------------------------------------------------------------

    @property
    def mine(self):
        return {
            "transactional_id": self.id,
            "producer_id": self.producer[0],
            "producer_epoch": self.producer[1],
        }

    def transaction(self, numbers):
        """Whether it was committed; False: it was aborted."""
        rng = self.world.rng
        attempt = self.books.begins(self.id, numbers)
        copies = {}
        for number in numbers:
            for place in goes_to(number):
                value = b"%s:%d:%d" % (self.id.encode(), number, attempt)
                copies.setdefault(OUTPUTS[place], []).append(value)
        if not self.rising:
            yield from self.add(copies)
        steps = [self.write(copies), self.commit_offset(numbers.stop)]
        if rng.random() < 0.3:
            steps.reverse()
        try:
            for step in steps:
                yield from step
                self.perhaps_abandon()
        except Hurried:
            yield from self.finish(attempt, commit=False)
            raise Abandoned from None
        if rng.random() < 0.05 and not self.careful:
            yield rng.uniform(0.5, 1.5) * TIMEOUT_MS
        commit = rng.random() < 0.8 or self.careful
        yield from self.finish(attempt, commit=commit)
        return commit

    def finish(self, attempt, *, commit):
        self.books.ends_by(attempt, commit=commit)
        fields = {**self.mine, "committed": commit}
        found = yield from self.persist(END, 5 if self.rising else 4, fields)
        self.books.ended(attempt, commit=commit)
        if self.rising:
            self.renew((found.producer_id, found.producer_epoch))

    def perhaps_abandon(self):
        if self.world.rng.random() < 0.05 and not self.careful:
            raise Abandoned

    def add(self, partitions):
        topics = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        fields = {f"v3_and_below_{name}": value for name, value in self.mine.items()}
        fields["v3_and_below_topics"] = [
            {"name": name, "partitions": tuple(found)} for name, found in topics.items()
        ]
        yield from self.persist(ADD, 3, fields, lambda found: max(codes_of_added(found)))

    def commit_offset(self, offset):
        if not self.rising:
            yield from self.persist(ADD_OFFSETS, 3, {**self.mine, "group_id": self.id})
        one = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        fields = {
            "group_id": self.id, "generation_id": -1, "member_id": "", "group_instance_id": None,
            "topics": [{"name": "t", "partitions": [one]}],
        }  # fmt: skip
        yield from self.persist(
            COMMIT, 5 if self.rising else 4, self.mine | fields,
            lambda found: found.topics[0].partitions[0].error_code,
        )  # fmt: skip

    # Records --------------------------------------------------------------------------------------

    def write(self, copies):
        """Until all is acknowledged; of each partition some batches ahead of the answers, but what
        is sent again goes alone, as Kafka's producers do it."""
        left = {}
        self.lives = {}  # by partition: which one its home had when the first batch was sent
        tried = set()
        for partition, values in copies.items():
            size = self.world.rng.randint(1, 2)
            parts = [values[at : at + size] for at in range(0, len(values), size)]
            left[partition] = deque(self.batch(partition, part) for part in parts)
        while left:
            depth = self.world.rng.randint(1, IN_FLIGHT)
            sent = [
                {
                    partition: batches[n]
                    for partition, batches in left.items()
                    if n < len(batches) and (n == 0 or batches[1] not in tried)
                }
                for n in range(depth)
            ]
            sent = [one for one in sent if one]
            tried.update(batch for one in sent for batch in one.values())
            for partition in left:
                self.lives.setdefault(partition, self.books.life_of(partition))
            try:
                found = yield [self.produce(one) for one in sent]
            except Lost:
                if self.world.rng.random() < 0.3 and not self.careful:
                    raise Hurried from None
                yield 3
                continue
            for batches, one in zip(sent, found, strict=True):
                self.take(left, batches, one)
            if left:
                self.perhaps_abandon()
                yield self.world.rng.uniform(1, 10)

    def batch(self, partition, values):
        sequence = self.sequences[partition]
        self.sequences[partition] += len(values)
        records = [NewRecord(self.world.clock.wall_ms(), None, value) for value in values]
        return bytes(
            build_batch(
                records, producer_id=self.producer[0], producer_epoch=self.producer[1],
                base_sequence=sequence, transactional=True,
            )
        )  # fmt: skip

    def produce(self, batches):
        topics = {}
        for (topic, index), batch in batches.items():
            topics.setdefault(topic, []).append({"index": index, "records": batch})
        fields = {
            "transactional_id": self.id, "acks": -1, "timeout": 1000,
            "topic_data": [
                {"name": name, "partition_data": found} for name, found in topics.items()
            ],
        }  # fmt: skip
        return PRODUCE, 12 if self.rising else 11, fields

    def take(self, left, batches, found):
        for topic in found.responses:
            for one in topic.partition_responses:
                partition, code = (topic.name, one.index), int(one.error_code)
                behind = left[partition][0] is not batches[partition]
                if code == errors.NONE and not behind:
                    left[partition].popleft()
                    if not left[partition]:
                        del left[partition]
                elif code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER:
                    if not behind:
                        self.check_overtaken(partition, batches[partition])
                        raise Hurried
                elif code not in RETRIED and code != errors.NONE:
                    raise self.refused(code)

    def check_overtaken(self, partition, batch):
        """What is next cannot be written. That may happen to the first batch of a producer that the
        partition does not know: its home was dead, and the batch behind it, sent before that was
        answered, found the next life, which has not seen the first one: when it stood in line
        already, for others are held up (`handlers/sequence_gap_guard.py`). It may begin anywhere,
        as with Apache Kafka; but since KIP-890 raises epochs, with 0 alone."""
        lost = f"{self.name}: what {partition} had acknowledged is gone"
        assert not self.rising and read_header(batch).base_sequence == 0, lost
        assert self.books.life_of(partition) != self.lives[partition], lost


def codes_of_added(found):
    return [
        one.partition_error_code
        for topic in found.results_by_topic_v3_and_below
        for one in topic.results_by_partition
    ]
