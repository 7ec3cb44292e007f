"""Another program fills the disk of a running appliance: fetches, deletions and groups go on, the
rest is refused with a reason, a start while it is full serves, and all resumes alone."""

import contextlib
import time

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import KAFKA, Broker
from tests.faults.load import Load
from tests.faults.small_disk import SmallDisk

pytestmark = pytest.mark.skipif(KAFKA, reason="Apache Kafka halts a log folder that is full")

LIMIT_S = 60
SETTINGS = {
    "penstock.disk.free.min.bytes": str(4 << 20),
    "offsets.topic.num.partitions": "2",
    "auto.create.topics.enable": "false",
}
FULL = ck.KafkaError.KAFKA_STORAGE_ERROR


class Appliance:
    """One broker over two small disks; the first holds the metadata. A topic with two partitions
    has one on each: `on` tells which."""

    def __init__(self, first, second):
        self.disks = (first, second)
        dirs = [str(disk.mount / "data") for disk in self.disks]
        self.broker = Broker(
            first.mount / "data", SETTINGS | {"log.dirs": ",".join(dirs), "log.dir": dirs[0]}
        )
        self.broker.log = first.mount.parent / "broker.out"
        self.on = {}
        self.written = {0: [], 1: []}

    def start(self):
        self.broker.start()
        self.admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})

    def create(self, name, partitions=2):
        self.admin.create_topics([NewTopic(name, partitions, 1)])[name].result(LIMIT_S)

    def create_error(self, name):
        with pytest.raises(ck.KafkaException) as refused:
            self.create(name)
        return refused.value.args[0]

    def delete(self, name):
        self.admin.delete_topics([name])[name].result(LIMIT_S)

    def produce(self, partition, timeout_s=LIMIT_S):
        """One record to a partition of `t`; whether it was acknowledged."""
        producer = ck.Producer({
            "bootstrap.servers": self.broker.bootstrap, "acks": "all", "log_level": 0,
            "message.timeout.ms": int(timeout_s * 1000), "retry.backoff.ms": 50,
            "enable.idempotence": True,
        })  # fmt: skip
        told = []
        value = b"%d" % time.monotonic_ns() * 50
        producer.produce(
            "t", value, partition=partition, on_delivery=lambda error, _: told.append(error)
        )
        assert producer.flush(timeout_s + 5) == 0
        done = told[0] is None
        if done:
            self.written[partition].append(value)
        return done

    def check_all_is_read(self):
        """Every acknowledged record, by fetching from the beginning."""
        for partition, expected in self.written.items():
            consumer = ck.Consumer({
                "bootstrap.servers": self.broker.bootstrap, "group.id": "unused", "log_level": 0,
                "enable.auto.commit": False,
            })  # fmt: skip
            with contextlib.closing(consumer):
                consumer.assign([ck.TopicPartition("t", partition, 0)])
                found, end = [], time.monotonic() + LIMIT_S
                while len(set(expected) & set(found)) < len(expected):
                    assert time.monotonic() < end, (partition, len(found), self.broker.output())
                    message = consumer.poll(0.5)
                    if message is not None and not message.error():
                        found.append(message.value())

    def commit(self, group):
        """Join the group, read a record, commit: the committed offset."""
        consumer = ck.Consumer({
            "bootstrap.servers": self.broker.bootstrap, "group.id": group, "log_level": 0,
            "auto.offset.reset": "earliest", "enable.auto.commit": False,
        })  # fmt: skip
        with contextlib.closing(consumer):
            consumer.subscribe(["t"])
            end = time.monotonic() + LIMIT_S
            while (message := consumer.poll(0.5)) is None or message.error():
                assert time.monotonic() < end, self.broker.output()
            done = consumer.commit(message=message, asynchronous=False)
            assert done[0].error is None
            return done[0].offset

    def survived(self):
        """Nothing of it died or went offline."""
        said = self.broker.output()
        for bad in ("child-died", "partition-offline", "bug", "Traceback"):
            assert bad not in said, said


