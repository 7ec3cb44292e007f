"""Fetch."""

import time

from tests.differential.records import batch
from tests.differential.registry import script
from tests.differential.transactions import add, end, write, writer


class Fetcher:
    """Builds the topics of a request in the shape of its version."""

    def __init__(self, s):
        self.s = s

    def topic(self, name, *partitions):
        """partitions: mappings of fields of FetchPartition, or numbers."""
        key = {"topic_id": self.id(name)} if self.s.version >= 13 else {"topic": name}
        return {**key, "partitions": [self.partition(one) for one in partitions]}

    def forgotten(self, name, *partitions):
        key = {"topic_id": self.id(name)} if self.s.version >= 13 else {"topic": name}
        return {**key, "partitions": list(partitions)}

    def id(self, name):
        return name if not isinstance(name, str) else self.s.topic_id(name)

    def partition(self, one):
        fields = {"partition": one} if isinstance(one, int) else one
        return {"current_leader_epoch": -1, "fetch_offset": 0, "last_fetched_epoch": -1,
                "log_start_offset": -1, "partition_max_bytes": 1 << 20} | fields  # fmt: skip

    def fields(self, *topics, session=(0, -1), **values):
        return {"replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 20,
                "topics": list(topics), "session_id": session[0],
                "session_epoch": session[1]} | values  # fmt: skip

    def ask(self, step, *topics, session=(0, -1), **values):
        answer = self.s.ask(step, **self.fields(*topics, session=session, **values))
        number = answer.get("session_id")
        if number:
            self.s.recognise(number, "session")
        return answer


@script("Fetch")
def fetch(s):
    f, topic = Fetcher(s), s.topic(partitions=2)
    s.produce(topic, batch(b"a", b"b"))
    s.produce(topic, batch(b"c"))
    unknown = s.id("unknown") if s.version >= 13 else s.name("unknown")
    f.ask("all", f.topic(topic, 0, 1))
    f.ask("from the middle", f.topic(topic, {"partition": 0, "fetch_offset": 1}))
    f.ask("second batch", f.topic(topic, {"partition": 0, "fetch_offset": 2}))
    f.ask("at the end", f.topic(topic, {"partition": 0, "fetch_offset": 3}))
    f.ask("behind the end", f.topic(topic, {"partition": 0, "fetch_offset": 4}))
    f.ask("before the start", f.topic(topic, {"partition": 0, "fetch_offset": -1}))
    f.ask("committed", f.topic(topic, 0), isolation_level=1)
    f.ask("unknown partition", f.topic(topic, 0, 7))
    f.ask("unknown topic", f.topic(unknown, 0))
    f.ask("small partition", f.topic(topic, {"partition": 0, "partition_max_bytes": 1}))
    f.ask("small answer", f.topic(topic, 0), max_bytes=1)
    f.ask("waiting in vain", f.topic(topic, 1), min_bytes=1, max_wait=20)
    f.ask("twice", f.topic(topic, 0, 0))
    f.ask("nothing")
    if s.version >= 9:
        f.ask("known epoch", f.topic(topic, {"partition": 0, "current_leader_epoch": 0}))
        f.ask("future epoch", f.topic(topic, {"partition": 0, "current_leader_epoch": 5}))
    if s.version >= 12:
        f.ask("diverging", f.topic(topic, {"partition": 0, "fetch_offset": 2,
                                           "last_fetched_epoch": 0}))  # fmt: skip


@script("Fetch")
def fetch_by_who_is_no_replica(s):
    """Of a partition that one node has: nobody else has a replica, the leader itself least."""
    f, topic = Fetcher(s), s.topic(partitions=2)
    s.produce(topic, batch(b"a", b"b"))
    ids = {"nobody": 7, "the leader": s.call("Metadata", topics=None)["brokers"][0]["node_id"]}
    for who, node in ids.items():
        state = {"replica_id": node, "replica_epoch": -1}
        as_replica = {"replica_id": node, "replica_state": state}
        f.ask(f"{who}", f.topic(topic, 0, 1), **as_replica)
        f.ask(f"{who}, behind the end", f.topic(topic, {"partition": 0, "fetch_offset": 9}),
              **as_replica)  # fmt: skip
        f.ask(f"{who}, waiting", f.topic(topic, 1), min_bytes=1, max_wait=20, **as_replica)
        if s.version >= 9:
            for epoch in (0, 5):
                f.ask(f"{who}, epoch {epoch}",
                      f.topic(topic, {"partition": 0, "current_leader_epoch": epoch}),
                      **as_replica)  # fmt: skip
        if s.version >= 12:
            f.ask(f"{who}, last epoch", f.topic(topic, {"partition": 0, "fetch_offset": 9,
                  "current_leader_epoch": 0, "last_fetched_epoch": 0}), **as_replica)  # fmt: skip


