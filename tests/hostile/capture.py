"""Record what real clients send: one JSON file per client in tests/hostile/captures.

    python -m tests.hostile.capture

Runs Apache Kafka behind a proxy that keeps the first request of each API and version a client
sends, as hex. Run it again when a client's new release speaks new versions.
"""

import asyncio
import importlib.metadata
import json
import os
import selectors
import socket
import tempfile
import threading
import time
from pathlib import Path
from struct import unpack_from

import aiokafka
import confluent_kafka
import confluent_kafka.admin
import kafka as kafka_python
import kafka.admin

from benchmarks import kafka as apache

FOLDER = Path(__file__).parent / "captures"
LARGEST = 3000  # bytes of a request worth keeping


class Proxy(threading.Thread):
    """Forwards connections to a broker and keeps requests. One thread, ended with the process."""

    def __init__(self, port, target):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", port))
        self.target = target
        self.seen = {}
        self.pending = {}
        self.poll = selectors.DefaultSelector()
        self.poll.register(self.listener, selectors.EVENT_READ, None)

    def run(self):
        while True:
            for key, _ in self.poll.select():
                if key.data is None:
                    self.connect()
                else:
                    self.forward(key.fileobj, *key.data)

    def connect(self):
        client, server = self.listener.accept()[0], socket.create_connection(self.target)
        self.poll.register(client, selectors.EVENT_READ, (server, True))
        self.poll.register(server, selectors.EVENT_READ, (client, False))
        self.pending[client] = b""

    def forward(self, source, other, from_client):
        try:
            data = source.recv(1 << 20)
            if data:
                other.sendall(data)
        except OSError:
            data = b""
        if not data:
            for end in (source, other):
                self.poll.unregister(end)
                self.pending.pop(end, None)
                end.close()
        elif from_client:
            self.pending[source] = self.keep(self.pending[source] + data)

    def keep(self, data):
        """Cut whole frames off the front; remember the first of each (API key, version)."""
        while len(data) >= 8:
            (size,) = unpack_from(">i", data)
            if len(data) < size + 4:
                break
            frame, data = data[: size + 4], data[size + 4 :]
            if len(frame) <= LARGEST:
                self.seen.setdefault(unpack_from(">hh", frame, 4), frame.hex())
        return data


def with_librdkafka(bootstrap):
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    new = confluent_kafka.admin.NewTopic("captured", 2, 1, config={"retention.ms": "1000000"})
    admin.create_topics([new])["captured"].result(30)
    for codec in ("none", "zstd"):
        settings = {"enable.idempotence": codec == "zstd", "compression.type": codec}
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **settings})
        producer.produce("captured", b"value", b"key", headers={"h": b"1"})
        assert producer.flush(30) == 0
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    consumer.assign([confluent_kafka.TopicPartition("captured", i, 0) for i in (0, 1)])
    assert len(consumer.consume(2, 30)) == 2
    consumer.offsets_for_times([confluent_kafka.TopicPartition("captured", 0, 1)], 30)
    consumer.close()
    topic = confluent_kafka.admin.ConfigResource("topic", "captured")
    admin.describe_configs([topic])[topic].result(30)
    entry = confluent_kafka.admin.ConfigEntry(
        "retention.ms", "1", incremental_operation=confluent_kafka.admin.AlterConfigOpType.SET
    )
    change = confluent_kafka.admin.ConfigResource("topic", "captured", incremental_configs=[entry])
    admin.incremental_alter_configs([change])[change].result(30)
    for call, argument in (
        (admin.create_partitions, confluent_kafka.admin.NewPartitions("captured", 3)),
        (admin.delete_records, confluent_kafka.TopicPartition("captured", 0, 0)),
        (admin.delete_topics, "captured"),
    ):
        next(iter(call([argument]).values())).result(30)


