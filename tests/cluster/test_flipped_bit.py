"""One bit of one replica is another one than was written: nobody takes those records for sound,
it is told which they are, and the replica has them again from its peers.

The leader sends records as they lie in its files, as Apache Kafka does: who looks at the checksum
of a batch is the consumer (`check.crcs`), a follower, a start after a crash, `penstock storage`.
"""

import json

import confluent_kafka as ck
import confluent_kafka.admin
import pytest

from appliance.wire.batch_header import HEADER_SIZE, MAGIC_AT, read_header
from tests.broker_process import KAFKA
from tests.cluster.nodes import Nodes
from tests.console_process import typing

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(KAFKA, reason="what a node says of its files is ours"),
]
TOPIC, RECORDS, SIZE = "rot", 60, 50_000
VICTIM = 2
SETTINGS = {"offsets.topic.num.partitions": "1"}
LIMIT_S = 60


@pytest.fixture
def nodes(tmp_path):
    with Nodes(tmp_path, settings=SETTINGS) as running:
        yield running


def filled(nodes, leader):
    """Several closed segments, each record a batch of its own."""
    order = [leader, *(number for number in nodes.all if number != leader)]
    nodes.create(TOPIC, assignment=[order], configs={"segment.bytes": str(1 << 20)})
    producer = ck.Producer({"bootstrap.servers": nodes.bootstrap, "linger.ms": 0})
    for number in range(RECORDS):
        producer.produce(TOPIC, value(number), partition=0)
        assert producer.flush(LIMIT_S) == 0
    nodes.wait(lambda: nodes.level(TOPIC), "all have everything")


def value(number):
    return b"%d" % number + b"." * SIZE


