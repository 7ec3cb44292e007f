"""A table under kill -9 of Spark's JVM and of the runner: afterwards it is, row for row, what a
batch over the same input computes. PENSTOCK_TEST_SEED=7 kills at other instants."""

import os
import random
import time
from collections import Counter

import pytest
import test_spark_delta
import test_spark_tables
from confluent_kafka.admin import AdminClient, NewTopic
from kills import Feed
from test_spark_killed import World

from spark_local.engine import jars, java
from spark_local.jobfile import load

LIMIT_S = 600
"""Longer than the Python of a test waits elsewhere: each commit that merges takes seconds."""
KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", 4))
pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("java_for_a_minute"),
]
COMMON = """
trigger = "0 ms"
[sources.events]
topic = "in"
schema = "id BIGINT, who STRING"
max_records = 1000
[restart]
first = "100 ms"
longest = "1 s"
attempts = 1000
[sink]
table = {{path = "{lake}", name = "db.{name}", format = "{form}", maintain = "3 s", keep = "1 s"}}
"""
JOBS = {
    "copies": 'sql = "SELECT id, who FROM events"' + COMMON,
    "totals": 'sql = "SELECT who, count(*) AS n FROM events GROUP BY who"' + COMMON
    + 'mode = "update"\nkey = "who"\n',
}  # fmt: skip


READERS = {"iceberg": test_spark_tables.read, "delta": test_spark_delta.read}


def tables(form, lake):
    """(copies, totals) as a reader without Spark finds them."""
    read = READERS[form]
    copies = Counter((row["id"], row["who"]) for row in read(lake, "copies"))
    return copies, Counter((row["who"], row["n"]) for row in read(lake, "totals"))


@pytest.mark.parametrize("form", READERS)
def test_a_table_is_what_a_batch_computes_after_every_kill(tmp_path, form):
    there = {"iceberg": jars.has_tables, "delta": jars.has_delta}[form]
    if (why := java.unavailable()) or not there():
        pytest.skip(why or f"the jars of {form} are not here")
    chance = random.Random(int(os.environ.get("PENSTOCK_TEST_SEED", 1)))
    world, lake = World(tmp_path), tmp_path / "lake"
    try:
        admin = AdminClient({"bootstrap.servers": world.appliance.bootstrap})
        admin.create_topics([NewTopic("in", 1, 1)])["in"].result(LIMIT_S)
        places = {}
        for name, text in JOBS.items():
            file = tmp_path / f"{name}.toml"
            file.write_text(text.format(lake=lake, name=name, form=form))
            places[name] = world.folder.add(load(file))
        with Feed(world.appliance.bootstrap, "in") as feed:
            world.until(places, "in", 1)
            for _ in range(KILLS):
                feed.go_on(chance.randint(100, 1500))
                world.kill(chance.choice(("jvm", "runner")), chance)
        written = feed.written()
        world.until(places, "in", len(written))
        for place in places.values():
            place.wish_for("stopped")
        end = time.monotonic() + LIMIT_S
        while any(place.state().get("state") != "stopped" for place in places.values()):
            assert time.monotonic() < end, world.story(places)
            time.sleep(0.1)
        copies, totals = tables(form, lake)
        assert copies == Counter((one["id"], one["who"]) for one in written)
        assert totals == Counter(Counter(one["who"] for one in written).items())
    finally:
        world.close()
