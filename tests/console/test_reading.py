"""What is read until its end, where the end that a fetch tells is not the end yet."""

from confluent_kafka import KafkaError, TopicPartition

from console.model.asking.link import Link
from console.model.records import reading
from console.model.records.filters import Filter
from console.model.records.seeking import parse_seek

KEY = ("t", 0)


class Message:
    """A record, or with `eof` the end of the partition, as a consumer gives it."""

    def __init__(self, offset, *, eof=False):
        self._offset, self._eof = offset, eof

    def __getattr__(self, name):
        told = {
            "error": KafkaError(KafkaError._PARTITION_EOF) if self._eof else None,
            "topic": "t", "partition": 0, "offset": self._offset, "timestamp": (1, 5),
            "key": None, "value": b"v", "headers": None, "leader_epoch": 0,
        }  # fmt: skip
        return lambda *_: told[name]


class Consumer:
    """Gives these, one by one. end: what the leader says when it is asked for it."""

    def __init__(self, messages, end):
        self.messages, self.end, self.asked = messages, end, 0

    def assign(self, _):
        pass

    def close(self):
        pass

    def poll(self, _):
        return self.messages.pop(0)

    def consume(self, *_):
        return []

    def get_watermark_offsets(self, *_):
        self.asked += 1
        return 0, self.end


def read(monkeypatch, messages, *, high, end):
    """Offsets of what is read with `-e` from a partition that went to `high` when it began."""
    consumer = Consumer(messages, end)
    place = TopicPartition(*KEY, 0)
    monkeypatch.setattr(reading, "_assignment", lambda *_: ([place], {}, {KEY: high}))
    monkeypatch.setattr(Link, "consumer", lambda *_, **__: consumer)
    lists = reading.read(
        Link("localhost:1", {}, 1.0), ["t"], (), parse_seek("start", 0), Filter(),
        exit_at_end=True, count=None, remark=print,
    )  # fmt: skip
    return [one.offset for some in lists for one in some], consumer.asked


def test_a_new_leader_that_shows_less_than_there_was_is_waited_for(monkeypatch):
    some = [Message(0), Message(1, eof=True), Message(1), Message(2), Message(3, eof=True)]
    assert read(monkeypatch, some, high=3, end=3) == ([0, 1, 2], 1)


def test_the_end_is_not_asked_for_again_where_it_is_reached(monkeypatch):
    assert read(monkeypatch, [Message(0), Message(1, eof=True)], high=1, end=1) == ([0], 0)


def test_what_was_taken_back_or_is_of_an_open_transaction_is_not_waited_for(monkeypatch):
    assert read(monkeypatch, [Message(0), Message(1, eof=True)], high=9, end=1) == ([0], 1)
