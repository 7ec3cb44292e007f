"""What stock clients of a cluster see while it suffers, and what none of them may ever see.

`Watched` writes and reads, `Pair` are two members of a group that commit what they have read,
`Marks` asks for the ends of partitions all the time.
"""

import threading
import time
from collections import Counter, defaultdict

import confluent_kafka as ck

from tests.cluster.cluster_load import ClusterLoad
from tests.transactions.reading import committed

LIMIT_S = 60
ASKS_S = 3
"""How long an answer that is only looked at may take."""
SOON = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 200, "log_level": 0}


class Watched(ClusterLoad):
    """Slow enough that what waits waits for the cluster. `produced` and `read`: the longest waits
    since `watch`, in seconds."""

    at_most = 500
    pause_s = 0.02

    def __init__(self, nodes, topic, bootstrap=None, settings=None):
        super().__init__(nodes, topic, bootstrap, settings)
        self.next = Counter()
        self.skipped = []
        self.watch()

    def watch(self):
        now = time.monotonic()
        self.produced = self.read = 0.0
        self.last = dict.fromkeys(range(self.partitions), now)

    def _delivered(self, error, message):
        super()._delivered(error, message)
        self.produced = max(self.produced, message.latency() or 0.0)

    def _took(self, message):
        super()._took(message)
        now, at = time.monotonic(), message.partition()
        self.read = max(self.read, now - self.last[at])
        self.last[at] = now
        if message.offset() != self.next[at]:
            self.skipped.append(f"{at}: {message.offset()} came where {self.next[at]} was next")
        self.next[at] = message.offset() + 1

    def check_order(self):
        """Of each partition the consumer was given every offset, one after the other."""
        assert not self.skipped, self.skipped[:5]

    def finish(self):
        """Write no more; whatever was acknowledged is acknowledged, and the consumer has it."""
        super().finish()
        behind = ends(self.acknowledged)
        until = time.monotonic() + LIMIT_S
        while short := {at: end for at, end in behind.items() if self.next[at] < end}:
            assert time.monotonic() < until, f"{self.next} was read, and {short} acknowledged"
            for message in self.consumer.consume(500, 0.1):
                if not message.error():
                    self._took(message)
        self.check_order()


def ends(acknowledged):
    """Partition → offset behind the last one. acknowledged: as `Load` keeps it."""
    found = Counter()
    for at, offset in list(acknowledged.values()):
        if offset is not None:
            found[at] = max(found[at], offset + 1)
    return found


class Pair:
    """Two members of one group that share a load's partitions. Each commits what it has read, and
    waits for the answer: what was answered is the floor below which the group never begins again.

    A commit that nobody answered may still come true, and late: a group may stand there, too.
    """

    def __init__(self, bootstrap, load, group="pair"):
        self.bootstrap, self.load, self.group = bootstrap, load, group
        self.ending = threading.Event()
        self.changed = threading.Condition()
        self.floor = Counter()  # partition → what was committed, for sure
        self.doubtful = defaultdict(set)  # partition → what may have been committed
        self.seen = set()  # (partition, offset)
        self.wrong = []
        self.told = []
        self.members = [Member(self, number) for number in range(2)]

    def __enter__(self):
        for one in self.members:
            one.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for one in self.members:
            one.join(2 * LIMIT_S)

    def go_on(self):
        """Wait until the group has committed all that is acknowledged by now."""
        wanted = ends(self.load.settled())

        def done():
            return all(self.floor[at] >= end for at, end in wanted.items())

        with self.changed:
            assert self.changed.wait_for(done, LIMIT_S), (
                f"the group stands at {dict(self.floor)} of {dict(wanted)}; its members heard"
                f" {self.told[-5:]}"
            )
        self.check()

    def check(self):
        """While the cluster is whole: what the group has committed is what it was told of."""
        before = Counter(self.floor)
        found = committed(self.bootstrap, self.group, self.load.topic, self.load.partitions)
        for at, offset in found.items():
            self.stands(at, offset, before[at], "the group is at")
        assert not self.wrong, self.wrong[:5]

    def stands(self, at, offset, floor, what):
        if offset < floor and offset not in self.doubtful[at]:
            self.wrong.append(f"{what} {offset} of {at}, and {floor} was committed")

    def finish(self):
        """When nobody writes any more: everything was read, and committed."""
        self.go_on()
        self.ending.set()
        for one in self.members:
            one.join(2 * LIMIT_S)
            assert not one.is_alive(), f"a member does not end: {self.told[-5:]}"
        told = {place for place in self.load.acknowledged.values() if place[1] is not None}
        missing = told - self.seen
        assert not missing, f"{len(missing)} acknowledged, not given to the group: {missing!s:.99}"
        self.check()


