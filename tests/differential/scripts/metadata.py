"""Metadata."""

from tests.differential.registry import script


@script("Metadata")
def metadata_of_topics(s):
    topic = s.topic(partitions=3)
    s.ask("one", topics=[{"name": topic}])
    if s.version >= 1:
        s.ask("none", topics=[])
    if s.version >= 4:
        s.ask("unknown", topics=[{"name": s.name("unknown")}], allow_auto_topic_creation=False)
