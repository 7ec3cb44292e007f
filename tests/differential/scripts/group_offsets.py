"""OffsetCommit, OffsetFetch, OffsetDelete: of members, of nobody, of groups that are gone."""

from tests.differential.groups import group_of, look, simple
from tests.differential.registry import script
from tests.differential.scripts.classic_groups import stable
from tests.differential.scripts.consumer_groups import BEAT, beat
from tests.differential.scripts.consumer_groups import joining as joining_new


def rows(s, topic, *partitions, **more):
    """What OffsetCommit takes, by name and by id."""
    return [{"name": topic, "topic_id": s.topic_id(topic), "partitions": [
        {"partition_index": index, "committed_offset": 7, "committed_leader_epoch": -1,
         "committed_metadata": "", **more}
        for index in partitions]}]  # fmt: skip


def committing(group, member="", epoch=-1, topics=(), **more):
    return {"group_id": group, "generation_id_or_member_epoch": epoch, "member_id": member,
            "retention_time": -1, "topics": topics, **more}  # fmt: skip


@script("OffsetCommit")
def offset_commit(s):
    group, topic = group_of(s), s.topic(partitions=2)
    s.ask("nobody", **committing(group, topics=rows(s, topic, 0, 1)))
    look(s, "simple", group)
    s.ask("no topics", **committing(group))
    s.ask("no such partition", **committing(group, topics=rows(s, topic, 9)))
    s.ask("negative partition", **committing(group, topics=rows(s, topic, -1)))
    gone = [{"name": s.name("gone"), "topic_id": s.id("gone id"),
             "partitions": [{"partition_index": 0, "committed_offset": 1}]}]  # fmt: skip
    s.ask("no such topic", **committing(group, topics=gone))
    s.ask("both", **committing(group, topics=[*gone, *rows(s, topic, 0)]))
    s.ask("negative offset", **committing(group, topics=rows(s, topic, 0, committed_offset=-5)))
    s.ask("metadata", **committing(group, topics=rows(s, topic, 0, committed_metadata="m" * 99)))
    s.ask("long metadata", **committing(group,
          topics=rows(s, topic, 0, committed_metadata="m" * 5000)))  # fmt: skip
    s.ask("null metadata", **committing(group, topics=rows(s, topic, 0, committed_metadata=None)))
    s.ask("an epoch", **committing(group, topics=rows(s, topic, 0, committed_leader_epoch=3)))
    s.ask("a member of a simple group", **committing(group, "m", 1, rows(s, topic, 0)))
    s.ask("group not there", **committing(group_of(s, "other"), "m", 1, rows(s, topic, 0)))
    s.ask("no group", **committing("", topics=rows(s, topic, 0)))
    if s.version < 5:
        s.ask("retention", **committing(group, topics=rows(s, topic, 0)) | {"retention_time": 9999})


@script("OffsetCommit")
def offset_commit_classic(s):
    group, topic = group_of(s), s.topic()
    said = stable(s, group)
    member, generation = said["member_id"], said["generation_id"]
    s.ask("good", **committing(group, member, generation, rows(s, topic, 0)))
    s.ask("old generation", **committing(group, member, generation - 1, rows(s, topic, 0)))
    s.ask("new generation", **committing(group, member, generation + 1, rows(s, topic, 0)))
    s.ask("other member", **committing(group, "nobody", generation, rows(s, topic, 0)))
    s.ask("nobody", **committing(group, topics=rows(s, topic, 0)))
    s.ask("nobody with a name", **committing(group, member, -1, rows(s, topic, 0)))
    s.ask("unknown instance", **committing(group, member, generation, rows(s, topic, 0),
                                           group_instance_id="i"))  # fmt: skip
    s.call("LeaveGroup", 2, group_id=group, member_id=member)
    s.ask("empty", **committing(group, topics=rows(s, topic, 0)))
    s.ask("left", **committing(group, member, generation, rows(s, topic, 0)))


@script("OffsetCommit")
def offset_commit_consumer(s):
    group, one, topic = group_of(s), s.name("one"), s.topic(partitions=2)
    epoch = s.call(BEAT, **joining_new(group, one, [topic]))["member_epoch"]
    s.ask("good", **committing(group, one, epoch, rows(s, topic, 0)))
    s.ask("old epoch", **committing(group, one, epoch - 1, rows(s, topic, 0)))
    s.ask("new epoch", **committing(group, one, epoch + 1, rows(s, topic, 0)))
    s.ask("other member", **committing(group, "nobody", epoch, rows(s, topic, 0)))
    s.ask("nobody", **committing(group, topics=rows(s, topic, 0)))
    s.ask("nobody with a name", **committing(group, one, -1, rows(s, topic, 0)))
    s.call(BEAT, **beat(group, one, -1))
    s.ask("empty", **committing(group, topics=rows(s, topic, 0)))
    s.ask("left", **committing(group, one, epoch, rows(s, topic, 0)))


def asking(s, ids, group, topics, member=None, epoch=-1, **more):
    """What OffsetFetch takes, for one group. topics: (name, partitions) pairs, None for all. ids:
    of the topics that are there."""
    asked = None
    if topics is not None:
        asked = [
            {"name": name, "partition_indexes": partitions,
             "topic_id": ids.get(name) or s.id("gone id")}
            for name, partitions in topics
        ]  # fmt: skip
    one = {"group_id": group, "topics": asked, "member_id": member, "member_epoch": epoch}
    return {"group_id": group, "topics": asked, "groups": [one], **more}


