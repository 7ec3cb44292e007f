"""Groups of the consumer protocol (KIP-848): ConsumerGroupHeartbeat, ConsumerGroupDescribe."""

from tests.differential.groups import GROUP_MAX, group_of, look, simple, topic_for
from tests.differential.registry import script
from tests.differential.scripts.classic_groups import joining as classic_joining

BEAT = "ConsumerGroupHeartbeat"


def joining(group, member, topics, **more):
    """The first heartbeat of a member."""
    return {
        "group_id": group, "member_id": member, "member_epoch": 0, "rebalance_timeout": 60_000,
        "subscribed_topic_names": topics, "topic_partitions": [], **more,
    }  # fmt: skip


def beat(group, member, epoch, **more):
    """A heartbeat that says nothing new."""
    return {
        "group_id": group, "member_id": member, "member_epoch": epoch, "rebalance_timeout": -1,
        "subscribed_topic_names": None, "topic_partitions": None, **more,
    }  # fmt: skip


def owning(s, topic, partitions):
    return [{"topic_id": s.topic_id(topic), "partitions": partitions}]


@script(BEAT)
def consumer_group_life(s):
    """Join, rebalance, leave, delete."""
    group, one, two = group_of(s), s.name("one"), s.name("two")
    topic = topic_for(s, group, partitions=2)
    look(s, "before", group)
    first = s.ask("join", **joining(group, one, [topic]))
    look(s, "joined", group)
    s.ask("nothing new", **beat(group, one, first["member_epoch"]))
    s.ask("owns", **beat(group, one, first["member_epoch"],
                         topic_partitions=owning(s, topic, [0, 1])))  # fmt: skip
    look(s, "owns", group)
    second = s.ask("another joins", **joining(group, two, [topic]))
    look(s, "another joined", group)
    told = s.ask("must give up", **beat(group, one, first["member_epoch"]))
    kept = told["assignment"]["topic_partitions"][0]["partitions"]
    s.ask("another waits", **beat(group, two, second["member_epoch"]))
    look(s, "gives up", group)
    given = s.ask("gave up", **beat(group, one, told["member_epoch"],
                                    topic_partitions=owning(s, topic, kept)))  # fmt: skip
    taken = s.ask("another gets", **beat(group, two, second["member_epoch"]))
    look(s, "shared", group)
    s.ask("its old epoch", **beat(group, one, first["member_epoch"]))
    s.ask("its new epoch", **beat(group, one, given["member_epoch"]))
    s.ask("leave", **beat(group, two, -1))
    s.ask("leave again", **beat(group, two, -1))
    look(s, "left", group)
    alone = s.ask("alone again", **beat(group, one, given["member_epoch"],
                                        topic_partitions=owning(s, topic, kept)))  # fmt: skip
    assert taken["error_code"] == alone["error_code"] == "NONE"
    s.ask("delete while there", "DeleteGroups", groups_names=[group])
    s.ask("leave too", **beat(group, one, -1))
    look(s, "empty", group)
    s.ask("rejoin", **joining(group, one, [topic]))
    look(s, "rejoined", group)
    s.ask("leave at last", **beat(group, one, -1))
    s.ask("delete", "DeleteGroups", groups_names=[group])
    look(s, "deleted", group)


@script(BEAT)
def consumer_group_full(s):
    """As many members as a group may have, then one more of either protocol."""
    group = group_of(s)
    topic = topic_for(s, group)
    for number in range(GROUP_MAX):
        said = s.call(BEAT, **joining(group, s.name(f"member {number}"), [topic]))
        assert said["error_code"] == "NONE", said
    s.ask("one too many", **joining(group, s.name("another"), [topic]))
    s.ask("a static one too many", **joining(group, s.name("another"), [topic], instance_id="i"))
    s.ask("a classic one too many", "JoinGroup", **classic_joining(group))
    s.ask("one leaves", **beat(group, s.name("member 0"), -1))
    said = s.call(BEAT, **joining(group, s.name("another"), [topic]))
    s.note("one comes", {"error_code": said["error_code"]})


@script(BEAT)
def consumer_group_subscriptions(s):
    """Topics that are not there, come, grow and go; regular expressions."""
    group, one = group_of(s), s.name("one")
    topic, later = topic_for(s, group), s.name("later")
    said = s.ask("nothing to read", **joining(group, one, [later]))
    look(s, "nothing to read", group)
    said = s.ask("two topics", **beat(group, one, said["member_epoch"],
                                      subscribed_topic_names=[topic, later]))  # fmt: skip
    look(s, "two topics", group)
    said = s.ask("same topics", **beat(group, one, said["member_epoch"],
                                       subscribed_topic_names=[later, topic]))  # fmt: skip
    said = s.ask("no topics", **beat(group, one, said["member_epoch"], subscribed_topic_names=[],
                                     topic_partitions=owning(s, topic, [0])))  # fmt: skip
    look(s, "no topics", group)
    s.ask("range", **beat(group, one, said["member_epoch"], server_assignor="range"))
    s.ask("unknown assignor", **beat(group, one, said["member_epoch"], server_assignor="best"))
    said = s.ask("gave up", **beat(group, one, said["member_epoch"], topic_partitions=[]))
    s.ask("rack", **beat(group, one, said["member_epoch"], rack_id="here"))
    look(s, "at last", group)
    s.call(BEAT, **beat(group, one, -1))


