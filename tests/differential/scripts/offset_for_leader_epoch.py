"""OffsetForLeaderEpoch."""

from tests.differential.records import batch
from tests.differential.registry import script


@script("OffsetForLeaderEpoch")
def offset_for_leader_epoch(s):
    topic = s.topic(partitions=2)
    s.produce(topic, batch(b"a", b"b"))

    def ask(step, epoch, current=-1, index=0, name=topic):
        rows = [{"partition": index, "current_leader_epoch": current, "leader_epoch": epoch}]
        s.ask(step, replica_id=-1, topics=[{"topic": name, "partitions": rows}])

    ask("epoch 0", 0)
    ask("of the empty", 0, index=1)
    ask("undefined epoch", -1)
    ask("future epoch", 5)
    ask("current 0", 0, current=0)
    ask("current too high", 0, current=5)
    ask("unknown partition", 0, index=7)
    ask("unknown topic", 0, name=s.name("unknown"))
    s.ask("nothing", replica_id=-1)
    rows = [{"partition": 0, "current_leader_epoch": 0, "leader_epoch": 0}]
    s.ask("by a replica", replica_id=7, topics=[{"topic": topic, "partitions": rows}])
