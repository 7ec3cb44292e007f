"""CreateTopics."""

from tests.differential.registry import script


def _ask(s, step, *topics, **values):
    whole = [{"num_partitions": 1, "replication_factor": 1} | topic for topic in topics]
    return s.ask(step, topics=whole, timeout=10_000, **values)


@script("CreateTopics", versions=(2, 4))
def create_topics(s):
    _ask(s, "plain", {"name": s.name("plain")})
    s.served(s.name("plain"))
    _ask(s, "nothing")
