"""DescribeLogDirs and AlterReplicaLogDirs."""

from tests.differential.records import batch
from tests.differential.registry import script


@script("DescribeLogDirs")
def describe_log_dirs(s):
    topic = s.topic(partitions=2)
    s.produce(topic, batch(b"value"))

    def ask(step, name, *partitions):
        s.ask(step, topics=[{"topic": name, "partitions": list(partitions)}])

    ask("both", topic, 0, 1)
    ask("one", topic, 0)
    ask("unknown partition", topic, 7)
    ask("unknown topic", s.name("unknown"), 0)
    s.ask("nothing", topics=[])


@script("AlterReplicaLogDirs")
def alter_replica_log_dirs(s):
    topic = s.topic()

    def ask(step, path, name, *partitions):
        rows = [{"name": name, "partitions": list(partitions)}]
        s.ask(step, dirs=[{"path": path, "topics": rows}])

    dirs = s.call("DescribeLogDirs", topics=[{"topic": topic, "partitions": [0]}])
    here = dirs["results"][0]["log_dir"]
    ask("where it is", here, topic, 0)
    ask("no such folder", "/nowhere", topic, 0)
    ask("relative", "nowhere", topic, 0)
    ask("unknown partition", here, topic, 7)
    ask("unknown topic", here, s.name("unknown"), 0)
    s.ask("nothing", dirs=[])
