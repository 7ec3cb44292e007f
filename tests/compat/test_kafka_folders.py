"""`penstock import` and `penstock export`: a folder of Apache Kafka, node 7, becomes one of ours,
is written on, and goes back; a stock client compares what each broker says of it."""

import hashlib
import json
import time
from contextlib import suppress
from pathlib import Path

import confluent_kafka as confluent
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from benchmarks import kafka
from tests.broker_process import Broker
from tests.console_process import typing

pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(300),
]
CODECS = ("zstd", "none", "gzip", "snappy", "lz4")
TOPICS = ("written", "compacted", "paid")
GROUP = "readers"
START_S = 240


def penstock(*words, code=0):
    return typing("")(*map(str, words), code=code)


def digests(folder):
    files = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def done(futures):
    return {name: future.result(30) for name, future in futures.items()}


def consumer(bootstrap, group, **settings):
    given = {
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
        "fetch.wait.max.ms": 20,
    }
    return confluent.Consumer({"bootstrap.servers": bootstrap, "group.id": group, **given,
                               **settings})  # fmt: skip


def records(bootstrap, topic, isolation="read_committed"):
    """(partition, offset, timestamp, key, value) of all of them, to the ends."""
    one = consumer(bootstrap, "x", **{"enable.partition.eof": True, "isolation.level": isolation})
    left = set(one.list_topics(topic, 30).topics[topic].partitions)
    one.assign([confluent.TopicPartition(topic, partition, 0) for partition in left])
    found = []
    while left:
        record = one.poll(60)
        assert record is not None
        if record.error():
            assert record.error().code() == confluent.KafkaError._PARTITION_EOF
            left.discard(record.partition())
        else:
            place = record.partition(), record.offset(), record.timestamp()
            found.append((*place, record.key(), record.value()))
    one.close()
    return sorted(found)


def newest(found):
    """The last record of every key."""
    return sorted({record[3]: record for record in found}.values())


def committed(bootstrap):
    """Offsets of the group; coordinators may still be loading."""
    one = consumer(bootstrap, GROUP)
    asked = [confluent.TopicPartition("written", number) for number in (0, 1)]
    end = time.monotonic() + 60
    while True:
        with suppress(confluent.KafkaException):
            return sorted((place.partition, place.offset) for place in one.committed(asked, 30))
        assert time.monotonic() < end


