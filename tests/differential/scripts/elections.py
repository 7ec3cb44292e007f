"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments."""

from tests.differential.registry import script


@script("ElectLeaders")
def elect_leaders(s):
    topic = s.topic(partitions=2)

    def ask(step, *rows, kind=0):
        s.ask(step, timeout=10_000, election_type=kind, topic_partitions=[
            {"topic": name, "partitions": list(partitions)} for name, partitions in rows
        ])  # fmt: skip

    ask("preferred", (topic, [0, 1]))
    ask("unknown partition", (topic, [7]))
    ask("unknown topic", (s.name("unknown"), [0]))
    ask("good and unknown", (topic, [0, 7]))
    ask("nothing")
    if s.version >= 1:
        ask("unclean", (topic, [0]), kind=1)
        ask("unknown type", (topic, [0]), kind=5)


@script("AlterPartitionReassignments")
def alter_partition_reassignments(s):
    topic = s.topic(partitions=2)

    def ask(step, replicas, name=topic, index=0, **values):
        rows = [{"partition_index": index, "replicas": replicas}]
        s.ask(step, timeout=10_000, topics=[{"name": name, "partitions": rows}], **values)

    ask("where it is", [1], allow_replication_factor_change=True)
    ask("cancel nothing", None)
    ask("unknown broker", [7])
    ask("broker twice", [1, 1])
    ask("no broker", [])
    ask("negative broker", [-1])
    ask("unknown partition", [1], index=7)
    ask("unknown topic", [1], name=s.name("unknown"))
    ask("two replicas", [1, 7], allow_replication_factor_change=False)
    s.ask("nothing", timeout=10_000)


@script("ListPartitionReassignments")
def list_partition_reassignments(s):
    topic = s.topic()
    s.ask("all", timeout=10_000, topics=None)
    s.ask("one", timeout=10_000, topics=[{"name": topic, "partition_indexes": [0]}])
    s.ask("unknown partition", timeout=10_000, topics=[{"name": topic, "partition_indexes": [7]}])
    s.ask("unknown topic", timeout=10_000,
          topics=[{"name": s.name("unknown"), "partition_indexes": [0]}])  # fmt: skip
    s.ask("none", timeout=10_000, topics=[])
