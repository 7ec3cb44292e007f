"""Records that tests write for the software of others, and what it left behind."""

import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

LIMIT_S = 90
"""How long the software of others may take for one step. Never slept through."""


class Records:
    """Topics of one broker, through librdkafka. Raises AssertionError after LIMIT_S."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def create(self, *topics: str, partitions: int = 3) -> None:
        """Creates the topics and waits until they are led."""
        made = self._admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics])
        for future in made.values():
            future.result(LIMIT_S)

    def write(self, topic: str, numbers: range) -> None:
        """Writes each number as a value, with the number's text as its key."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0})
        for number in numbers:
            producer.produce(topic, str(number).encode(), str(number).encode())
        assert producer.flush(LIMIT_S) == 0

    def read(self, topic: str, count: int) -> list[tuple[bytes | None, bytes]]:
        """Keys and values of all committed records, in no order, as soon as there are `count` of
        them, and of those that are there beyond them."""
        settings = {
            "bootstrap.servers": self.bootstrap, "group.id": "nobody", "enable.auto.commit": False,
            "isolation.level": "read_committed", "auto.offset.reset": "earliest",
        }  # fmt: skip
        consumer, found = Consumer(settings), []
        end = time.monotonic() + LIMIT_S
        try:
            partitions = consumer.list_topics(topic, LIMIT_S).topics[topic].partitions
            consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
            while True:
                message = consumer.poll(0.2)
                if message is None and len(found) >= count:
                    return found
                assert time.monotonic() < end, f"{len(found)} of {count} records in {topic}"
                if message is not None:
                    assert not message.error(), message.error()
                    found.append((message.key(), message.value()))
        finally:
            consumer.close()

    def ends(self, topic: str) -> dict[int, int]:
        """The end of each partition's log."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "nobody"})
        try:
            partitions = consumer.list_topics(topic, LIMIT_S).topics[topic].partitions
            return {
                index: consumer.get_watermark_offsets(TopicPartition(topic, index), LIMIT_S)[1]
                for index in partitions
            }
        finally:
            consumer.close()

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """What a group has committed for a topic."""
        asked = [ConsumerGroupTopicPartitions(group)]
        (future,) = self._admin.list_consumer_group_offsets(asked).values()
        parts = future.result(LIMIT_S).topic_partitions
        return {one.partition: one.offset for one in parts if one.topic == topic}
