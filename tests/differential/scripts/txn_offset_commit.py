"""TxnOffsetCommit, and what OffsetFetch tells of offsets whose transaction is open."""

from tests.differential.groups import group_of, offsets, simple
from tests.differential.registry import script
from tests.differential.scripts.classic_groups import stable
from tests.differential.scripts.consumer_groups import BEAT, joining
from tests.differential.transactions import BUSY, codes, describe, end, moved, who, writer

COMMIT = "TxnOffsetCommit"
UNANSWERED = {"CONCURRENT_TRANSACTIONS", *BUSY}


def committing(one, group, topic, *committed, **more):
    """By nobody's member unless told."""
    return {**who(one), "group_id": group, "generation_id": -1, "member_id": "",
            "topics": offsets(topic, *committed or [(0, 5)]), **more}  # fmt: skip


def look(s, step, group, topic, partitions=(0, 1)):
    """What a consumer of the group would begin at, and one that waits for open transactions."""
    asked = [{"group_id": group, "member_epoch": -1,
              "topics": [{"name": topic, "partition_indexes": list(partitions)}]}]  # fmt: skip
    for word, stable_only in (("as it is", False), ("stable", True)):
        s.ask(f"{step}: {word}", "OffsetFetch", version=9, groups=asked, require_stable=stable_only)


def belongs(s, one, group):
    """Before version 5 the group's partition is added by a request of its own."""
    if s.version < 5:
        said = s.until(lambda answer: answer["error_code"] not in UNANSWERED, "AddOffsetsToTxn", 3,
                       **who(one), group_id=group)  # fmt: skip
        assert said["error_code"] == "NONE", said


@script(COMMIT)
def txn_offset_commit(s):
    one, group, topic = writer(s), group_of(s), s.topic(partitions=2)
    simple(s, group, topic, (0, 1))

    def ask(step, *committed, one=one, group=group, topic=topic, **more):
        s.ask_until(step, lambda answer: not codes(answer) & UNANSWERED,
                    **committing(one, group, topic, *committed, **more))  # fmt: skip

    belongs(s, one, group)
    ask("good", (0, 5))
    look(s, "open", group, topic)
    ask("again", (0, 6), (1, 3))
    look(s, "open, two", group, topic)
    ask("no topics", topics=[])
    ask("no such topic", topic=s.name("none"))
    ask("no such partition", (9, 1))
    ask("negative partition", (-1, 1))
    ask("negative offset", (0, -5))
    ask("long metadata", topics=[{"name": topic, "partitions": [
        {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1,
         "committed_metadata": "m" * 5000}]}])  # fmt: skip
    ask("no group", group="")
    after = end(s, one, True, 5 if s.version >= 5 else 4)
    look(s, "committed", group, topic)
    belongs(s, after, group)
    ask("another one", (0, 9), one=after)
    look(s, "another one", group, topic)
    simple(s, group, topic, (0, 7))
    look(s, "beside it", group, topic)
    end(s, after, False, 5 if s.version >= 5 else 4)
    look(s, "aborted", group, topic)
    describe(s, "aborted", one[0])


@script(COMMIT)
def txn_offset_commit_of_others(s):
    one, group, topic = writer(s), group_of(s), s.topic()

    def ask(step, one, **more):
        s.ask_until(step, lambda answer: not codes(answer) & UNANSWERED,
                    **committing(one, group, topic, **more))  # fmt: skip

    if s.version < 5:
        ask("not in the transaction", one)
    belongs(s, one, group)
    ask("good", one)
    ask("epoch too high", moved(one, epoch=1))
    ask("epoch -1", moved(one, epoch=-1 - one[2]))
    ask("producer id of nobody", moved(one, 500_000))
    ask("id of nobody", (s.name("nobody"), *one[1:]))
    ask("no id", ("", *one[1:]))
    two = writer(s, one[0])
    ask("taken over", one)
    look(s, "taken over", group, topic, (0,))
    belongs(s, two, group)
    ask("the second", two)
    end(s, two)
    look(s, "committed", group, topic, (0,))


@script(COMMIT)
def txn_offset_commit_of_members(s):
    one, topic = writer(s), s.topic()
    classic, consumer, member = group_of(s, "classic"), group_of(s, "consumer"), s.name("member")
    joined = stable(s, classic)
    epoch = s.call(BEAT, **joining(consumer, member, [topic]))["member_epoch"]

    def ask(step, group, name, generation, **more):
        asked = committing(one, group, topic, **more)
        asked |= {"member_id": name, "generation_id": generation}
        s.ask_until(step, lambda answer: not codes(answer) & UNANSWERED, **asked)

    for group, name, number in (
        (classic, joined["member_id"], joined["generation_id"]), (consumer, member, epoch),
    ):  # fmt: skip
        word = "classic" if group == classic else "consumer"
        belongs(s, one, group)
        ask(f"{word}: good", group, name, number)
        ask(f"{word}: nobody", group, "", -1)
        ask(f"{word}: nobody with a name", group, name, -1)
        ask(f"{word}: old", group, name, number - 1)
        ask(f"{word}: too new", group, name, number + 1)
        ask(f"{word}: another", group, "another", number)
        ask(f"{word}: unknown instance", group, name, number, group_instance_id="i")
    fresh = group_of(s, "fresh")
    belongs(s, one, fresh)
    ask("group not there", fresh, "m", 1)
    end(s, one)


@script(COMMIT, versions=(3, 5))
def groups_with_open_offsets(s):
    """Deleting a group, or its offsets, while a transaction of it is open."""
    one, group, topic = writer(s), group_of(s), s.topic(partitions=2)
    belongs(s, one, group)
    s.ask("good", **committing(one, group, topic))
    both = [{"partition_index": index} for index in (0, 1)]
    s.ask("offsets deleted", "OffsetDelete", group_id=group,
          topics=[{"name": topic, "partitions": both}])  # fmt: skip
    look(s, "deleted", group, topic)
    s.ask("listed", "DescribeGroups", groups=[group])
    s.ask("group deleted", "DeleteGroups", groups_names=[group])
    end(s, one, True)
    look(s, "committed", group, topic)
    s.ask("group deleted again", "DeleteGroups", groups_names=[group])
    look(s, "all deleted", group, topic)
