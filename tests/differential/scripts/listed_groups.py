"""ListGroups, DescribeGroups, DeleteGroups."""

from tests.differential.groups import group_of, look, simple
from tests.differential.registry import script
from tests.differential.scripts.classic_groups import stable
from tests.differential.scripts.consumer_groups import BEAT, beat
from tests.differential.scripts.consumer_groups import joining as joining_new


@script("ListGroups")
def list_groups(s):
    """Of all that are there only this script's are compared."""
    topic = s.topic()
    groups = {word: group_of(s, word) for word in ("simple", "classic", "connect", "consumer",
                                                   "emptied", "gone")}  # fmt: skip
    simple(s, groups["simple"], topic)
    classic = stable(s, groups["classic"])
    stable(s, groups["connect"], "worker", protocol_type="connect")
    s.call(BEAT, **joining_new(groups["consumer"], s.name("one"), [topic]))
    s.call(BEAT, **joining_new(groups["emptied"], s.name("two"), [topic]))
    s.call(BEAT, **beat(groups["emptied"], s.name("two"), -1))

    def ask(step, **filters):
        answer = s.call("ListGroups", **filters)
        mine = [one for one in answer["groups"] if one["group_id"] in groups.values()]
        s.note(step, {**answer, "groups": mine})

    ask("all")
    if s.version >= 4:
        for state in ("Stable", "stable", "Empty", "Dead", "Assigning", "Reconciling", "nonsense"):
            ask(state, states_filter=[state])
        ask("two states", states_filter=["Stable", "Empty"])
    if s.version >= 5:
        for kind in ("classic", "Classic", "consumer", "CONSUMER", "share", "nonsense"):
            ask(f"of type {kind}", types_filter=[kind])
        ask("stable and classic", states_filter=["Stable"], types_filter=["classic"])
    s.call("LeaveGroup", 2, group_id=groups["classic"], member_id=classic["member_id"])
    ask("a member less")


@script("DescribeGroups")
def describe_groups(s):
    group, plain, new = group_of(s), group_of(s, "plain"), group_of(s, "new")
    topic = s.topic()
    s.ask("not there", groups=[group])
    s.ask("no name", groups=[""])
    s.ask("none", groups=[])
    said = stable(s, group, group_instance_id="i")
    s.ask("stable", groups=[group])
    s.ask("operations", groups=[group], include_authorized_operations=True)
    simple(s, plain, topic)
    s.ask("simple", groups=[plain])
    s.call(BEAT, **joining_new(new, s.name("one"), [topic]))
    s.ask("of the consumer protocol", groups=[new])
    s.ask("several", groups=[group, plain, new, group_of(s, "gone")])
    s.call("LeaveGroup", 2, group_id=group, member_id=said["member_id"])
    s.ask("empty", groups=[group])


@script("DeleteGroups")
def delete_groups(s):
    topic = s.topic()
    group, plain, new = group_of(s), group_of(s, "plain"), group_of(s, "new")
    s.ask("not there", groups_names=[group])
    s.ask("no name", groups_names=[""])
    s.ask("none", groups_names=[])
    said = stable(s, group)
    s.call(BEAT, **joining_new(new, s.name("one"), [topic]))
    simple(s, plain, topic)
    s.ask("with members", groups_names=[group, new])
    s.call("LeaveGroup", 2, group_id=group, member_id=said["member_id"])
    s.call(BEAT, **beat(new, s.name("one"), -1))
    s.ask("several", groups_names=[group, new, plain, group_of(s, "gone")])
    for word, one in (("classic", group), ("simple", plain), ("consumer", new)):
        look(s, f"{word} deleted", one)
    s.ask("again", groups_names=[group])
    s.ask("offsets are gone", "OffsetFetch", version=7, group_id=plain,
          topics=[{"name": topic, "partition_indexes": [0]}])  # fmt: skip
