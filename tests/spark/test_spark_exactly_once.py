"""Exactly once on a real session: what a crash, a rival or a lost file may do to it."""

import json
import os
import random
import shutil
import signal

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from kills import Feed, copies, derived, events, position, totals

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
TOTALS = """
sql = "SELECT who, count(*) AS n FROM events GROUP BY who"
trigger = "0 ms"
[sources.events]
topic = "{source}"
schema = "id BIGINT, who STRING"
max_records = 200
[sink]
topic = "{sink}"
key = "who"
mode = "update"
delivery = "exactly-once"
partitions = 1
[restart]
first = "100 ms"
"""
COPIES = """
sql = "SELECT id, who FROM events"
trigger = "0 ms"
[sources.events]
topic = "{source}"
schema = "id BIGINT, who STRING"
max_records = 200
[sink]
topic = "{sink}"
key = "who"
delivery = "exactly-once"
partitions = 2
[restart]
first = "100 ms"
"""


def stop(bench, place):
    place.wish_for("stopped")
    return bench.state(place, "stopped")


def committed(bench, job):
    admin = bench.link.admin()
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(job)])
    return asked[job].result(30).topic_partitions


def rival(bench, job):
    """Somebody with the job's transactional id: whoever had it before is fenced."""
    settings = {"bootstrap.servers": bench.broker.bootstrap}
    producer = Producer(settings | {"transactional.id": f"penstock-job-{job}"})
    producer.init_transactions(30)
    return producer


def test_a_batch_that_is_run_again_is_not_written_again_and_its_state_goes_on(bench):
    source, sink, name = bench.topic("in"), f"out-{bench.mark}", f"totals-{bench.mark}"
    bench.write(source, *events(3))
    text = TOTALS.format(source=source, sink=sink)
    place = bench.add(name, text)
    bench.read_rows(place, 3)
    stop(bench, place)
    before = derived(bench.broker.bootstrap, sink)
    assert totals(before, events(3)) is None
    (at,) = committed(bench, name)
    query = json.loads((place.checkpoint / "metadata").read_text())["id"]
    assert (at.topic, at.offset, at.metadata) == (source, 3, f"{query} 0")
    assert set(place.remembers()) == {"checkpoint", "dead.json", "delivery.json", "topics.json"}

    # A crash behind the transaction's commit, before Spark's own note of it.
    (place.checkpoint / "commits" / "0").unlink()
    (place.checkpoint / "commits" / ".0.crc").unlink()
    ghost = rival(bench, name)  # and what it had begun to write
    ghost.begin_transaction()
    ghost.produce(sink, b'{"who": "nobody", "n": 1}', key=b"nobody")
    assert ghost.flush(30) == 0
    bench.write(source, *events(6)[3:])
    place.wish_for("running")
    bench.read_rows(place, 9)  # three of them counted twice
    stop(bench, place)
    after = derived(bench.broker.bootstrap, sink)
    assert after[: len(before)] == before
    assert totals(after, events(6)) is None

    # Its offsets are gone: of a batch that may be run again nobody knows whether it is there.
    last = str(max(int(one.name) for one in (place.checkpoint / "commits").glob("[0-9]*")))
    (place.checkpoint / "commits" / last).unlink()
    (place.checkpoint / "commits" / f".{last}.crc").unlink()
    admin = bench.link.admin()
    admin.delete_consumer_groups([name])[name].result(30)
    place.wish_for("running")
    told = bench.state(place, "failed")
    assert f"batch {last} may be in the topic or not" in told["cause"]

    # Its checkpoint is gone: everything would be written again, which only a reset says is wanted.
    shutil.rmtree(place.checkpoint)
    place.wish_for("running")
    told = bench.state(place, "failed")
    assert "its checkpoint was deleted" in told["cause"]
    assert f"penstock job reset {name}" in told["remedy"]
    assert derived(bench.broker.bootstrap, sink) == after


def test_kills_and_rivals_leave_what_a_batch_computes(bench):
    """Each process of the appliance is killed, and each job is fenced, at random instants of one
    seed. What Spark's own processes survive is in test_spark_killed.py."""
    chance = random.Random(int(os.environ.get("PENSTOCK_TEST_SEED", 1)))
    source = bench.topic("in")
    sinks = {"copies": f"copies-{bench.mark}", "totals": f"totals-{bench.mark}"}
    texts = {"copies": COPIES, "totals": TOTALS}
    places = {
        kind: bench.add(f"{kind}-{bench.mark}", texts[kind].format(source=source, sink=sinks[kind]))
        for kind in texts
    }
    with Feed(bench.broker.bootstrap, source) as feed:
        for place in places.values():
            bench.read_rows(place, 1)
        victims = [*bench.broker.pids()[1:], *places.values()]
        chance.shuffle(victims)
        for victim in victims:
            feed.go_on(chance.randint(20, 200))
            if isinstance(victim, int):
                os.kill(victim, signal.SIGKILL)
            else:
                rival(bench, victim.name)
    written = feed.written()
    for kind, differs in (("copies", copies), ("totals", totals)):
        place = places[kind]
        bench.until(
            place,
            lambda _, name=place.name: (
                position(bench.broker.bootstrap, name, source) == len(written)
            ),
        )
        stop(bench, place)
        assert differs(derived(bench.broker.bootstrap, sinks[kind]), written) is None
