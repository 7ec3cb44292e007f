"""What somebody does with `penstock txn`, the same story for Apache Kafka and for ours. Both are
started with `SETTINGS`, so that a transaction can be made that hangs."""

import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from appliance.wire.records import NewRecord, build_batch
from console.model.asking import names
from console.model.asking.change import Change
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.transactions import transaction_changes, transactions
from console.model.transactions.open_transactions import Watch
from console.screens.places import TXNS
from tests.console.seat import LARGE, tab
from tests.console_process import rows

SETTINGS = {"transaction.partition.verification.enable": "false"}
STALE, LIMIT_S = 4711, 30


class Owner:
    """Somebody with a transactional id."""

    def __init__(self, bootstrap, name):
        known = {
            "bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0,
            "transaction.timeout.ms": 600_000,
        }  # fmt: skip
        self.producer = Producer(known)
        self.producer.init_transactions(LIMIT_S)

    def begin(self, topic, *numbers):
        self.producer.begin_transaction()
        for number in numbers:
            for n in range(5):
                self.producer.produce(topic, b"%d" % n, partition=number)
        self.producer.flush(LIMIT_S)

    def end(self):
        self.producer.commit_transaction(LIMIT_S)


def hang(link, topic, partition, producer_id=STALE):
    """A transactional batch of a producer that no coordinator knows."""
    batch = build_batch(
        [NewRecord(time.time_ns() // 10**6, None, b"stale")] * 3,
        producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True,
    )  # fmt: skip
    data = [{"index": partition, "records": batch}]
    asked = {
        "transactional_id": "nobody", "acks": -1, "timeout": 10_000,
        "topic_data": [{"name": topic, "partition_data": data}],
    }  # fmt: skip
    (of,) = ask_server(link, 0, 7, asked).responses
    assert int(of.partition_responses[0].error_code) == 0, of
    return int(of.partition_responses[0].base_offset)


def is_seen_and_aborted(bootstrap, run):
    """An open transaction is listed, measured, described and aborted by its id; what is committed
    meanwhile stays."""
    run("topic", "create", "txn.moves", "-p", "3")
    mover, keeper = Owner(bootstrap, "txn.mover"), Owner(bootstrap, "txn.keeper")
    keeper.begin("txn.moves", 2)
    keeper.end()
    mover.begin("txn.moves", 0, 1)
    behind = Producer({"bootstrap.servers": bootstrap})
    behind.produce("txn.moves", b"behind", partition=0)
    assert behind.flush(LIMIT_S) == 0
    (one,) = rows(run("txn", "list", "--open", "-r", "txn[.]", "-o", "json"))
    assert (one["name"], one["state"]) == ("txn.mover", "ongoing")
    assert {"txn.mover", "txn.keeper"} <= set(names.transactional_ids(bootstrap, LIMIT_S))
    wide = run("txn", "list", "txn.mover", "-o", "wide").stdout.splitlines()
    assert wide[0].split("  ")[-1].strip() == "OLDEST S"
    (told,) = rows(run("txn", "describe", "txn.mover", "-o", "json"))
    assert told["held_back"] == 11 and 0 <= told["open_s"] < LIMIT_S
    where = [(p["topic"], p["partition"], p["start"], p["stable"], p["end"], p["records"])
             for p in told["partitions"]]  # fmt: skip
    assert where == [("txn.moves", 0, 0, 0, 6, 6), ("txn.moves", 1, 0, 0, 5, 5)]
    assert all(0 <= p["seconds"] < LIMIT_S for p in told["partitions"])
    assert "txn.moves" in run("txn", "describe", "txn.mover").stdout
    assert committed(bootstrap, 0) == []

    assert "would be aborted" in run("txn", "abort", "txn.mover", "--dry-run").stdout
    assert "needs --yes" in run("txn", "abort", "txn.mover", code=2).stderr
    assert "is fenced" in run("txn", "abort", "txn.mover", "--yes").stdout
    with pytest.raises(KafkaException):
        mover.end()
    assert "no open transaction" in run("txn", "abort", "txn.mover", "--yes", code=1).stderr
    ends_soon(bootstrap, "txn.mover")
    assert committed(bootstrap, 0) == [b"behind"]
    assert run("txn", "list", "--open", "-r", "txn[.]").stdout == ""
    missing = rows(run("txn", "describe", "txn.none", "-o", "json", code=1))
    assert missing["error"]["code"] == "TRANSACTIONAL_ID_NOT_FOUND"


def what_hangs_is_found_and_aborted(bootstrap, run):
    """What no coordinator knows is found, and told from what one knows; a marker ends it."""
    link = Link(bootstrap, {}, 10.0)
    run("topic", "create", "txn.stuck", "-p", "2")
    live = Owner(bootstrap, "txn.live")
    live.begin("txn.stuck", 0)
    run("txn", "hanging", "-t", "txn.stuck")
    at = hang(link, "txn.stuck", 1)
    (one,) = rows(run("txn", "hanging", "-o", "json", code=4))
    assert (one["topic"], one["partition"], one["producer_id"]) == ("txn.stuck", 1, STALE)
    assert (one["start"], one["held_back"]) == (at, 3)
    hangs, lives = Watch(link, keeps=False).read_transactions(time.time(), ["txn.stuck"])
    assert (hangs.state, hangs.name, lives.name) == ("hanging", "", "txn.live")
    with pytest.raises(Failure, match="belongs to a transaction that is known"):
        transaction_changes.abort_hanging("txn.stuck", 0, 0).plan(link)

    named = ("txn", "abort", "-t", "txn.stuck:1", "--start", str(at))
    assert "a marker" in run(*named, "--yes").stdout
    assert "no open transaction" in run(*named, "--yes", code=1).stderr
    assert run("txn", "hanging").stdout == ""
    live.end()


def a_plan_does_not_hit_the_next_transaction(bootstrap):
    """What was planned for one transaction leaves the next one of the same producer alone."""
    link = Link(bootstrap, {}, 10.0)
    owner = Owner(bootstrap, "txn.next")
    owner.begin("txn.moves", 2)
    plan = transaction_changes.abort("txn.next").plan(link)
    with pytest.raises(Failure, match="nothing can be changed"):
        plan.apply(Link(bootstrap, {}, 10.0, read_only=True))
    assert isinstance(plan, Change) and plan.seen(link) is None
    owner.end()
    assert "not open any more" in plan.seen(link)
    owner.begin("txn.moves", 2)
    assert "ended meanwhile" in plan.apply(link)
    owner.end()


def is_aborted_on_the_screen(bootstrap, sit):
    """Somebody looks at what is open, and aborts two of them: by id, and by its first record."""
    seen = Owner(bootstrap, "txn.seen")
    seen.begin("txn.moves", 0, 1)
    at = hang(Link(bootstrap, {}, 10.0), "txn.stuck", 0, producer_id=STALE + 1)

    async def act(seat):
        await seat.press(tab(TXNS))
        await seat.sees("txn.seen", "ongoing", "HELD BACK")
        await seat.press("/", *"txn.seen", "enter")
        await seat.sees("txn.moves")
        await seat.press("D")
        await seat.plan()
        await seat.sees("cannot be brought back", "is fenced", "FIRST RECORD")
        await seat.type("txn.seen")
        await seat.press("enter")
        await seat.hears("aborted, its producer is fenced")
        await seat.sees("no open transaction matches")
        await seat.press("escape")
        seat.app.door.open_proposal(transaction_changes.abort_hanging("txn.stuck", 0, at))
        await seat.plan()
        await seat.type("txn.stuck:0")
        await seat.press("enter")
        await seat.hears("aborted by a marker")

    sit(bootstrap, act, size=LARGE)
    with pytest.raises(KafkaException):
        seen.end()


def ends_soon(bootstrap, name):
    """Its markers are written."""
    link, until = Link(bootstrap, {}, 10.0), time.monotonic() + LIMIT_S
    while transactions.described(link, [name])[0].is_open:
        assert time.monotonic() < until
        time.sleep(0.05)


def committed(bootstrap, partition):
    """Values of txn.moves that a read_committed reader gets."""
    reader = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "txn", "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
    })  # fmt: skip
    reader.assign([TopicPartition("txn.moves", partition, 0)])
    found, until = [], time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        message = reader.poll(0.1)
        if message is not None and message.error():
            break
        if message is not None:
            found.append(message.value())
    reader.close()
    return found
