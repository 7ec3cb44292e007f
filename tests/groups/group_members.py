"""Consumers of librdkafka that are polled in turn on one thread, so that a test decides when who
acts."""

import time

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

LIMIT_S = 60
"""How long a group may take for one step before a test gives up, seconds. Never slept through."""


class Member:
    """One consumer. owned: its partitions, as it was told. got: (partition, offset) of its records,
    in order. told: errors."""

    def __init__(self, bootstrap, group, topic, **settings):
        self.owned = set()
        self.got = []
        self.told = []
        self.losses = 0
        new = settings.get("group_protocol") == "consumer"
        session = {} if new else {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
        self.client = ck.Consumer({
            "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, **session,
            "fetch.wait.max.ms": 50, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 20, "log_level": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        })  # fmt: skip
        cooperative = settings.get("partition_assignment_strategy") == "cooperative-sticky"
        self.eager = not new and not cooperative
        self.client.subscribe(
            [topic], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose
        )

    def _assign(self, client, partitions):
        given = {one.partition for one in partitions}
        self.owned = given if self.eager else self.owned | given

    def _revoke(self, client, partitions):
        self.owned -= {one.partition for one in partitions}

    def _lose(self, client, partitions):
        self.losses += 1
        self._revoke(client, partitions)

    def poll(self, timeout_s=0.01):
        message = self.client.poll(timeout_s)
        if message is None:
            return
        if message.error():
            self.told.append(message.error())
        else:
            self.got.append((message.partition(), message.offset()))

    def commit(self, offsets):
        """Commit {partition: offset} and return what the broker said, by partition."""
        topic = self.client.assignment()[0].topic
        said = self.client.commit(
            offsets=[ck.TopicPartition(topic, p, o) for p, o in offsets.items()], asynchronous=False
        )
        return {one.partition: one.error for one in said}

    def close(self):
        self.client.close()


def until(members, check, limit_s=LIMIT_S):
    """Poll the members in turn until `check` holds. Returns the seconds it took."""
    begun = time.monotonic()
    while not check():
        assert time.monotonic() < begun + limit_s, [(m.owned, m.told[-3:]) for m in members]
        for member in members:
            member.poll()
    return time.monotonic() - begun


def share(members, partitions):
    """Whether every partition has exactly one owner and everybody owns something."""
    owned = [p for member in members for p in member.owned]
    return sorted(owned) == list(range(partitions)) and all(member.owned for member in members)


def fill(bootstrap, topic, partitions, count):
    """Create a topic and put `count` numbered records into each of its partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        made.result()
    producer = ck.Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        for partition in range(partitions):
            producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(30) == 0