@pytest.fixture
def appliance(request, tmp_path):
    kind = request.param
    with SmallDisk(tmp_path / "a", kind) as first, SmallDisk(tmp_path / "b", kind) as second:
        one = Appliance(first, second)
        try:
            one.start()
            one.create("t")
            one.create("gone")
            for partition in (0, 1):
                assert one.produce(partition)
            one.commit("early")
            for disk in one.disks:
                for partition in (0, 1):
                    if (disk.mount / "data" / f"t-{partition}").exists():
                        one.on[disk] = partition
            assert len(one.on) == 2
            yield one
        finally:
            one.broker.__exit__()


def wait_until_refused(appliance, disk):
    while appliance.produce(appliance.on[disk], timeout_s=1):
        pass


@pytest.mark.parametrize(
    ("appliance", "end"), [("tmpfs", "stop"), ("ext4", "kill")], indirect=["appliance"]
)
def test_the_disk_of_the_metadata_is_filled_by_another_program(appliance, end):
    first, second = appliance.disks
    first.fill()
    wait_until_refused(appliance, first)
    assert appliance.produce(appliance.on[second]), "the other disk has room"
    appliance.check_all_is_read()
    appliance.commit("early")
    appliance.commit("new while it is full")
    refused = appliance.create_error("late")
    assert refused.code() == FULL and "is nearly full" in refused.str()
    appliance.survived()
    if end == "stop":
        assert appliance.broker.stop() == 0, appliance.broker.output()
    else:
        appliance.broker.kill()
    first.fill()
    appliance.start()
    appliance.check_all_is_read()
    assert not appliance.produce(appliance.on[first], timeout_s=1)
    appliance.commit("after a start while it is full")
    appliance.delete("gone")
    appliance.survived()
    first.make_room()
    for partition in (0, 1):
        assert appliance.produce(partition)
    appliance.create("late")
    appliance.commit("late")
    appliance.check_all_is_read()
    appliance.survived()
    assert appliance.broker.stop() == 0


@pytest.mark.parametrize("appliance", ["ext4"], indirect=True)
def test_the_disk_of_another_log_folder_is_filled_by_another_program(appliance):
    first, second = appliance.disks
    second.fill()
    wait_until_refused(appliance, second)
    assert appliance.produce(appliance.on[first])
    appliance.create("late", 4)  # where there is room
    assert not list((second.mount / "data").glob("late-*"))
    appliance.check_all_is_read()
    appliance.commit("while it is full")
    appliance.delete("gone")
    appliance.broker.kill()
    second.fill()
    appliance.start()
    appliance.check_all_is_read()
    appliance.commit("after a start while it is full")
    appliance.survived()
    second.make_room()
    for partition in (0, 1):
        assert appliance.produce(partition)
    appliance.check_all_is_read()
    appliance.survived()
    assert appliance.broker.stop() == 0


@pytest.mark.parametrize("kind", ["ext4"])
def test_it_is_filled_faster_than_anybody_looks_under_load(kind, tmp_path):
    """ENOSPC reaches the logs: producers are told to try again, nothing is lost or doubled."""
    with SmallDisk(tmp_path / "a", kind, mib=192) as disk:
        broker = Broker(disk.mount / "data", {"penstock.disk.free.min.bytes": "0"})
        broker.log = tmp_path / "broker.out"
        with broker:
            topic = broker.peer.create(4, {}, "load")
            with Load(broker.bootstrap, topic, 4) as load:
                for time_ in range(1, 4):
                    load.go_on()
                    disk.fill()
                    end = time.monotonic() + LIMIT_S
                    while broker.output().count("disk-nearly-full") < time_:
                        assert time.monotonic() < end, broker.output()
                        time.sleep(0.01)
                    disk.make_room()
                    load.go_on()
                load.finish()
                load.check_errors()
                load.check_content()
        said = broker.output()
        for bad in ("child-died", "partition-offline", "bug", "Traceback"):
            assert bad not in said, said
        assert "ended clean=yes" in said
