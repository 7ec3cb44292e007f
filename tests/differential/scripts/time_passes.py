"""What becomes of members and transactions whose time is over: clients wait for it, and then go on
as if they had not noticed."""

from tests.differential.groups import group_of, look, offsets
from tests.differential.registry import script
from tests.differential.scripts.classic_groups import being, stable, sync
from tests.differential.transactions import (
    add,
    adding,
    describe,
    ending,
    id_of,
    initialising,
    producing,
    who,
    write,
    writer,
    written,
)

SESSION_MS, TRANSACTION_MS = 700, 2000
"""Long enough that nothing is over before a slow machine has asked for it."""


def emptied(s, group):
    """Wait until the last member's session is over."""
    s.until(lambda answer: answer["groups"][0]["group_state"] == "Empty",
            "DescribeGroups", groups=[group])  # fmt: skip


@script("Heartbeat", versions=(3, 4))
def session_is_over(s):
    group, topic = group_of(s), s.topic()
    said = stable(s, group, session_timeout=SESSION_MS)
    emptied(s, group)
    look(s, "over", group)
    s.ask("heartbeat", **being(group, said))
    s.ask("sync", "SyncGroup", **sync(group, said))
    s.ask("commit", "OffsetCommit", version=8, group_id=group, member_id=said["member_id"],
          generation_id_or_member_epoch=said["generation_id"],
          topics=offsets(topic, (0, 3)))  # fmt: skip
    member = {"member_id": said["member_id"], "group_instance_id": None}
    s.ask("leave", "LeaveGroup", group_id=group, members=[member])
    again = stable(s, group, "two")
    s.ask("its successor", **being(group, again))
    s.ask("the one before", **being(group, said))


@script("Heartbeat", versions=(4, 4))
def static_session_is_over(s):
    group = group_of(s)
    said = stable(s, group, session_timeout=SESSION_MS, group_instance_id="static")
    emptied(s, group)
    s.ask("heartbeat", **being(group, said, group_instance_id="static"))
    look(s, "over", group)


def timed_out(s):
    """(topic, a writer whose transaction of one record was aborted by time)."""
    topic, name = s.topic(), id_of(s)
    one = writer(s, name, timeout=TRANSACTION_MS)
    add(s, one, topic, 0)
    write(s, one, topic, b"late")
    s.until(lambda answer: answer["transaction_states"][0]["transaction_state"] == "CompleteAbort",
            "DescribeTransactions", transactional_ids=[name])  # fmt: skip
    return topic, one


@script("EndTxn", versions=(4, 5))
def end_behind_its_time(s):
    _, one = timed_out(s)
    describe(s, "over", one[0])
    s.ask("commit", **ending(one))
    s.ask("abort", **ending(one, commit=False))
    describe(s, "asked", one[0])


@script("AddPartitionsToTxn", versions=(3, 3))
def add_behind_its_time(s):
    topic, one = timed_out(s)
    s.ask("the same partition", **adding(one, (topic, 0)))
    s.ask("offsets", "AddOffsetsToTxn", **who(one), group_id=group_of(s))
    describe(s, "asked", one[0])


@script("Produce", versions=(11, 12))
def produce_behind_its_time(s):
    topic, one = timed_out(s)
    s.ask("next", **producing(s, one, topic, written(one, b"next", sequence=1), s.version))
    end = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    for level in (0, 1):
        s.ask(f"end, isolation level {level}", "ListOffsets", replica_id=-1,
              isolation_level=level, topics=[{"name": topic, "partitions": [end]}])  # fmt: skip


@script("InitProducerId", versions=(5, 5))
def begin_behind_its_time(s):
    _, one = timed_out(s)
    s.ask("as it was", **initialising(*one))
    s.ask("anew", **initialising(one[0]))
    describe(s, "anew", one[0])
    s.ask("who came back again", **initialising(*writer(s, one[0])))
