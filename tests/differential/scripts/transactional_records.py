"""Produce, Fetch, ListOffsets and InitProducerId of clients with a transactional id."""

from tests.differential.registry import script
from tests.differential.transactions import (
    TRANSACTIONAL,
    add,
    describe,
    end,
    ending,
    id_of,
    initialising,
    moved,
    producing,
    taken,
    write,
    writer,
    written,
)

CONCURRENT = "CONCURRENT_TRANSACTIONS"


@script("InitProducerId", versions=(0, 5))
def init_producer_id_of_a_transaction(s):
    name, topic = id_of(s), s.topic()

    def ask(step, number=-1, epoch=-1, timeout=60_000, name=name):
        return s.ask(step, **initialising(name, number, epoch, timeout))

    number = ask("new")["producer_id"]
    epoch = ask("again")["producer_epoch"]
    ask("its own", number, epoch)
    ask("its own, once more", number, epoch)
    ask("its own, old", number, 0)
    ask("its own, of the future", number, epoch + 7)
    ask("producer id of nobody", number + 500_000, epoch)
    ask("an epoch alone", -1, 3)
    ask("an id alone", number, -1)
    for timeout in (0, -1, 900_001, 2**31 - 1):
        ask(f"timeout {timeout}", timeout=timeout)
    ask("new, with numbers", number, 5, name=s.name("other"))
    describe(s, "at rest", name)
    one = writer(s, name)
    add(s, one, topic, 0)
    s.ask_until("taken over, open", lambda answer: answer["error_code"] != CONCURRENT,
                **initialising(name, timeout=900_000))  # fmt: skip
    describe(s, "taken over", name)
    ask("after the abort")
    s.ask("the first ends", "EndTxn", version=4, **ending(one))
    describe(s, "at its end", name)


@script("InitProducerId", versions=(3, 5))
def init_producer_id_of_an_open_transaction(s):
    topic = s.topic()
    for word, numbers in (
        ("old", {"epoch": -1}), ("its own", {}), ("of the future", {"epoch": 1}),
        ("producer id of nobody", {"number": 500_000}),
    ):  # fmt: skip
        name = writer(s, id_of(s, word))[0]
        one = writer(s, name)
        add(s, one, topic, 0, version=5)
        s.ask_until(word, lambda answer: answer["error_code"] != CONCURRENT,
                    **initialising(*moved(one, **numbers)))  # fmt: skip
        describe(s, word, name)


def ask_produce(s, step, one, topic, records, index=0):
    """Noted when it is the last word."""
    asked = producing(s, one, topic, records, s.version, index)
    s.ask_until(step, taken, **asked)


@script("Produce", versions=(3, 13))
def produce_transactional(s):
    one, topic = writer(s), s.topic(partitions=3)
    add(s, one, topic, 0)

    def ask(step, sequence, *values, one=one, index=0, **more):
        ask_produce(s, step, one, topic, written(one, *values or [b"v"], sequence=sequence, **more),
                    index)  # fmt: skip

    ask("first", 0, b"a", b"b")
    ask("second", 2)
    ask("second again", 2)
    ask("a gap", 9)
    ask("epoch too high", 3, one=moved(one, epoch=1))
    ask("producer id of nobody", 0, one=moved(one, 500_000))
    ask("id of nobody", 0, one=(s.name("nobody"), *one[1:]), index=1)
    ask("no id", 0, one=("", *one[1:]), index=1)
    ask("not transactional", 3, attributes=0)
    ask_produce(s, "transactional without an id", None, topic, written(one, b"v", sequence=4))
    ask_produce(s, "without a producer", one, topic, written((one[0], -1, -1), b"v", sequence=-1))
    ask("control batch", 4, attributes=TRANSACTIONAL | 0x20)
    describe(s, "written", one[0])
    end(s, one)


@script("Produce", versions=(12, 13))
def produce_adds_its_partition(s):
    """From version 12 on a batch begins its transaction (KIP-890, part 2)."""
    one, topic = writer(s), s.topic(partitions=2)
    ask_produce(s, "first", one, topic, written(one, b"v"))
    ask_produce(s, "another partition", one, topic, written(one, b"v"), 1)
    describe(s, "written", one[0])
    two = end(s, one, True, 5)
    ask_produce(s, "with the old epoch", one, topic, written(one, b"v", sequence=1))
    ask_produce(s, "with the new epoch", two, topic, written(two, b"v"))
    describe(s, "another one", one[0])
    end(s, two, False, 5)
    describe(s, "ended", one[0])


@script("Produce", versions=(3, 13))
def produce_after_its_end(s):
    """Nothing is open: what Kafka says depends on the version."""
    one, topic = writer(s), s.topic()
    add(s, one, topic, 0)
    ask_produce(s, "open", one, topic, written(one, b"v"))
    end(s, one)
    if s.version < 12:
        s.ask("ended", **producing(s, one, topic, written(one, b"v", sequence=1), s.version))
    add(s, one, topic, 0)
    two = writer(s, one[0])
    ask_produce(s, "fenced", one, topic, written(one, b"v", sequence=2))
    add(s, two, topic, 0)
    ask_produce(s, "the second", two, topic, written(two, b"v"))
    end(s, two)


def fetching(topic, level, version, s):
    named = {"topic_id": s.topic_id(topic)} if version >= 13 else {"topic": topic}
    return {
        "replica_id": -1, "max_wait": 1, "min_bytes": 1, "max_bytes": 1 << 20,
        "isolation_level": level, "session_epoch": -1,
        "topics": [{**named, "partitions": [
            {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20,
             "current_leader_epoch": -1, "log_start_offset": -1, "last_fetched_epoch": -1}]}],
    }  # fmt: skip


@script("Fetch", versions=(4, 18))
def fetch_committed(s):
    """Two transactions that cross: lengths of records, aborted ones and the last stable offset."""
    topic = s.topic()
    one, two = writer(s, id_of(s, "one")), writer(s, id_of(s, "two"))

    def look(step):
        for level in (0, 1):
            answer = s.call("Fetch", s.version, **fetching(topic, level, s.version, s))
            for each in answer["responses"]:
                for row in each["partitions"]:
                    row["records"] = len(row["records"] or "") // 2
            s.note(f"{step}: {'committed' if level else 'all'}", answer)

    look("empty")
    add(s, one, topic, 0)
    add(s, two, topic, 0)
    write(s, one, topic, b"a")
    look("one is open")
    write(s, two, topic, b"b")
    write(s, one, topic, b"c", sequence=1)
    end(s, two)
    look("the later one is committed")
    end(s, one, False)
    look("the first is aborted")


@script("ListOffsets", versions=(2, 10))
def list_offsets_committed(s):
    one, topic = writer(s), s.topic()

    def look(step):
        for level in (0, 1):
            for time in (-1, -2, -3, 1):
                s.ask(f"{step}, {'committed' if level else 'all'}, {time}", replica_id=-1,
                      isolation_level=level, timeout=1000, topics=[{"name": topic, "partitions": [
                          {"partition_index": 0, "current_leader_epoch": -1, "timestamp": time,
                           }]}])  # fmt: skip

    look("empty")
    s.produce(topic, written((None, -1, -1), b"before", sequence=-1, attributes=0))
    add(s, one, topic, 0)
    write(s, one, topic, b"a", b"b")
    look("open")
    end(s, one, False)
    look("aborted")