@script("OffsetFetch")
def offset_fetch(s):
    group, topic, gone = group_of(s), s.topic(partitions=2), s.name("gone")
    ids = {topic: s.topic_id(topic)}
    simple(s, group, topic, (0, 5))
    s.ask("one", **asking(s, ids, group, [(topic, [0])]))
    s.ask("without", **asking(s, ids, group, [(topic, [1])]))
    s.ask("no such partition", **asking(s, ids, group, [(topic, [9])]))
    s.ask("no such topic", **asking(s, ids, group, [(gone, [0])]))
    s.ask("no partitions", **asking(s, ids, group, [(topic, [])]))
    s.ask("no topics", **asking(s, ids, group, []))
    s.ask("stable", **asking(s, ids, group, [(topic, [0])], require_stable=True))
    s.ask("no group", **asking(s, ids, "", [(topic, [0])]))
    s.ask("group not there", **asking(s, ids, group_of(s, "other"), [(topic, [0])]))
    if s.version >= 2:
        s.ask("all", **asking(s, ids, group, None))
        s.ask("all of a group not there", **asking(s, ids, group_of(s, "third"), None))
    if s.version >= 8:
        groups = [
            asking(s, ids, one, [(topic, [0])])["groups"][0]
            for one in (group, group_of(s, "another"))
        ]
        s.ask("several groups", groups=groups)
        s.ask("no groups", groups=[])
        s.ask("several groups, one without a name",
              groups=[*groups, {**groups[0], "group_id": ""}])  # fmt: skip
    s.ask("member of a simple group", **asking(s, ids, group, [(topic, [0])], "m", 1))
    s.delete(topic)
    s.until(lambda answer: "committed_offset" not in str(answer) or "': 5" not in str(answer),
            "OffsetFetch", **asking(s, ids, group, [(topic, [0])]))  # fmt: skip
    s.ask("topic deleted", **asking(s, ids, group, [(topic, [0])]))
    if s.version >= 2:
        s.ask("all after it", **asking(s, ids, group, None))
    look(s, "after it", group)


@script("OffsetFetch", versions=(9, 10))
def offset_fetch_consumer(s):
    group, one, topic = group_of(s), s.name("one"), s.topic()
    ids = {topic: s.topic_id(topic)}
    epoch = s.call(BEAT, **joining_new(group, one, [topic]))["member_epoch"]
    s.ask("good", **asking(s, ids, group, [(topic, [0])], one, epoch))
    s.ask("old epoch", **asking(s, ids, group, [(topic, [0])], one, epoch - 1))
    s.ask("new epoch", **asking(s, ids, group, [(topic, [0])], one, epoch + 1))
    s.ask("other member", **asking(s, ids, group, [(topic, [0])], "nobody", epoch))
    s.ask("nobody", **asking(s, ids, group, [(topic, [0])]))
    s.ask("no epoch", **asking(s, ids, group, [(topic, [0])], one, -1))
    s.ask("empty name", **asking(s, ids, group, [(topic, [0])], "", -1))
    s.call(BEAT, **beat(group, one, -1))
    s.ask("left", **asking(s, ids, group, [(topic, [0])], one, epoch))


def deleting(group, *topics):
    """topics: (name, partitions) pairs."""
    return {"group_id": group, "topics": [
        {"name": name, "partitions": [{"partition_index": index} for index in partitions]}
        for name, partitions in topics]}  # fmt: skip


@script("OffsetDelete")
def offset_delete(s):
    group, topic, gone = group_of(s), s.topic(partitions=2), s.name("gone")
    s.ask("group not there", **deleting(group, (topic, [0])))
    s.ask("no group", **deleting("", (topic, [0])))
    simple(s, group, topic, (0, 5), (1, 6))
    s.ask("one", **deleting(group, (topic, [0])))
    look(s, "one left", group)
    s.ask("not there", **deleting(group, (topic, [0])))
    s.ask("no such partition", **deleting(group, (topic, [9])))
    s.ask("no such topic", **deleting(group, (gone, [0])))
    s.ask("no partitions", **deleting(group, (topic, [])))
    s.ask("no topics", **deleting(group))
    s.ask("last", **deleting(group, (topic, [1])))
    look(s, "none left", group)
    s.ask("after the last", **deleting(group, (topic, [1])))


@script("OffsetDelete")
def offset_delete_of_members(s):
    topic, other = s.topic(), s.topic("other")
    for kind in ("classic", "consumer", "connect"):
        group, one = group_of(s, kind), s.name(f"one of {kind}")
        if kind == "consumer":
            s.call(BEAT, **joining_new(group, one, [topic]))
        else:
            said = stable(s, group, f"member of {kind}",
                          protocol_type="consumer" if kind == "classic" else kind)  # fmt: skip
        s.ask(f"{kind}: read", **deleting(group, (topic, [0])))
        s.ask(f"{kind}: not read", **deleting(group, (other, [0])))
        s.ask(f"{kind}: both", **deleting(group, (topic, [0]), (other, [0])))
        if kind == "consumer":
            s.call(BEAT, **beat(group, one, -1))
        else:
            s.call("LeaveGroup", 2, group_id=group, member_id=said["member_id"])
        s.ask(f"{kind}: left", **deleting(group, (topic, [0])))
        look(s, f"{kind}: left", group)
