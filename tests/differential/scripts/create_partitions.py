"""CreatePartitions."""

from tests.differential.registry import script


def ask(s, step, *topics, **values):
    return s.ask(step, topics=[{"assignments": None} | topic for topic in topics],
                 timeout=10_000, **values)  # fmt: skip


def brokers(*lists):
    return [{"broker_ids": ids} for ids in lists]


@script("CreatePartitions")
def create_partitions(s):
    """More than 10,000 at once are left out: Kafka refuses them and makes 10,000 of them."""
    topic = s.topic(partitions=2)
    one = {"name": topic}
    ask(s, "validated only", {**one, "count": 3}, validate_only=True)
    ask(s, "fewer", {**one, "count": 1})
    ask(s, "as many", {**one, "count": 2})
    ask(s, "zero", {**one, "count": 0})
    ask(s, "negative", {**one, "count": -1})
    ask(s, "unknown topic", {"name": s.name("unknown"), "count": 3})
    ask(s, "invalid name", {"name": "not valid!", "count": 3})
    ask(s, "twice", {**one, "count": 3}, {**one, "count": 4})
    ask(s, "too few assignments", {**one, "count": 4, "assignments": brokers([1])})
    ask(s, "too many assignments", {**one, "count": 3, "assignments": brokers([1], [1])})
    ask(s, "unknown broker", {**one, "count": 3, "assignments": brokers([7])})
    ask(s, "broker twice", {**one, "count": 3, "assignments": brokers([1, 1])})
    ask(s, "no broker", {**one, "count": 3, "assignments": brokers([])})
    ask(s, "good", {**one, "count": 3})
    s.served(topic, 3)
    ask(s, "assigned", {**one, "count": 5, "assignments": brokers([1], [1])})
    s.served(topic, 5)
    s.ask("after", "Metadata", topics=one and [one])