def flip(nodes, number, record, at=HEADER_SIZE + SIZE // 2):
    """One bit of the batch of this record, as that node has it, so many bytes behind its begin."""
    (folder,) = nodes[number].data.rglob(f"{TOPIC}-0")
    path = max(one for one in folder.glob("*.log") if int(one.stem) <= record)
    log, begins = path.read_bytes(), 0
    while (head := read_header(log, begins)).base_offset < record:
        begins += head.size
    assert head.base_offset == record
    with path.open("r+b") as file:
        file.seek(begins + at)
        file.write(bytes((log[begins + at] ^ 1,)))
    return path.name


def read(bootstrap, **settings):
    """Values from the beginning, up to the first error or the end; and that error."""
    client = ck.Consumer({
        "bootstrap.servers": bootstrap, "group.id": "unused", "check.crcs": True,
        "enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "error",
        **settings,
    })  # fmt: skip
    client.assign([ck.TopicPartition(TOPIC, 0, 0)])
    found = []
    try:
        while (message := client.poll(LIMIT_S)) is not None:
            if error := message.error():
                return found, error.code()
            found.append(message.value())
        raise AssertionError(f"nothing comes behind {len(found)} records")
    finally:
        client.close()


def reads_all(nodes):
    found, code = read(nodes.bootstrap)
    assert code == ck.KafkaError._PARTITION_EOF
    assert found == [value(number) for number in range(RECORDS)]


def storage(nodes, number, *words, code=0):
    run = typing(nodes.bootstrap)
    done = run("storage", *words, str(nodes[number].data), "-o", "json", code=code)
    return json.loads(done.stdout)


def test_a_leader_with_a_flipped_bit_is_found_out_and_repaired(nodes):
    filled(nodes, VICTIM)
    name = flip(nodes, VICTIM, 30)
    found, code = read(nodes.bootstrap)
    assert code == ck.KafkaError._BAD_MSG, "its consumers are told"
    assert found == [value(number) for number in range(30)], "nothing else is given to them"
    (damage,) = storage(nodes, VICTIM, "verify", code=4)
    assert (damage["partition"], damage["first_offset"], damage["last_offset"]) == (
        f"{TOPIC}-0", 30, 30,
    )  # fmt: skip
    assert damage["file"].endswith(name)
    assert nodes.stop(VICTIM) == 0
    reads_all(nodes)  # others lead
    (done,) = storage(nodes, VICTIM, "repair", "--yes")
    assert (done["action"], done["lost_offsets"]) == ("fetch again", [])
    nodes.start(VICTIM)
    nodes.wait(lambda: nodes.whole(TOPIC), "all are in sync")
    nodes.wait(lambda: nodes.level(TOPIC), "all have everything")
    nodes.compare_replicas(TOPIC)
    assert storage(nodes, VICTIM, "verify") == []
    reads_all(nodes)


def test_a_leader_that_meets_what_was_not_written_makes_way_and_fetches_anew(nodes):
    """A consumer reads over it batch by batch, and notices nothing."""
    filled(nodes, VICTIM)
    epoch = nodes.partition(TOPIC).epoch
    flip(nodes, VICTIM, 30, MAGIC_AT)
    found, code = read(nodes.bootstrap, **{"max.partition.fetch.bytes": SIZE // 2})
    assert code == ck.KafkaError._PARTITION_EOF
    assert found == [value(number) for number in range(RECORDS)], "each once, in order"
    now = nodes.partition(TOPIC)
    assert now.epoch > epoch
    nodes.wait(lambda: "replica-whole" in nodes[VICTIM].output(), "it is whole by itself")
    nodes.wait(lambda: nodes.whole(TOPIC) and nodes.level(TOPIC), "all are in sync")
    nodes.compare_replicas(TOPIC)
    assert nodes[VICTIM].output().count("partition-offline") == 1
    nodes.wait(lambda: not aside(nodes[VICTIM]), "what was damaged is removed")
    assert storage(nodes, VICTIM, "verify") == []
    leads_again(nodes, VICTIM)
    reads_all(nodes)


def leads_again(nodes, number):
    """It is the first of the replicas."""
    admin = ck.admin.AdminClient({"bootstrap.servers": nodes.bootstrap})
    wanted = [ck.TopicPartition(TOPIC, 0)]
    admin.elect_leaders(ck.ElectionType.PREFERRED, wanted).result(LIMIT_S)
    nodes.wait(lambda: nodes.partition(TOPIC).leader == number, "it leads again")


def aside(node):
    return [path for one in node.log_dirs for path in one.glob(f"{TOPIC}-*-stray")]


def test_a_leader_that_a_follower_does_not_believe_makes_way(nodes):
    """The follower has lost its log, fetches it, and says what it will not have. Its leader looks,
    and both fetch from another one: nobody does anything."""
    filled(nodes, VICTIM)
    other = min(number for number in nodes.all if number != VICTIM)
    nodes.kill(other)
    nodes.wait(lambda: other not in nodes.partition(TOPIC).isr, "it is out of sync")
    flip(nodes, VICTIM, 30)
    (folder,) = nodes[other].data.rglob(f"{TOPIC}-0")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    nodes.start(other)
    nodes.wait(lambda: "replica-whole" in nodes[VICTIM].output(), "the leader is whole again")
    nodes.wait(lambda: nodes.whole(TOPIC) and nodes.level(TOPIC), "all are in sync")
    assert "CRC32C" in next(
        line for line in nodes[other].output().splitlines() if "records-not-taken" in line
    )
    nodes.compare_replicas(TOPIC)
    assert storage(nodes, VICTIM, "verify") == storage(nodes, other, "verify") == []
    reads_all(nodes)


@pytest.mark.parametrize("record", [5, RECORDS - 2])
def test_a_crashed_node_does_not_count_on_a_flipped_bit(nodes, record):
    """Its start reads what may not have been on the disk, and it fetches from its leader what it
    does not believe."""
    leader = min(number for number in nodes.all if number != VICTIM)
    filled(nodes, leader)
    nodes.kill(VICTIM)
    nodes.wait(lambda: VICTIM not in nodes.partition(TOPIC).isr, "it is out of sync")
    flip(nodes, VICTIM, record)
    nodes.start(VICTIM)
    nodes.wait(lambda: nodes.whole(TOPIC) and nodes.level(TOPIC), "all are in sync")
    nodes.compare_replicas(TOPIC)
    reads_all(nodes)


def test_a_start_that_finds_a_flipped_bit_where_all_was_synced_fetches_anew(nodes):
    """It looks where the log ends, and does not cut what was acknowledged: it sets the log aside as
    soon as another node leads and nobody counts on this one."""
    leader = min(number for number in nodes.all if number != VICTIM)
    filled(nodes, leader)
    assert nodes.stop(VICTIM) == 0
    nodes.start(VICTIM)
    nodes.wait(lambda: nodes.whole(TOPIC), "all is synced, and all are in sync")
    nodes.kill(VICTIM)
    nodes.wait(lambda: VICTIM not in nodes.partition(TOPIC).isr, "it is out of sync")
    flip(nodes, VICTIM, RECORDS - 1, MAGIC_AT)
    nodes.start(VICTIM)
    said = f"partition-offline partition={TOPIC}-0"
    nodes.wait(lambda: said in nodes[VICTIM].output(), "it says what is wrong")
    nodes.wait(lambda: "replica-whole" in nodes[VICTIM].output(), "it is whole by itself")
    nodes.wait(lambda: nodes.whole(TOPIC) and nodes.level(TOPIC), "all are in sync")
    nodes.compare_replicas(TOPIC)
    reads_all(nodes)
    assert nodes.stop(VICTIM) == 0


def test_a_repair_by_hand_fetches_again(nodes):
    """A bit that nobody has met yet, found by `verify`."""
    leader = min(number for number in nodes.all if number != VICTIM)
    filled(nodes, leader)
    flip(nodes, VICTIM, 30)
    (damage,) = storage(nodes, VICTIM, "verify", code=4)
    assert damage["first_offset"] == 30
    assert nodes.stop(VICTIM) == 0
    (done,) = storage(nodes, VICTIM, "repair", "--yes")
    assert (done["action"], done["lost_offsets"]) == ("fetch again", [])
    nodes.start(VICTIM)
    nodes.wait(lambda: nodes.whole(TOPIC) and nodes.level(TOPIC), "all are in sync")
    nodes.compare_replicas(TOPIC)


def test_a_leader_that_dies_as_soon_as_another_one_leads_is_whole_after_its_start(nodes):
    """Wherever it was on its way there."""
    filled(nodes, VICTIM)
    flip(nodes, VICTIM, 30, MAGIC_AT)
    found, code = read(nodes.bootstrap, **{"max.partition.fetch.bytes": SIZE // 2})
    assert (len(found), code) == (RECORDS, ck.KafkaError._PARTITION_EOF)
    nodes.kill(VICTIM)
    nodes.start(VICTIM)
    nodes.wait(lambda: nodes.whole(TOPIC) and nodes.level(TOPIC), "all are in sync")
    nodes.compare_replicas(TOPIC)
    assert storage(nodes, VICTIM, "verify") == []
