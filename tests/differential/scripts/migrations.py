"""Groups that change their protocol while their members work (KIP-848), and back."""

import struct

from tests.differential.groups import group_of, look, topic_for
from tests.differential.registry import script
from tests.differential.scripts.classic_groups import being, enter, joining, sync
from tests.differential.scripts.consumer_groups import BEAT, beat
from tests.differential.scripts.consumer_groups import joining as joining_new


def subscription(topic, owned=()):
    """As the consumer's protocol writes it, version 1."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    rows = name + struct.pack(f">i{len(owned)}i", len(owned), *owned) if owned else b""
    return (struct.pack(">hi", 1, 1) + name + struct.pack(">i", -1)
            + struct.pack(">i", 1 if owned else 0) + rows)  # fmt: skip


def share(topic, *partitions):
    """An assignment, version 1."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    rows = struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return struct.pack(">hi", 1, 1) + name + rows + struct.pack(">i", -1)


def speaking(topic, owned=()):
    return [{"name": "range", "metadata": subscription(topic, owned)}]


@script("JoinGroup", versions=(9, 9))
def migration(s):
    """A classic member, then one of the consumer protocol, then the classic one alone again."""
    group, new = group_of(s), s.name("new")
    topic = topic_for(s, group, partitions=2)
    old = s.call("JoinGroup", **{**joining(group), "protocols": speaking(topic)})
    s.recognise(old["member_id"], "old")
    old = s.ask("old", **{**joining(group, old["member_id"]), "protocols": speaking(topic)})
    s.ask("old syncs", "SyncGroup", **sync(group, old, (old["member_id"], share(topic, 0, 1))))
    look(s, "classic", group)
    s.ask("a heartbeat to a classic group", BEAT, **beat(group, new, 3))
    s.ask("a leave of a classic group", BEAT, **beat(group, new, -1))
    said = s.ask("new", BEAT, **joining_new(group, new, [topic]))
    look(s, "upgraded", group)
    s.ask("old hears", "Heartbeat", **being(group, old))
    s.ask("old syncs in vain", "SyncGroup", **sync(group, old))
    s.ask("old at a wrong generation", "Heartbeat", **being(group, {**old, "generation_id": 77}))
    again = s.ask("old again", **{**joining(group, old["member_id"]),
                                  "protocols": speaking(topic, (0, 1))})  # fmt: skip
    s.ask("old gets", "SyncGroup", **sync(group, again))
    look(s, "gives up", group)
    s.ask("old is called", "Heartbeat", **being(group, again))
    again = s.ask("old gave up", **{**joining(group, old["member_id"]),
                                    "protocols": speaking(topic, (0,))})  # fmt: skip
    s.ask("old gets less", "SyncGroup", **sync(group, again))
    said = s.ask("new gets", BEAT, **beat(group, new, said["member_epoch"]))
    look(s, "shared", group)
    s.ask("old lives", "Heartbeat", **being(group, again))
    s.ask("other protocol", **{**joining(group), "protocols": [{"name": "x", "metadata": b""}]})
    s.ask("new leaves", BEAT, **beat(group, new, -1))
    look(s, "downgraded", group)
    s.ask("old hears of it", "Heartbeat", **being(group, again))
    last = s.ask("old joins at last", **{**joining(group, old["member_id"]),
                                         "protocols": speaking(topic, (0,))})  # fmt: skip
    s.ask("old syncs at last", "SyncGroup",
          **sync(group, last, (old["member_id"], share(topic, 0, 1))))  # fmt: skip
    look(s, "classic again", group)
    s.ask("a heartbeat after it", BEAT, **beat(group, new, said["member_epoch"]))
    s.ask("old leaves", "LeaveGroup", group_id=group, members=[{"member_id": old["member_id"]}])
    s.ask("new comes to the empty group", BEAT, **joining_new(group, new, [topic]))
    look(s, "consumer of an empty classic one", group)
    s.ask("new leaves for good", BEAT, **beat(group, new, -1))
    look(s, "empty", group)
    old = enter(s, "classic of an empty consumer one", group, "old2")
    look(s, "classic of an empty consumer one", group)
    s.call("LeaveGroup", group_id=group, members=[{"member_id": old["member_id"]}])


@script("JoinGroup", versions=(9, 9))
def migration_refused(s):
    """Groups that are not of consumers cannot change."""
    group, new = group_of(s), s.name("new")
    topic = topic_for(s, group)
    enter(s, None, group, "one", protocol_type="connect")
    s.ask("a group of workers", BEAT, **joining_new(group, new, [topic]))
    look(s, "still classic", group)