def facts(bootstrap):
    """What there is, as a client sees it."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    described = done(admin.describe_topics(confluent.TopicCollection(list(TOPICS))))
    asked = [ConfigResource("topic", name) for name in TOPICS]
    settings = {
        (resource.name, entry.name): entry.value
        for resource, future in admin.describe_configs(asked).items()
        for entry in future.result(30).values()
        if entry.source == 1 and entry.name != "flush.policy"
    }
    return {
        "ids": {name: str(one.topic_id) for name, one in described.items()},
        "partitions": {name: len(one.partitions) for name, one in described.items()},
        "settings": settings,
        "offsets": committed(bootstrap),
        "records": {
            "written": records(bootstrap, "written"),
            "compacted": newest(records(bootstrap, "compacted")),  # it may be compacted meanwhile
            "paid": records(bootstrap, "paid"),
        },
        "all": records(bootstrap, "paid", "read_uncommitted"),
    }


def users(bootstrap):
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    told = done(admin.describe_user_scram_credentials(["alice"]))["alice"]
    return [(one.mechanism, one.iterations) for one in told.scram_credential_infos]


def pay(bootstrap, committed, aborted):
    """A transaction that is committed and one that is aborted, by the same producer as ever."""
    one = confluent.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "till", "log_level": 0}
    )
    one.init_transactions(60)
    for value, end in ((committed, one.commit_transaction), (aborted, one.abort_transaction)):
        one.begin_transaction()
        one.produce("paid", value)
        one.flush(30)
        end(30)


def read_on(bootstrap, count):
    """The group reads so many more records of `written`, and says so."""
    one = consumer(bootstrap, GROUP)
    one.subscribe(["written"])
    values, end = [], time.monotonic() + 60
    while len(values) < count and time.monotonic() < end:
        values += [(got.partition(), got.offset()) for got in one.consume(count - len(values), 1)]
    one.commit(asynchronous=False)
    one.close()
    return sorted(values)


def fill(bootstrap):
    """Everything that is to come along: `written` has every codec."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    settings = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
    }
    done(admin.create_topics([
        NewTopic("written", 2, 1), NewTopic("compacted", 1, 1, config=settings),
        NewTopic("paid", 1, 1),
    ]))  # fmt: skip
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    done(admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", scram, b"p")]))

    for codec in CODECS:
        one = confluent.Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        for number in range(40):
            one.produce("written", f"{codec} {number}".encode() * 20)
        one.flush(30)
    one = confluent.Producer({"bootstrap.servers": bootstrap})
    for turn in range(4):
        for key in range(5):
            one.produce("compacted", f"{turn}", f"k{key}")
        one.flush(30)
    pay(bootstrap, b"yes", b"no")
    read_on(bootstrap, 60)


class Exported(kafka.Kafka):
    """Apache Kafka as `server.properties` of an export starts it, at ports that are free."""

    def format(self):
        text = (self.data / "server.properties").read_text()
        for told, port in ((":9092", self.port), (":9093", self.controller_port)):
            text = text.replace(f"localhost{told}", f"127.0.0.1:{port}")
        path = self.data.parent / "exported.properties"
        path.write_text(text)
        return str(path)


FEW = {
    "offsets_topic_num_partitions": "2",
    "transaction_state_log_num_partitions": "2",
    "group_initial_rebalance_delay_ms": "0",
}


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """A folder of Apache Kafka that was stopped, what it said before, and the import of it."""
    folder = tmp_path_factory.mktemp("folders")
    node = kafka.Kafka(folder / "kafka", heap="256m", node_id="7", **FEW)
    try:
        node.start(START_S)
        source = folder / "kafka" / "logs"
        held = penstock("import", source, "--data", folder / "data", "--yes", code=1)
        assert "in use" in held.stderr
        fill(node.bootstrap)
        before = facts(node.bootstrap)
    finally:
        node.stop()
    was = digests(source)
    planned = penstock("import", source, "--data", folder / "data", "--dry-run")
    assert not (folder / "data").exists()
    assert "share.version=1" in planned.stderr
    assert "SCRAM credentials are kept: their users" in planned.stderr
    said = penstock("import", source, "--data", folder / "data", "--yes", "-o", "json")
    assert digests(source) == was
    [row] = json.loads(said.stdout)
    assert (row["node_id"], row["clean"], row["cluster_id"]) == (7, True, kafka.CLUSTER_ID)
    return folder, before


def test_from_kafka_and_back(taken):
    folder, before = taken
    with Broker(folder / "data") as ours:
        assert facts(ours.bootstrap) == before
        assert len(before["records"]["written"]) == 40 * len(CODECS)
        got = read_on(ours.bootstrap, 60)
        begins = dict(before["offsets"])
        for partition, offset in got:
            assert offset >= max(begins[partition], 0), "the group goes on where it was"
        pay(ours.bootstrap, b"more", b"less")
        one = confluent.Producer({"bootstrap.servers": ours.bootstrap, "log_level": 0})
        one.produce("written", b"ours", partition=1)
        one.flush(30)
        entry = ConfigEntry("flush.policy", "os", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource("topic", "paid", incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": ours.bootstrap, "log_level": 0})
        done(admin.incremental_alter_configs([resource]))
        said = penstock("export", folder / "back", "--data", folder / "data", "--yes", code=1)
        assert "in use" in said.stderr
        after = facts(ours.bootstrap)
        ours.stop()
    assert [value for *_, value in after["records"]["paid"]] == [b"yes", b"more"]
    said = penstock("export", folder / "back", "--data", folder / "data", "--yes")
    assert "flush.policy of paid" in said.stderr
    node = Exported(folder / "back", heap="256m")
    try:
        node.start(START_S)
        assert facts(node.bootstrap) == after
        assert users(node.bootstrap) == [(ScramMechanism.SCRAM_SHA_256, 8192)]
        entry = ConfigEntry("retention.ms", "1234567", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource("topic", "paid", incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        done(admin.incremental_alter_configs([resource]))
        pay(node.bootstrap, b"last", b"lost")
        assert records(node.bootstrap, "paid")[-1][-1] == b"last"
    finally:
        node.stop()


def test_what_cannot_be_moved_is_said(taken, tmp_path):
    folder, _ = taken
    source = folder / "kafka" / "logs"
    assert "read-only" in penstock("import", source, "--data", source / "x", "--yes", code=2).stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    full = penstock("import", source, "--data", tmp_path / "full", "--yes", code=2).stderr
    assert "not empty" in full
    new = tmp_path / "new"
    none = penstock("import", tmp_path, "--data", new, "--yes", code=2).stderr
    assert "no meta.properties" in none
    copied = copy_without_end(source, tmp_path)
    unclean = penstock("export", new, "--data", copied, "--yes", code=1).stderr
    assert "was not shut down cleanly" in unclean
    planned = penstock("import", tmp_path / "copy", "--data", new, "--dry-run").stderr
    assert "runs log recovery" in planned


def copy_without_end(source, tmp_path):
    """The folder as a kill leaves it."""
    penstock("import", source, "--data", tmp_path / "copy", "--yes")
    (tmp_path / "copy" / ".kafka_cleanshutdown").unlink()
    return tmp_path / "copy"
