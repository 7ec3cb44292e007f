"""Metadata."""

from tests.differential.registry import script

LONG = "x" * 250


@script("Metadata")
def metadata_of_topics(s):
    topic = s.topic(partitions=3)
    s.recognise(LONG, "long name")
    s.ask("one", topics=[{"name": topic}])
    s.ask("twice", topics=[{"name": topic}, {"name": topic}])
    if s.version >= 1:
        s.ask("none", topics=[])
    s.ask("invalid name", topics=[{"name": "not valid!"}])
    s.ask("too long a name", topics=[{"name": LONG}])
    if s.version >= 8:
        s.ask("operations", topics=[{"name": topic}], include_topic_authorized_operations=True,
              include_cluster_authorized_operations=True)  # fmt: skip


@script("Metadata", versions=(4, 13))
def metadata_without_creation(s):
    topic = s.topic()
    unknown = {"name": s.name("unknown")}

    def ask(step, *topics, create=False):
        s.ask(step, topics=topics, allow_auto_topic_creation=create)

    ask("unknown", unknown)
    ask("both", {"name": topic}, unknown)
    ask("invalid name", {"name": "not valid!"})
    ask("invalid name, may create", {"name": "not valid!"}, create=True)
    ask("empty name", {"name": ""})


@script("Metadata")
def metadata_creates(s):
    """The first answer may come before the topic is there, so only the last one is compared."""
    wanted = {"topics": [{"name": s.name("new")}], "allow_auto_topic_creation": True}

    def there(answer):
        return answer["topics"][0]["error_code"] == "NONE"

    s.until(there, "Metadata", **wanted)
    s.served(s.name("new"))
    s.ask("made", **wanted)


@script("Metadata", versions=(10, 13))
def metadata_by_id(s):
    topic = s.topic()
    known, unknown = s.topic_id(topic), s.id("unknown")
    s.ask("known", topics=[{"topic_id": known, "name": None}])
    s.ask("unknown", topics=[{"topic_id": unknown, "name": None}])
    s.ask("both", topics=[{"topic_id": known, "name": None}, {"topic_id": unknown, "name": None}])
    s.ask("id and name", topics=[{"topic_id": known, "name": topic}])


@script("Metadata", versions=(12, 13))
def metadata_of_nothing(s):
    s.ask("neither id nor name", topics=[{"name": None}])