@script("Fetch", versions=(18, 18))
def fetch_that_waits_for_more_than_comes(s):
    """Its answer says what is there at the end of the wait, not at its beginning. It waits for much
    longer than what is written meanwhile takes: by what as many requests took before."""
    began_s = time.monotonic()
    f, one, two = Fetcher(s), s.topic(), s.topic("other")
    open_one = writer(s)
    add(s, open_one, two, 0)
    waiting = [
        ("too little", s.connect(), f.topic(one, 0), {"min_bytes": 100_000}),
        ("nothing committed", s.connect(), f.topic(two, 0), {"min_bytes": 1, "isolation_level": 1}),
    ]
    wait_ms = min(max(5000, round(5000 * (time.monotonic() - began_s))), 30_000)
    for _, link, topic, fields in waiting:
        link.send(1, s.version, f.fields(topic, max_wait=wait_ms, **fields))
    s.produce(one, batch(b"a", b"b"))
    write(s, open_one, two, b"c")
    for step, link, _, _ in waiting:
        s.note(step, link.receive(), "Fetch", s.version)
    end(s, open_one, commit=True)


@script("Fetch")
def fetch_after_deletion_of_records(s):
    f, topic = Fetcher(s), s.topic()
    s.produce(topic, batch(b"a", b"b"))
    s.produce(topic, batch(b"c"))
    s.call("DeleteRecords", timeout=10_000, topics=[
        {"name": topic, "partitions": [{"partition_index": 0, "offset": 2}]}])  # fmt: skip
    f.ask("before the start", f.topic(topic, 0))
    f.ask("at the start", f.topic(topic, {"partition": 0, "fetch_offset": 2}))


@script("Fetch", versions=(7, 18))
def fetch_sessions(s):
    f, topic = Fetcher(s), s.topic(partitions=3)
    s.produce(topic, batch(b"a"))
    number = f.ask("open", f.topic(topic, 0, 1), session=(0, 0))["session_id"]
    after = {"partition": 0, "fetch_offset": 1}
    f.ask("move on", f.topic(topic, after), session=(number, 1))
    f.ask("no news", session=(number, 2))
    s.produce(topic, batch(b"b"), partition=1)
    f.ask("news", session=(number, 3))
    f.ask("read", f.topic(topic, {"partition": 1, "fetch_offset": 1}), session=(number, 4))
    f.ask("one more", f.topic(topic, 2), session=(number, 5))
    f.ask("forget", session=(number, 6), forgotten_topics_data=[f.forgotten(topic, 1)])
    s.produce(topic, batch(b"c"), partition=1)
    f.ask("forgotten", session=(number, 7))
    f.ask("epoch too high", session=(number, 9))
    f.ask("epoch too low", session=(number, 7))
    f.ask("going on", session=(number, 8))
    f.ask("unknown partition", f.topic(topic, 9), session=(number, 9))
    f.ask("still unknown", session=(number, 10))
    f.ask("offset out of range", f.topic(topic, {"partition": 0, "fetch_offset": 99}),
          session=(number, 11))  # fmt: skip
    f.ask("still out of range", session=(number, 12))
    f.ask("close", f.topic(topic, after), session=(number, -1))
    f.ask("closed", session=(number, 13))
    f.ask("never there", session=(12345, 1))


@script("Fetch", versions=(7, 12))
def fetch_session_changes_to_ids(s):
    f, topic = Fetcher(s), s.topic()
    number = f.ask("by name", f.topic(topic, 0), session=(0, 0))["session_id"]
    s.ask("by id", version=13, session_id=number, session_epoch=1, topics=[], replica_id=-1,
          max_bytes=1000)  # fmt: skip


@script("Fetch", versions=(7, 18))
def fetch_session_of_deleted_topic(s):
    f, topic, other = Fetcher(s), s.topic(), s.topic("other")
    s.produce(topic, batch(b"a"))
    number = f.ask("open", f.topic(topic, 0), f.topic(other, 0), session=(0, 0))["session_id"]
    s.delete(topic)
    f.ask("deleted", session=(number, 1))
    f.ask("still deleted", session=(number, 2))
    s.create(topic)
    s.produce(topic, batch(b"b"))
    f.ask("made anew", session=(number, 3))
    f.ask("still", session=(number, 4))
    f.ask("named again", f.topic(topic, 0), session=(number, 5))
    f.ask("settled", f.topic(topic, {"partition": 0, "fetch_offset": 1}), session=(number, 6))


@script("Fetch", versions=(7, 18))
def fetch_session_of_topic_made_anew(s):
    f, topic = Fetcher(s), s.topic()
    s.produce(topic, batch(b"a"))
    number = f.ask("open", f.topic(topic, 0), session=(0, 0))["session_id"]
    s.delete(topic)
    s.create(topic)
    f.ask("made anew", session=(number, 1))
    f.ask("next", session=(number, 2))


@script("Fetch", versions=(7, 18))
def fetch_session_of_unknown_topic(s):
    f = Fetcher(s)
    unknown = s.id("unknown") if s.version >= 13 else s.name("unknown")
    answer = f.ask("open", f.topic(unknown, 0), session=(0, 0))
    f.ask("next", session=(answer["session_id"], 1))