class Member(threading.Thread):
    """next: partition → the offset that is to come, of those that it was given."""

    def __init__(self, pair, number):
        super().__init__(daemon=True, name=f"member {number}")
        self.pair = pair
        self.next, self.begins, self.committed = {}, {}, {}
        self.client = ck.Consumer({
            "bootstrap.servers": pair.bootstrap, "group.id": pair.group,
            "enable.auto.commit": False, "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100, "error_cb": pair.told.append,
            "socket.timeout.ms": 10_000, **SOON,
        })  # fmt: skip
        self.client.subscribe(
            [pair.load.topic], on_assign=self._given, on_revoke=self._lost, on_lost=self._lost
        )

    def _given(self, _, places):
        with self.pair.changed:
            self.begins |= {one.partition: self.pair.floor[one.partition] for one in places}

    def _lost(self, _, places):
        for one in places:
            for known in (self.next, self.begins, self.committed):
                known.pop(one.partition, None)

    def run(self):
        try:
            while not self.pair.ending.is_set():
                for message in self.client.consume(200, 0.1):
                    if message.error():
                        self.pair.told.append(message.error())
                    else:
                        self._took(message.partition(), message.offset())
                self._commit()
        finally:
            self.client.close()

    def _took(self, at, offset):
        if (floor := self.begins.pop(at, None)) is not None:
            self.pair.stands(at, offset, floor, f"{self.name} begins at")
        elif offset != self.next.get(at, offset):
            self.pair.wrong.append(f"{self.name}, {at}: {offset}, where {self.next[at]} was next")
        self.next[at] = offset + 1
        self.pair.seen.add((at, offset))

    def _commit(self):
        pair = self.pair
        wanted = {at: to for at, to in self.next.items() if self.committed.get(at) != to}
        if not wanted:
            return
        with pair.changed:
            for at, to in wanted.items():
                pair.doubtful[at].add(to)
        places = [ck.TopicPartition(pair.load.topic, at, to) for at, to in wanted.items()]
        try:
            answered = self.client.commit(offsets=places, asynchronous=False)
        except ck.KafkaException as error:
            pair.told.append(error)
            return
        with pair.changed:
            for one in answered:
                if one.error:
                    pair.told.append(one.error)
                    continue
                at, to = one.partition, wanted[one.partition]
                self.committed[at] = to
                pair.floor[at] = max(pair.floor[at], to)
                pair.doubtful[at].discard(to)
            pair.changed.notify_all()


class Marks(threading.Thread):
    """Asks for the ends of all partitions, one after the other: none goes back, and none that a
    reader of committed records may see is behind the other.

    topics: name → number of partitions.
    """

    PAUSE_S = 0.05

    def __init__(self, bootstrap, topics):
        super().__init__(daemon=True)
        self.places = [(topic, at) for topic, count in topics.items() for at in range(count)]
        self.ending = threading.Event()
        self.known = Counter()  # (level, topic, partition) → end
        self.starts = Counter()
        self.asked = 0
        self.wrong = []
        self.clients = {
            level: ck.Consumer({
                "bootstrap.servers": bootstrap, "group.id": "unused", "isolation.level": level,
                "socket.timeout.ms": 10_000, **SOON,
            })
            for level in ("read_committed", "read_uncommitted")
        }  # fmt: skip

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join(LIMIT_S)
        for client in self.clients.values():
            client.close()

    def run(self):
        while not self.ending.wait(self.PAUSE_S):
            self.look()

    def look(self):
        for topic, at in self.places:
            stable, high = (self._ask(level, topic, at) for level in self.clients)
            if None not in (stable, high) and stable > high:
                self.wrong.append(f"{topic}-{at}: stable to {stable}, and shown to {high}")

    def _ask(self, level, topic, at):
        """The end; None while nobody says so."""
        place = ck.TopicPartition(topic, at)
        try:
            start, end = self.clients[level].get_watermark_offsets(place, ASKS_S, cached=False)
        except ck.KafkaException:
            return None
        key = level, topic, at
        for name, known, now in (("start", self.starts, start), ("end", self.known, end)):
            if now < known[key]:
                self.wrong.append(f"{level}, {topic}-{at}: the {name} was {known[key]}, is {now}")
            known[key] = max(known[key], now)
        self.asked += 1
        return end

    def check(self):
        assert not self.wrong, self.wrong[:5]
