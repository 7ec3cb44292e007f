"""The same requests of transactional clients to Apache Kafka and to our coordinator, which no
network process reaches yet: `steps` plays them and gives what was answered to each."""

import time

from kio.schema.errors import ErrorCode

from tests.coordinators.transactions.transaction_world import (
    ADD,
    DESCRIBE,
    END,
    INIT,
    NOBODY,
    TIMEOUT_MS,
    World,
)

CODES = {code.name: code.value for code in ErrorCode}
LIMIT_S = 60


class Machine(World):
    """Markers are written as soon as somebody waits for them."""

    def settle(self, name):
        while self.endings:
            self.mark()

    def time_out(self, name):
        self.tick(TIMEOUT_MS)
        self.settle(name)


class ThroughTheWire:
    """The same questions to a broker. Producer ids are counted from 1000 in the order in which they
    come."""

    def __init__(self, link):
        self.link = link
        self.ids = {}

    def ask(self, key, version, **values):
        until = time.monotonic() + LIMIT_S
        while True:
            answer = self.link.ask(key, version, values)
            code = str(answer.get("error_code", "")).lower()
            if code not in ("not_coordinator", "coordinator_load_in_progress"):
                return answer
            assert time.monotonic() < until
            time.sleep(0.1)

    def _real(self, producer):
        back = {ours: theirs for theirs, ours in self.ids.items()}
        return {"producer_id": back.get(producer[0], producer[0]), "producer_epoch": producer[1]}

    def _told(self, answer):
        code = CODES[answer["error_code"].lower()]
        if code or answer.get("producer_id", -1) < 0:
            return code
        ours = self.ids.setdefault(answer["producer_id"], 1000 + len(self.ids))
        return ours, answer["producer_epoch"]

    def init(self, name="x", version=5, timeout=TIMEOUT_MS, producer=NOBODY):
        named = {"transactional_id": name, "transaction_timeout": timeout}
        return self._told(self.ask(INIT, version, **named, **self._real(producer)))

    def add(self, producer, *indexes, name="x", topic="t", version=3, verify=False):
        one = {"transactional_id": name, "topics": [{"name": topic, "partitions": list(indexes)}]}
        one |= self._real(producer)
        if version > 3:
            answer = self.ask(ADD, version, transactions=[one | {"verify_only": verify}])
            topics = answer["results_by_transaction"][0]["topic_results"]
        else:
            fields = {f"v3_and_below_{field}": value for field, value in one.items()}
            topics = self.ask(ADD, version, **fields)["results_by_topic_v3_and_below"]
        rows = [row for topic in topics for row in topic["results_by_partition"]]
        rows.sort(key=lambda row: row["partition_index"])
        return [CODES[row["partition_error_code"].lower()] for row in rows]

    def end(self, producer, commit=True, name="x", version=3):
        named = {"transactional_id": name, "committed": commit}
        return self._told(self.ask(END, version, **named, **self._real(producer)))

    def state(self, name="x"):
        (row,) = self.ask(DESCRIBE, 0, transactional_ids=[name])["transaction_states"]
        return row["transaction_state"]

    def settle(self, name):
        self._wait(name, "Prepare")

    def time_out(self, name):
        self._wait(name, "Ongoing")
        self._wait(name, "Prepare")

    def _wait(self, name, state):
        until = time.monotonic() + LIMIT_S
        while self.state(name).startswith(state):
            assert time.monotonic() < until
            time.sleep(0.05)


def steps(at):
    """What each request is answered."""
    return [*takes_over(at), *rises(at), *follows(at), *is_refused(at), *takes_too_long(at)]


def takes_over(at):
    """A client whose epoch stays, and another one that takes its id."""
    name = "stays"
    yield [at.init(name) for _ in range(3)]
    owner = at.init(name)
    yield at.add((owner[0], 1), 0, name=name), at.add((owner[0], 1), 0, name=name, version=1)
    yield at.add((77, 2), 0, name=name), at.add(owner, 0, 99, name=name)
    yield at.add(owner, 0, topic="none", name=name)
    yield at.end(owner, name=name), at.end(owner, False, name=name)
    yield at.add(owner, 0, 1, name=name), at.state(name)
    yield at.end((owner[0], 9), name=name), at.end((owner[0], 1), name=name, version=1)
    yield at.init(name)
    at.settle(name)
    yield at.state(name), at.init(name), at.end(owner, name=name), at.add(owner, 0, name=name)


def rises(at):
    """A client whose epoch rises: ends without a transaction, and ends asked for again."""
    name = "rises"
    begun = at.init(name)
    one = at.init(name, producer=begun)
    yield begun, one, at.init(name, producer=begun), at.init(name, producer=(424242, 1))

    def end(producer, commit):
        answer = at.end(producer, commit, name, 5)
        at.settle(name)
        return answer, at.state(name)

    yield end(one, True), end(one, False)
    two = one[0], one[1] + 1
    yield end(one, False), end(one, True), end(two, True)
    yield at.add(two, 0, name=name, version=5)
    yield at.add(two, 0, 1, name=name, version=4, verify=True)
    three = two[0], two[1] + 1
    yield end(two, True), end(two, True), end(two, False)
    yield at.add(two, 0, name=name, version=5), end(three, False)


def follows(at):
    """Clients of both kinds, one after the other; the last one is taken over."""
    name = "follows"
    owner = at.init(name)
    yield at.add(owner, 1, name=name), at.end(owner, True, name)
    at.settle(name)
    yield at.end(owner, True, name), at.end(owner, False, name)
    yield at.add(owner, 1, name=name, version=5), at.init(name)
    at.settle(name)
    yield at.state(name), at.end(owner, True, name, 5), at.end(owner, False, name, 5)
    yield at.init(name, producer=owner), at.init(name), at.init(name, producer=owner)


def is_refused(at):
    yield at.add((1, 0), 0, name="nobody"), at.end((1, 0), name="nobody")
    yield at.add((5, 5), 0, name="nobody", version=4, verify=True)
    yield at.init("wrong", timeout=0), at.init("wrong", timeout=900_001), at.init("")
    yield at.init("wrong", producer=(1, 5)), at.init("wrong", producer=(1, 5), version=3)
    yield at.init("wrong", producer=(1, -1)), at.end((1, 1), name=""), at.add((1, 1), 0, name="")


def takes_too_long(at):
    name = "slow"
    owner = at.init(name, timeout=500)
    yield owner, at.add(owner, 0, name=name, version=5)
    at.time_out(name)
    yield at.state(name), at.end(owner, True, name, 5), at.end(owner, False, name, 5)
    yield at.init(name, producer=owner), at.init(name)
