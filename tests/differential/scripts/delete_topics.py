"""DeleteTopics."""

from tests.differential.registry import script


def ask(s, step, *names, **values):
    if s.version <= 5:
        return s.ask(step, topic_names=list(names), timeout=10_000, **values)
    return s.ask(step, topics=[{"name": name} for name in names], timeout=10_000, **values)


@script("DeleteTopics")
def delete_topics(s):
    one, two, three = s.topic("one"), s.topic("two"), s.topic("three")
    ask(s, "good", one)
    ask(s, "unknown", s.name("unknown"))
    ask(s, "good and unknown", two, s.name("unknown"))
    ask(s, "twice", three, three)
    ask(s, "invalid", "not valid!")
    ask(s, "empty name", "")
    ask(s, "nothing")


@script("DeleteTopics", versions=(6, 6))
def delete_topics_by_id(s):
    def by_id(*ids):
        return [{"topic_id": one, "name": None} for one in ids]

    one, two, three = s.topic("one"), s.topic("two"), s.topic("three")
    ids = [s.topic_id(name) for name in (one, two, three)]
    s.ask("good", topics=by_id(ids[0]), timeout=10_000)
    s.ask("unknown", topics=by_id(s.id("unknown")), timeout=10_000)
    s.ask("twice", topics=by_id(ids[1], ids[1]), timeout=10_000)
    s.ask("by both", topics=[{"name": two, "topic_id": ids[1]}], timeout=10_000)
    s.ask("neither", topics=[{"name": None}], timeout=10_000)
    s.ask("name and id of one", topics=[{"name": three}, *by_id(ids[2])], timeout=10_000)
