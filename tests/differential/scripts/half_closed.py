"""Clients that end their side of the connection (SHUT_WR) before they have their answers."""

from tests.differential.records import batch
from tests.differential.registry import script
from tests.differential.scripts.fetch import Fetcher
from tests.differential.scripts.produce import both, data


@script("Produce", versions=(12, 13))
def half_closed(s):
    topic = both(s, s.topic())
    link = s.connect()
    values = {"acks": -1, "timeout": 10_000, "topic_data": data(s, topic, batch(b"value"))}
    link.send(0, s.version, values)
    link.half_close()
    s.note("one", link.receive())
    link = s.connect()
    for _ in range(3):
        link.send(0, s.version, values)
    link.half_close()
    for number in range(3):
        s.note(f"several, {number}", link.receive())
    end = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    s.ask_until(
        "all are appended",
        lambda answer: answer["topics"][0]["partitions"][0]["offset"] == 4,
        "ListOffsets", replica_id=-1, topics=[{"name": topic[0], "partitions": [end]}],
    )  # fmt: skip


@script("Fetch", versions=(12, 12))
def half_closed_while_it_waits(s):
    f, topic = Fetcher(s), s.topic()
    link = s.connect()
    link.send(1, s.version, f.fields(f.topic(topic, 0), min_bytes=1, max_wait=200))
    link.half_close()
    s.note("waited in vain", link.receive())
