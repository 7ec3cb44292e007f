"""What readers of both isolations get of what real clients write in transactions."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks import kafka
from tests import java_tools

TOOLS = "org.apache.kafka.tools."
LIMIT_S = 60
RECORDS = 3000


def read(bootstrap, topic, isolation, partitions=1):
    """Values of a whole topic, in the order of each partition."""
    settings = {
        "bootstrap.servers": bootstrap, "group.id": "nobody", "enable.auto.commit": False,
        "isolation.level": isolation, "enable.partition.eof": True,
    }  # fmt: skip
    consumer, found, ends = Consumer(settings), [], set()
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        while len(ends) < partitions:
            message = consumer.poll(LIMIT_S)
            assert message is not None, "the end of a partition is never reached"
            if message.error():
                ends.add(message.partition())
            else:
                found.append(message.value().decode())
    finally:
        consumer.close()
    return found


def test_records_sent_ahead_are_seen_in_order_when_they_are_committed(bootstrap, topic, fresh):
    """Five requests in flight from the first one on, while their partition is added."""
    settings = {
        "bootstrap.servers": bootstrap, "transactional.id": fresh(), "linger.ms": 0,
        "batch.num.messages": 20, "max.in.flight.requests.per.connection": 5,
    }  # fmt: skip
    producer, problems, kept = Producer(settings), [], []
    producer.init_transactions(LIMIT_S)

    def told(error, message):
        if error is not None:
            problems.append(error.str())

    for number in range(8):
        producer.begin_transaction()
        for one in range(300):
            producer.produce(topic, f"{number}.{one}", on_delivery=told)
        if number % 3 == 2:
            producer.flush(LIMIT_S)
            assert read(bootstrap, topic, "read_committed") == kept, "it is still open"
            producer.abort_transaction(LIMIT_S)
        else:
            producer.commit_transaction(LIMIT_S)
            kept += [f"{number}.{one}" for one in range(300)]
    assert not problems
    assert read(bootstrap, topic, "read_committed") == kept
    assert len(read(bootstrap, topic, "read_uncommitted")) == 8 * 300


@pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
def test_java_clients_write_and_read_transactions(bootstrap, topic, fresh):
    """The producer adds partitions by its batches (transaction.version 2)."""
    words = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(RECORDS)]
    words += ["--record-size", "50", "--throughput", "-1", "--transactional-id", fresh()]
    done = java_tools.tool(TOOLS + "ProducerPerformance", *words, "--transaction-duration-ms", "5")
    assert f"{RECORDS} records sent" in done.stdout, done.stdout + done.stderr
    assert done.stderr == ""
    words = ["--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"]
    words += ["--max-messages", str(RECORDS), "--isolation-level", "read_committed"]
    done = java_tools.tool(TOOLS + "consumer.ConsoleConsumer", *words, "--timeout-ms", "20000")
    assert len(done.stdout.split()) == RECORDS, done.stderr
