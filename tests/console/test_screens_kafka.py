"""The console over Apache Kafka: what any Kafka can answer is shown, and a sentence says what it
cannot. Skipped without its jars."""

import re
import time

import pytest
from confluent_kafka import Producer

import penstock
from appliance.quotas.limits import CLIENT_ID, PRODUCE, USER
from benchmarks import kafka
from console.model.asking import configs
from console.model.asking.link import Link
from console.model.groups import groups
from console.model.quotas.quotas import all_quotas
from console.model.records.reading import Record
from console.model.topics import topics
from console.screens import record_forms
from console.screens.places import Place
from tests.console import txn_story
from tests.console.seat import LARGE, SMALL, reading, sit
from tests.console_process import typing


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    running = kafka.Kafka(tmp_path_factory.mktemp("kafka") / "data", heap="512m")
    running.settings |= txn_story.SETTINGS
    with running:
        run = typing(running.bootstrap)
        run("topic", "create", "far", "-p", "2")
        run("produce", "far", "-p", "1", stdin="".join(f"{n}\n" for n in range(50)))
        run("consume", "far", "-g", "far.readers", "-n", "20")
        yield running


def test_records_of_transactions_are_found_and_what_is_held_back_is_told(node):
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "far.moves"})
    producer.init_transactions(30)
    ends = (producer.commit_transaction, producer.abort_transaction, lambda: None)
    for begin, end in zip((0, 10, 20), ends, strict=True):
        producer.begin_transaction()
        for n in range(begin, begin + 10):
            producer.produce("far.moves", b"%d" % n)
        producer.flush(30)
        end()

    async def act(seat):
        await seat.sees("all looked at", "found 10 in", "10 offsets lie behind")
        await seat.press("G", "enter")
        await seat.sees("CreateTime", "in a transaction", "Producer", "epoch 0")
        producer.abort_transaction()
        await seat.press("escape", "o", "ctrl+u")
        await seat.type("start")
        await seat.press("enter")
        await seat.sees("all looked at", "found 10 in")
        await seat.misses("offsets lie behind")

    sit(node.bootstrap, act, first=Place("records", "far.moves"))
    later = f"e@{time.time_ns() // 10**6 + 10**6}"
    done = typing(node.bootstrap)("consume", "far.moves", "-o", later)
    assert done.stdout.split() == [str(n) for n in range(10)], "marks at the end are no records"


def test_transactions_of_apache_kafka_are_seen_and_aborted(node):
    run = typing(node.bootstrap)
    txn_story.is_seen_and_aborted(node.bootstrap, run)
    txn_story.what_hangs_is_found_and_aborted(node.bootstrap, run)
    txn_story.a_plan_does_not_hit_the_next_transaction(node.bootstrap)
    txn_story.is_aborted_on_the_screen(node.bootstrap, sit)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_apache_kafka_is_shown_with_what_it_can_answer(node, size):
    async def act(seat):
        await seat.sees("Nothing needs attention", "1 broker", "no appliance of this host")
        await seat.sees("BROKER", node.bootstrap, "controller", "Disk")
        assert "PROCESS" not in seat.text()
        await seat.press("2")
        await seat.sees("far", "sizes and rates are known")
        await seat.press("enter")
        await seat.sees("retention policy to use on log segments", "cleanup.policy")
        await seat.until(lambda: re.search(r" 1 +0 +50 +50 +1", seat.text()), "its offsets")
        assert "<a href" not in seat.text()
        await seat.press("b")
        await seat.sees("all looked at", "found 50 in 50 records")
        await seat.press("enter")
        await seat.sees("CreateTime", "Batch", "compression none")
        await seat.press("3")
        await seat.sees("far.readers")
        await seat.press("enter")
        await seat.sees("far.readers", "lag 30")

    sit(node.bootstrap, act, size=size)


def test_offsets_of_apache_kafka_are_moved_by_a_plan_and_a_group_deleted(node):
    link = Link(node.bootstrap, {}, 20.0)
    groups.commit(link, "far.moved", {("far", 1): 20})

    async def act(seat):
        await seat.sees("Lag 30", "no member now")
        await seat.press("o")
        await seat.sees("Where to")
        await seat.type("start+3")
        await seat.press("enter")
        await seat.plan()
        await seat.sees("BEFORE", "-17")
        await seat.press("right", "enter")
        await seat.back()
        await seat.hears("1 offset moved")
        assert groups.committed(link, ["far.moved"])["far.moved"] == {("far", 1): 3}
        await seat.press("D")
        await seat.plan()
        await seat.sees("47 records")
        await seat.type("far.moved")
        await seat.press("enter")
        await seat.hears("deleted, with 1 committed offset")

    sit(node.bootstrap, act, size=LARGE, first=Place("group", "far.moved"))
    assert "far.moved" not in [one.name for one in groups.listed(link)]


def test_what_is_not_the_consumers_is_shown_by_its_type(node):
    """A share group, made by what its members would send first."""
    link = Link(node.bootstrap, {}, 20.0)
    _share(link, "far.shared")
    (found,) = groups.listed(link, ("far.shared",))
    assert (found.kind, found.is_told) == ("share", False)

    async def act(seat):
        await seat.sees("far.shared  ", "share protocol", "a share group")
        await seat.press("3")
        await seat.until(lambda: " share " in seat.line("far.shared"), "its type")

    sit(node.bootstrap, act, size=LARGE, first=Place("group", "far.shared"))