def with_kafka_python(bootstrap):
    admin = kafka_python.KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics({"captured": {"num_partitions": 2}}, wait_for_metadata=True)
    producer = kafka_python.KafkaProducer(bootstrap_servers=bootstrap)
    producer.send("captured", b"v", key=b"k", headers=[("h", b"1")]).get(30)
    producer.close()
    places = [kafka_python.TopicPartition("captured", i) for i in (0, 1)]
    consumer = kafka_python.KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest"
    )
    consumer.assign(places)
    consumer.poll(timeout_ms=3000)
    consumer.offsets_for_times({places[0]: 1})
    consumer.close()
    admin.describe_topics(["captured"])
    admin.describe_topic_partitions(["captured"])
    resource = kafka.admin.ConfigResource(
        kafka.admin.ConfigResourceType.TOPIC, "captured", {"retention.ms": "5"}
    )
    admin.describe_configs([kafka.admin.ConfigResource("TOPIC", "captured")])
    for incremental in (True, False):
        admin.alter_configs([resource], incremental=incremental)
    admin.create_partitions({"captured": 3})
    admin.delete_records({places[0]: 0})
    admin.describe_cluster()
    admin.describe_metadata_quorum()
    admin.describe_features()
    admin.describe_log_dirs(["captured"])
    admin.delete_topics(["captured"])
    admin.close()


def with_aiokafka(bootstrap):
    async def session():
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True
        ) as producer:
            await producer.send_and_wait("captured", b"v", key=b"k", headers=[("h", b"1")])
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap)
        await consumer.start()
        place = aiokafka.TopicPartition("captured", 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        await asyncio.wait_for(consumer.getone(), 30)
        await consumer.stop()

    asyncio.run(session())


def with_java(bootstrap):
    def tool(name, *words, stdin=None):
        done = apache.tool("org.apache.kafka.tools." + name, *words, stdin=stdin)
        assert done.returncode == 0, done.stderr

    to = ["--bootstrap-server", bootstrap]
    named = [*to, "--topic", "captured-java"]
    tool("TopicCommand", *named, "--create", "--partitions", "2")
    tool("ConsoleProducer", *named, "--compression-codec", "lz4", stdin="a\nb\n")
    read = ["--partition", "0", "--offset", "earliest", "--timeout-ms", "3000"]
    tool("consumer.ConsoleConsumer", *named, *read)
    tool("TopicCommand", *named, "--describe")
    tool("GetOffsetShell", *named)
    tool("LogDirsCommand", *to, "--describe")
    tool("MetadataQuorumCommand", *to, "describe", "--status")
    tool("FeatureCommand", *to, "describe")
    tool("TopicCommand", *named, "--delete")


def versions():
    return {
        "confluent-kafka": ("confluent-kafka", with_librdkafka),
        "kafka-python": ("kafka-python", with_kafka_python),
        "aiokafka": ("aiokafka", with_aiokafka),
        "java": (None, with_java),
    }


def main():
    apache.fetch()
    with tempfile.TemporaryDirectory() as folder:
        node, port = apache.Kafka(Path(folder), heap="512m"), apache.free_port()
        node.settings["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
        proxy = Proxy(port, ("127.0.0.1", node.port))
        with node:
            proxy.start()
            for name, (package, session) in versions().items():
                proxy.seen.clear()
                session(f"127.0.0.1:{port}")
                version = importlib.metadata.version(package) if package else "4.3.1"
                write(name, version, proxy.seen)


def write(name, version, seen):
    requests = [
        {"key": key, "version": number, "hex": text} for (key, number), text in sorted(seen.items())
    ]
    (FOLDER / f"{name}.json").write_text(
        json.dumps({"client": f"{name} {version}", "requests": requests}, indent=1) + "\n"
    )
    print(name, [(r["key"], r["version"]) for r in requests])


if __name__ == "__main__":
    begun = time.monotonic()
    main()
    print(f"{time.monotonic() - begun:.0f} s, pid {os.getpid()}")