@script(BEAT, versions=(1, 1))
def consumer_group_expressions(s):
    """Kafka finds the topics of an expression aside, so that they come with a later heartbeat."""
    group, one = group_of(s), s.name("one")
    topic = topic_for(s, group)
    said = s.call(BEAT, **joining(group, one, None, subscribed_topic_regex=f"{topic[:-1]}."))
    if said["assignment"] is None or not said["assignment"]["topic_partitions"]:
        said = s.until(lambda answer: answer["assignment"], BEAT,
                       **beat(group, one, said["member_epoch"]))  # fmt: skip
    found = said["assignment"]["topic_partitions"]
    s.note("found", {"assignment": found}, BEAT)
    for wrong in ("(", "[", "a**", "a{2,1}", "*a", "\\", "(?<n", "(?=a)", "[b-a]"):
        s.ask(f"wrong: {wrong}", **beat(group, one, said["member_epoch"],
                                        subscribed_topic_regex=wrong))  # fmt: skip
    s.call(BEAT, **beat(group, one, -1))
    s.ask("an empty one", **joining(group_of(s, "empty"), one, None, subscribed_topic_regex=""))


@script(BEAT)
def consumer_group_refusals(s):
    """What a heartbeat is refused for."""
    group, one = group_of(s), s.name("one")
    topic = topic_for(s, group)
    s.ask("no group", **joining("", one, [topic]))
    made = s.ask("no member", **joining(group_of(s, "made"), "", [topic]))
    if made["member_id"]:
        s.recognise(made["member_id"], "its id")
    s.ask("no topics", **joining(group, one, None))
    s.ask("no timeout", **{**joining(group, one, [topic]), "rebalance_timeout": -1})
    s.ask("timeout of nothing", **{**joining(group, one, [topic]), "rebalance_timeout": 0})
    s.ask("owns already", **joining(group_of(s, "owner"), one, [topic],
                                    ) | {"topic_partitions": owning(s, topic, [0])})  # fmt: skip
    s.ask("null owned", **{**joining(group_of(s, "null"), one, [topic]), "topic_partitions": None})
    s.ask("unknown assignor", **joining(group, one, [topic], server_assignor="best"))
    s.ask("empty assignor", **joining(group, one, [topic], server_assignor=""))
    s.ask("empty instance", **joining(group, one, [topic], instance_id=""))
    s.ask("empty rack", **joining(group, one, [topic], rack_id=""))
    s.ask("neither names nor expression", **joining(group_of(s, "neither"), one, None,
                                                    subscribed_topic_regex=None))  # fmt: skip
    s.ask("group not there", **beat(group_of(s, "gone"), one, 5))
    s.ask("leave a group not there", **beat(group_of(s, "gone2"), one, -1))
    s.ask("epoch -3", **beat(group, one, -3))
    s.ask("epoch -2 without instance", **beat(group, one, -2))
    said = s.ask("join", **joining(group, one, [topic]))
    s.ask("unknown member", **beat(group, s.name("nobody"), 5))
    s.ask("unknown member leaves", **beat(group, s.name("nobody2"), -1))
    s.ask("higher epoch", **beat(group, one, said["member_epoch"] + 7))
    s.ask("lower epoch", **beat(group, one, said["member_epoch"] - 1, topic_partitions=[]))
    s.ask("join again", **joining(group, one, [topic]))
    s.ask("static member unknown", **beat(group, s.name("nobody3"), 1, instance_id="i"))
    look(s, "after", group)
    s.call(BEAT, **beat(group, one, -1))


@script(BEAT)
def consumer_group_static_members(s):
    """Static members: kept while away, replaced, fenced."""
    group = group_of(s)
    one, two, three = (s.name(word) for word in ("one", "two", "three"))
    topic = topic_for(s, group, partitions=2)
    said = s.ask("join", **joining(group, one, [topic], instance_id="i"))
    s.ask("same instance", **joining(group, two, [topic], instance_id="i"))
    s.ask("without its instance", **beat(group, one, said["member_epoch"]))
    s.ask("other instance", **beat(group, one, said["member_epoch"], instance_id="j"))
    s.ask("gone for a while", **beat(group, one, -2, instance_id="i"))
    look(s, "gone for a while", group)
    s.ask("not its instance", **beat(group, one, -2, instance_id="j"))
    back = s.ask("back", **joining(group, three, [topic], instance_id="i"))
    look(s, "back", group)
    s.ask("fenced", **beat(group, one, said["member_epoch"], instance_id="i"))
    s.ask("the new one", **beat(group, three, back["member_epoch"], instance_id="i",
                                topic_partitions=owning(s, topic, [0, 1])))  # fmt: skip
    s.ask("removed by an admin", "LeaveGroup", group_id=group,
          members=[{"member_id": "", "group_instance_id": "i"}])  # fmt: skip
    look(s, "removed", group)
    s.ask("delete", "DeleteGroups", groups_names=[group])


@script("ConsumerGroupDescribe")
def consumer_group_describe(s):
    group, one = group_of(s), s.name("one")
    topic = topic_for(s, group)
    s.ask("nothing asked", group_ids=[])
    s.ask("not there", group_ids=[group_of(s, "gone")])
    s.ask("no name", group_ids=[""])
    s.call(BEAT, **joining(group, one, [topic], instance_id="i", rack_id="r"))
    s.ask("one member", group_ids=[group])
    s.ask("twice", group_ids=[group, group])
    s.ask("operations", group_ids=[group], include_authorized_operations=True)
    s.call(BEAT, **beat(group, one, -1, instance_id="i"))
    s.ask("empty", group_ids=[group])
    plain = group_of(s, "plain")
    simple(s, plain, topic)
    s.ask("classic", group_ids=[plain])