def _share(link, name):
    from console.model.asking.plain_request import ask_server

    asked = {
        "group_id": name, "member_id": "B7hyUd2qTIuUh2vzDpUcFA", "member_epoch": 0,
        "rack_id": None, "subscribed_topic_names": ["far"],
    }  # fmt: skip
    told = ask_server(link, 76, 1, asked)
    assert int(told.error_code) == 0, told


def test_topics_of_apache_kafka_are_changed(node):
    link = reading(node.bootstrap)

    async def act(seat):
        await seat.press("2")
        await seat.sees("far")
        await seat.press("n")
        await seat.type("near")
        await seat.press("tab", "2", "enter")
        await seat.plan()
        await seat.sees("cleanup.policy", "compression.type")
        await seat.press("right", "enter")
        await seat.back()
        await seat.until(lambda: "near" in topics.listed(link))
        await seat.app.go_to(Place("topic", "near"))
        await seat.sees("2 partitions")
        await seat.press("+", "5", "enter")
        await seat.plan()
        await seat.press("right", "enter")
        await seat.back()
        await seat.sees("5 partitions")
        await seat.press("E")
        await seat.type("retention.ms=2d")
        await seat.press("ctrl+s")
        await seat.plan()
        await seat.sees("172800000", "604800000 (default)")
        await seat.press("right", "enter")
        await seat.back()
        target = configs.Target(configs.TOPIC, "near")
        (kept,) = configs.settings(link, target, ("retention.ms",))
        assert (kept.value, kept.source) == ("172800000", "topic")
        await seat.press("D")
        await seat.plan()
        await seat.sees("this cluster keeps no deleted topics")
        await seat.type("near")
        await seat.press("enter")
        await seat.back()
        await seat.until(lambda: "near" not in topics.listed(link))
        await seat.until(lambda: seat.app.here == Place("topics"), "the list above")
        await seat.app.go_to(Place("deleted"))
        await seat.sees("this broker keeps no deleted topics")

    sit(node.bootstrap, act)


def test_topics_of_apache_kafka_are_trimmed(node):
    async def act(seat):
        await seat.sees("50")
        await seat.press("X")
        await seat.type("end")
        await seat.press("enter")
        await seat.plan()
        await seat.type("far")
        await seat.press("enter")
        await seat.back()
        (found,) = topics.described(reading(node.bootstrap), ["far"])
        assert found.partitions[1].start == 50

    sit(node.bootstrap, act, first=Place("topic", "far"))


def test_a_record_is_written_to_apache_kafka_and_sent_again(node):
    record = Record("far", 1, 0, None, b"\xff", None, [("h", b"1"), ("h", b"\xfe")])

    async def act(seat):
        await seat.sees("PARTITION")
        await seat.press("p", *"kk", "tab", "tab", *"vv", "ctrl+s")
        await seat.plan()
        await seat.press("right", "enter")
        await seat.back()
        await seat.sees("Produce to far: partition")
        seat.app.door.open_proposal(record_forms.resend(record, node.bootstrap))
        await seat.sees("Send far 1:0 again")
        await seat.press("ctrl+s")
        await seat.plan()
        await seat.sees("far is not compacted", "deletes nothing")
        await seat.press("right", "enter")
        await seat.back()

    sit(node.bootstrap, act, first=Place("topic", "far"))
    found = penstock.connect(node.bootstrap).read("far")
    mine = [(one.key(), one.value(), one.headers() or []) for one in found if one.key()]
    assert sorted(mine) == [(b"kk", b"vv", []), (b"\xff", None, record.headers)]


def test_quotas_of_apache_kafka_are_listed_and_changed(node):
    link = Link(node.bootstrap, {}, 10.0)
    whose = ((CLIENT_ID, None), (USER, "alice"))

    async def act(seat):
        await seat.sees("no quota is set", "does not report the usage of quotas", "JMX")
        await seat.press("n")
        for typed in ("alice", "<default>", "", "3MB/s"):
            await seat.type(typed)
            await seat.press("tab")
        await seat.press("enter")
        await seat.plan()
        await seat.sees("BEFORE", "3 MB/s", "no appliance of this host answers there")
        await seat.press("right", "enter")
        await seat.back()
        await seat.until(lambda: all_quotas(link) == {whose: {PRODUCE: 3e6}}, "it in the broker")
        await seat.sees("client-id=<default> user=ali")
        await seat.press("d")
        await seat.type("user=alice client-id=any")
        await seat.press("enter")
        await seat.sees("2  client-id=<default> user=alice")
        await seat.press("[", "D")
        await seat.plan()
        await seat.sees("quota unset --default client-id --user alice producer_byte_rate")
        await seat.press("right", "enter")
        await seat.back()
        await seat.until(lambda: all_quotas(link) == {}, "none in the broker")

    sit(node.bootstrap, act, first=Place("quotas"), size=LARGE)
