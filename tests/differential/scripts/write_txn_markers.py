"""WriteTxnMarkers, DescribeProducers: what `kafka-transactions` asks of a partition's leader."""

from tests.differential.records import batch
from tests.differential.registry import script
from tests.differential.transactions import add, end, moved, state, write, writer, written

MARK, PRODUCERS = "WriteTxnMarkers", "DescribeProducers"


def marking(one, topic, *partitions, commit=False, epoch=0):
    return {"markers": [{
        "producer_id": one[1], "producer_epoch": one[2], "transaction_result": commit,
        "coordinator_epoch": epoch, "transaction_version": 2,
        "topics": [{"name": topic, "partition_indexes": list(partitions)}],
    }]}  # fmt: skip


def about(topic, *partitions):
    return {"topics": [{"name": topic, "partition_indexes": list(partitions)}]}


def look(s, step, topic, *partitions):
    """Producers of partitions, in the order in which their last record stands."""
    answer = s.call(PRODUCERS, **about(topic, *partitions))
    for partition in answer["topics"][0]["partitions"]:
        partition["active_producers"].sort(key=lambda one: one["last_sequence"])
    s.note(step, answer, PRODUCERS)


@script(MARK)
def write_txn_markers(s):
    one, topic = writer(s), s.topic(partitions=2)
    s.ask("of nobody", **marking(one, topic, 0))
    look(s, "producers", topic, 0)
    s.ask("no such partition", **marking(one, topic, 7))
    s.ask("no such topic", **marking(one, s.name("none"), 0))
    s.ask("nothing", markers=[])
    s.ask("no topics", markers=[{**marking(one, topic)["markers"][0], "topics": []}])


@script(MARK)
def write_txn_markers_of_an_open_one(s):
    one, topic = writer(s, writer(s)[0]), s.topic(partitions=2)
    add(s, one, topic, 0, 1)
    write(s, one, topic, b"a", b"b")
    look(s, "open", topic, 0, 1)
    s.ask("older epoch", **marking(moved(one, epoch=-1), topic, 0))
    s.ask("abort, and one that is not there", **marking(moved(one, epoch=1), topic, 0, 9))
    look(s, "aborted", topic, 0, 1)
    s.ask("once more", **marking(moved(one, epoch=1), topic, 0))
    s.ask("the same epoch", **marking(one, topic, 0))
    s.ask("older coordinator", **marking(moved(one, epoch=1), topic, 0, epoch=-1))
    look(s, "at its end", topic, 0)


@script(PRODUCERS)
def describe_producers(s):
    one, topic = writer(s), s.topic(partitions=2)
    s.ask("nobody", **about(topic, 0, 1))
    s.ask("no such partition", **about(topic, 0, 9))
    s.ask("negative partition", **about(topic, -1))
    s.ask("no such topic", **about(s.name("none"), 0))
    s.ask("name that no topic may have", **about("not/a/name", 0))
    s.ask("nothing", topics=[])
    s.ask("no partitions", **about(topic))
    add(s, one, topic, 0, 1)
    s.ask("added", **about(topic, 0))
    write(s, one, topic, b"a", b"b")
    write(s, one, topic, b"c", sequence=2)
    s.ask("open", **about(topic, 0, 1))
    end(s, one)
    s.ask("committed", **about(topic, 0, 1))
    s.produce(topic, written(moved(one, 700_000), b"x", attributes=0), partition=1)
    look(s, "an idempotent one", topic, 1)
    assert state(s, one[0])["transaction_state"] == "CompleteCommit"


NEW = 70_000


def marker(topics, number=NEW, epoch=0, commit=True, of=0, version=0):
    """of: epoch of the coordinator."""
    return {
        "producer_id": number,
        "producer_epoch": epoch,
        "transaction_result": commit,
        "topics": [{"name": one, "partition_indexes": found} for one, found in topics.items()],
        "coordinator_epoch": of,
        "transaction_version": version,
    }


@script(MARK)
def markers_of_any_producer(s):
    topic = s.topic(partitions=3)
    s.produce(topic, batch(b"a"))

    def ask(step, *, topics=None, **fields):
        s.ask(step, markers=[marker(topics or {topic: [0]}, **fields)])

    s.ask("nothing", markers=[])
    ask("nobody's", topics={topic: [0, 2]})
    ask("the same again")
    ask("aborted instead", commit=False)
    ask("newer", epoch=5, of=3)
    ask("an older epoch", epoch=4, of=3)
    ask("an older coordinator", epoch=6, of=2)
    ask("older in both", epoch=4, of=2)
    ask("elsewhere", topics={topic: [1]}, epoch=1, of=0)
    ask("no partition", topics={topic: [0, 99]}, epoch=7, of=3)
    ask("no topic", topics={s.name("unknown"): [0], topic: [0]}, epoch=7, of=3)
    ask("no producer", number=-1, topics={topic: [2]})
    ask("no epoch", number=NEW + 9, epoch=-1, topics={topic: [2]})
    s.ask("several producers", markers=[
        marker({topic: [0, 1]}, number=NEW + 1), marker({topic: [1]}, number=NEW + 2),
    ])  # fmt: skip


@script(MARK, versions=(2, 2))
def markers_of_rising_epochs(s):
    topic = s.topic()

    def ask(step, **fields):
        s.ask(step, markers=[marker({topic: [0]}, version=2, **fields)])

    ask("first", epoch=1)
    ask("the same again", epoch=1)
    ask("older", epoch=0)
    ask("next", epoch=2)
    ask("an older coordinator", epoch=3, of=-1)
