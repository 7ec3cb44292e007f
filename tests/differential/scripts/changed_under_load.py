"""Settings that change between two requests of one client: from which request on they hold."""

from tests.differential.records import NOW_MS, batch
from tests.differential.registry import script
from tests.differential.scripts.configs import (
    BROKER,
    DELETE,
    SET,
    TOPIC,
    change,
    resource,
    settled,
)
from tests.differential.scripts.fetch import Fetcher
from tests.differential.scripts.produce import both, data

OLD_MS = NOW_MS - 86_400_000


def setting(s, kind, name, **wanted):
    """Change settings (None: as if never set), and wait until they are shown."""
    changes = [(key.replace("_", "."), DELETE if value is None else SET, value or "")
               for key, value in wanted.items()]  # fmt: skip
    rows = [{"name": key, "config_operation": operation, "value": value}
            for key, operation, value in changes]  # fmt: skip
    answer = s.call("IncrementalAlterConfigs", resources=[resource(kind, name, configs=rows)])
    assert answer["responses"][0]["error_code"] == "NONE", answer
    settled(s, kind, name, **wanted)


class Producing:
    """A producer of one topic, whose answers are noted. Kafka's log has a setting a moment after it
    is shown: `until` asks again for an answer of that kind."""

    def __init__(self, s, topic):
        self.s, self.topic = s, both(s, topic)

    def asked(self, records, acks=-1):
        return {"acks": acks, "timeout": 10_000, "topic_data": data(self.s, self.topic, records)}

    def ask(self, step, records, acks=-1):
        self.s.ask(step, **self.asked(records, acks))

    def until(self, step, code, records, acks=-1):
        def wanted(answer):
            row = answer["responses"][0]["partition_responses"][0]
            return row["error_code"] == code

        answer = self.s.until(wanted, "Produce", self.s.version, **self.asked(records, acks))
        row = answer["responses"][0]["partition_responses"][0]
        row["base_offset"] = row["base_offset"] >= 0
        self.s.note(step, answer)


@script("Produce", versions=(12, 13))
def sizes_change_under_load(s):
    name, long = s.topic(), batch(b"x" * 5000)
    p = Producing(s, name)
    p.ask("before", long)
    setting(s, TOPIC, name, max_message_bytes="1000")
    p.until("too large", "MESSAGE_TOO_LARGE", long)
    p.ask("small", batch(b"x"))
    setting(s, TOPIC, name, max_message_bytes=None)
    p.until("as before", "NONE", long)


@script("Produce", versions=(12, 13))
def keys_are_needed_under_load(s):
    name = s.topic()
    p = Producing(s, name)
    p.ask("before", batch(b"no key"))
    setting(s, TOPIC, name, cleanup_policy="compact")
    p.until("no key", "INVALID_RECORD", batch(b"no key"))
    setting(s, TOPIC, name, cleanup_policy="delete")
    p.until("as before", "NONE", batch(b"no key"))


@script("Produce", versions=(12, 13))
def times_change_under_load(s):
    name = s.topic()
    p = Producing(s, name)
    old = batch(b"old", timestamp=OLD_MS)
    p.ask("before", old)
    setting(s, TOPIC, name, message_timestamp_before_max_ms="3600000")
    p.until("too old", "INVALID_TIMESTAMP", old)
    setting(s, TOPIC, name, message_timestamp_type="LogAppendTime")

    def stamped(answer):
        row = answer["responses"][0]["partition_responses"][0]
        return row["error_code"] == "NONE" and row["log_append_time"] is not None

    answer = s.until(stamped, "Produce", s.version, **p.asked(old))
    s.note("stamped", {"error": answer["responses"][0]["partition_responses"][0]["error_code"]})
    setting(s, TOPIC, name, message_timestamp_type=None, message_timestamp_before_max_ms=None)
    p.until("as before", "NONE", batch(b"new"))


@script("Fetch", versions=(12, 12))
def codecs_change_under_load(s):
    """What is there stays as it is; what comes has the topic's codec."""
    f, name = Fetcher(s), s.topic()
    attributes = []
    for codec, number in ((None, 0), ("gzip", 1), ("zstd", 4), ("producer", 0)):
        setting(s, TOPIC, name, compression_type=codec)
        for _ in range(500):
            s.produce(name, batch(b"same " * 100))
            asked = f.fields(f.topic(name, 0))
            answer = s.call("Fetch", s.version, **asked)
            found = bytes.fromhex(answer["responses"][0]["partitions"][0]["records"])
            at, last = 0, 0
            while at + 61 <= len(found):
                last = found[at + 22] & 7
                at += 12 + int.from_bytes(found[at + 8 : at + 12], "big")
            if last == number:
                break
        attributes.append(last)
    s.note("codecs", {"attributes": attributes})


@script("Fetch", versions=(12, 12))
def partitions_come_under_load(s):
    """A session goes on, and names what was not there."""
    f, name = Fetcher(s), s.topic()
    s.produce(name, batch(b"a"))
    said = f.ask("begun", f.topic(name, 0), session=(0, 0))
    f.ask("not there", f.topic(name, 1), session=(said["session_id"], 1))
    s.call(
        "CreatePartitions", topics=[{"name": name, "count": 2, "assignments": None}], timeout=10_000
    )
    s.served(name, 2)
    s.produce(name, batch(b"b"), partition=1)
    f.ask("there", session=(said["session_id"], 2))
    f.ask("named", f.topic(name, 1), session=(said["session_id"], 3))


@script("IncrementalAlterConfigs")
def broker_settings_under_load(s):
    """The default of all topics without one of their own."""
    name, own = s.topic(), s.topic("own", max_message_bytes="2000000")
    long, topics = batch(b"x" * 5000), {}

    def said(topic):
        answer = s.call("Produce", 9, acks=-1, timeout=10_000, topic_data=[
            {"name": topic, "partition_data": [{"index": 0, "records": long}]}])  # fmt: skip
        return answer["responses"][0]["partition_responses"][0]["error_code"]

    try:
        change(s, "lower", BROKER, "", ("message.max.bytes", SET, "4000"))
        s.until(lambda _: said(name) == "MESSAGE_TOO_LARGE", "ApiVersions")
        topics["own setting"] = said(own)
    finally:
        change(s, "as before", BROKER, "", ("message.max.bytes", DELETE, ""))
        s.until(lambda _: said(name) == "NONE", "ApiVersions")
    s.note("by their own", topics)
