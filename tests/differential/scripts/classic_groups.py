"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from tests.differential.groups import GROUP_MAX, group_of, look
from tests.differential.registry import APIS, script

GOOD = b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff"
"""A subscription to the topic t, as the consumer's protocol writes it."""


def joining(group, member="", protocols=("range",), **more):
    """What a consumer says to join."""
    return {
        "group_id": group, "session_timeout": 30_000, "rebalance_timeout": 60_000,
        "member_id": member, "protocol_type": "consumer",
        "protocols": [{"name": name, "metadata": GOOD} for name in protocols], **more,
    }  # fmt: skip


def enter(s, step, group, word, link=None, **more):
    """Join, with the id that the coordinator asks to come back with; the answer."""
    said = s.call("JoinGroup", link=link, **joining(group, **more))
    if said["error_code"] == "MEMBER_ID_REQUIRED":
        s.recognise(said["member_id"], word)
        said = s.call("JoinGroup", link=link, **joining(group, said["member_id"], **more))
    s.recognise(said["member_id"], word)
    if step:
        s.note(step, said, "JoinGroup")
    return said


def sync(group, said, *shares):
    """What a member says to learn its share; a leader gives (member, share) pairs."""
    return {
        "group_id": group, "generation_id": said["generation_id"], "member_id": said["member_id"],
        "protocol_type": "consumer", "protocol_name": "range",
        "assignments": [{"member_id": member, "assignment": share} for member, share in shares],
    }  # fmt: skip


def stable(s, group, word="one", **more):
    """A group with one member, that has its share."""
    said = enter(s, None, group, word, **more)
    s.call("SyncGroup", **sync(group, said, (said["member_id"], b"share")))
    return said


def being(group, said, **more):
    """What a member says of itself."""
    return {"group_id": group, "generation_id": said["generation_id"],
            "member_id": said["member_id"], **more}  # fmt: skip


@script("JoinGroup")
def join_group(s):
    group = group_of(s)
    s.ask("no group", **joining(""))
    s.ask("no protocols", **joining(group, protocols=()))
    s.ask("no type", **joining(group, protocol_type=""))
    s.ask("short session", **joining(group, session_timeout=1))
    s.ask("long session", **joining(group, session_timeout=100_000_000))
    s.ask("no session", **joining(group, session_timeout=-1))
    s.ask("nobody", **joining(group, "nobody"))
    look(s, "before", group)
    said = s.ask("first", **joining(group))
    s.recognise(said["member_id"], "first")
    look(s, "first came", group)
    if said["error_code"] == "MEMBER_ID_REQUIRED":
        said = s.ask("first with its id", **joining(group, said["member_id"]))
    look(s, "joined", group)
    s.ask("again", **joining(group, said["member_id"]))
    said = s.ask("other metadata", **joining(group, said["member_id"], ("range", "roundrobin")))
    s.ask("other type", **joining(group, protocol_type="connect"))
    s.ask("other protocols", **joining(group, protocols=("sticky",)))
    s.ask("somebody else", **joining(group, "nobody"))
    s.ask("instance", **joining(group_of(s, "static"), group_instance_id="i", reason="just so"))
    s.call("LeaveGroup", 2, group_id=group, member_id=said["member_id"])
    look(s, "left", group)


@script("SyncGroup")
def sync_group(s):
    group = group_of(s)
    unknown = {"generation_id": 1, "member_id": "m"}
    s.ask("no group", **sync("", unknown))
    s.ask("no group, no names", **{**sync("", unknown), "protocol_type": None,
                                   "protocol_name": None})  # fmt: skip
    s.ask("not there", **sync(group, unknown))
    said = enter(s, None, group, "one")
    s.ask("wrong member", **sync(group, {**said, "member_id": "nobody"}))
    s.ask("wrong generation", **sync(group, {**said, "generation_id": 7}))
    s.ask("wrong type", **{**sync(group, said), "protocol_type": "connect"})
    s.ask("wrong protocol", **{**sync(group, said), "protocol_name": "sticky"})
    s.ask("wrong instance", **sync(group, said), group_instance_id="i")
    s.ask("leader", **sync(group, said, (said["member_id"], b"share"), ("nobody", b"other")))
    s.ask("again", **sync(group, said))
    s.ask("without names", **{**sync(group, said), "protocol_type": None, "protocol_name": None})
    look(s, "stable", group)
    s.call("LeaveGroup", 2, group_id=group, member_id=said["member_id"])
    s.ask("left", **sync(group, said))


@script("Heartbeat")
def heartbeat(s):
    group = group_of(s)
    s.ask("no group", group_id="", generation_id=1, member_id="m")
    s.ask("not there", group_id=group, generation_id=1, member_id="m")
    said = stable(s, group)
    s.ask("good", **being(group, said))
    s.ask("wrong member", **being(group, {**said, "member_id": "nobody"}))
    s.ask("no member", **being(group, {**said, "member_id": ""}))
    s.ask("wrong generation", **being(group, {**said, "generation_id": 7}))
    s.ask("generation -1", **being(group, {**said, "generation_id": -1}))
    s.ask("unknown instance", **being(group, said, group_instance_id="i"))
    s.call("LeaveGroup", 2, group_id=group, member_id=said["member_id"])
    s.ask("empty", **being(group, said))


@script("LeaveGroup")
def leave_group(s):
    def leave(step, group, *members):
        """members: (id, instance); older versions take the first one's id."""
        s.ask(step, group_id=group, member_id=members[0][0] if members else "", members=[
            {"member_id": member, "group_instance_id": instance, "reason": "just so"}
            for member, instance in members
        ])  # fmt: skip

    group = group_of(s)
    leave("no group", "", ("m", None))
    leave("not there", group, ("m", None))
    said = stable(s, group)
    leave("nobody", group, ("nobody", None))
    leave("no members", group)
    leave("empty id", group, ("", None))
    leave("unknown instance", group, ("", "i"))
    leave("wrong instance", group, (said["member_id"], "i"))
    leave("good", group, (said["member_id"], None))
    leave("again", group, (said["member_id"], None))
    look(s, "left", group)
    if s.version >= 3:
        group = group_of(s, "static")
        said = stable(s, group, "two", group_instance_id="i")
        leave("another id", group, ("nobody", "i"))
        leave("by instance", group, ("", "i"), ("", "j"))
        look(s, "by instance", group)


@script("JoinGroup", versions=(5, 9))
def classic_group_life(s):
    """Two members: a rebalance, a member that is late, one that leaves."""
    group = group_of(s)
    other = s.connect(client_id="other")
    one = enter(s, "one", group, "one")
    s.ask("one syncs", "SyncGroup", **sync(group, one, (one["member_id"], b"all")))
    look(s, "one", group)
    asked = other.ask(APIS["JoinGroup"], s.version, joining(group))
    s.recognise(asked["member_id"], "two")
    other.send(APIS["JoinGroup"], s.version, joining(group, asked["member_id"]))
    s.ask_until("is called back", lambda answer: answer["error_code"] != "NONE",
                "Heartbeat", **being(group, one))  # fmt: skip
    look(s, "rebalancing", group)
    s.ask("sync meanwhile", "SyncGroup", **sync(group, one))
    one = s.ask("one again", **joining(group, one["member_id"]))
    two = other.receive()
    s.note("two", two)
    look(s, "both joined", group)
    other.send(APIS["SyncGroup"], 5, sync(group, two))
    shares = [(one["member_id"], b"half"), (two["member_id"], b"other half")]
    s.ask("leader gives", "SyncGroup", **sync(group, one, *shares))
    s.note("two gets", other.receive(), "SyncGroup", 5)
    look(s, "shared", group)
    s.ask("old generation", "Heartbeat", **being(group, {**one, "generation_id": 1}))
    s.ask("delete", "DeleteGroups", groups_names=[group])
    s.ask("leader leaves", "LeaveGroup", group_id=group, members=[
        {"member_id": one["member_id"], "reason": "just so"}])  # fmt: skip
    s.ask("other hears", "Heartbeat", **being(group, two))
    look(s, "leader left", group)
    two = s.ask("other again", **joining(group, two["member_id"]))
    s.ask("other syncs", "SyncGroup", **sync(group, two, (two["member_id"], b"all")))
    look(s, "other alone", group)
    s.ask("other leaves", "LeaveGroup", group_id=group, members=[{"member_id": two["member_id"]}])
    look(s, "empty", group)
    s.ask("delete empty", "DeleteGroups", groups_names=[group])
    look(s, "gone", group)


@script("JoinGroup", versions=(5, 9))
def classic_group_static_members(s):
    """A static member comes back under a new id without a rebalance; its old self is fenced."""
    group = group_of(s)
    one = enter(s, "one", group, "one", group_instance_id="i")
    s.ask("one syncs", "SyncGroup", **sync(group, one, (one["member_id"], b"all")),
          group_instance_id="i")  # fmt: skip
    look(s, "one", group)
    back = s.ask("back", **joining(group, group_instance_id="i"))
    s.recognise(back["member_id"], "back")
    look(s, "back", group)
    s.ask("fenced heartbeat", "Heartbeat", **being(group, one), group_instance_id="i")
    s.ask("fenced join", **joining(group, one["member_id"], group_instance_id="i"))
    s.ask("fenced sync", "SyncGroup", **sync(group, one), group_instance_id="i")
    s.ask("fenced leave", "LeaveGroup", group_id=group, members=[
        {"member_id": one["member_id"], "group_instance_id": "i"}])  # fmt: skip
    s.ask("other instance", "Heartbeat", **being(group, back), group_instance_id="j")
    s.ask("new one lives", "Heartbeat", **being(group, back), group_instance_id="i")
    s.ask("new one syncs", "SyncGroup", **sync(group, back), group_instance_id="i")
    s.ask("removed", "LeaveGroup", group_id=group, members=[
        {"member_id": "", "group_instance_id": "i"}])  # fmt: skip
    look(s, "removed", group)


def one_more(s, group, members):
    """Somebody joins and everybody gets a share. members: (link, what it was told), as returned."""
    links = [*(link for link, _ in members), s.connect()]
    said = links[-1].ask(APIS["JoinGroup"], s.version, joining(group))
    assert said["error_code"] == "MEMBER_ID_REQUIRED", said
    links[-1].send(APIS["JoinGroup"], s.version, joining(group, said["member_id"]))
    for link, known in members:
        s.until(lambda answer: answer["error_code"] == "REBALANCE_IN_PROGRESS",
                "Heartbeat", **being(group, known))  # fmt: skip
        link.send(APIS["JoinGroup"], s.version, joining(group, known["member_id"]))
    joined = [(link, link.receive()) for link in links]
    shares = [(told["member_id"], b"share") for _, told in joined]
    for link, told in joined:
        leads = told["leader"] == told["member_id"]
        link.send(APIS["SyncGroup"], 5, sync(group, told, *(shares if leads else ())))
    for link in links:
        link.receive()
    return joined


@script("JoinGroup", versions=(5, 9))
def classic_group_full(s):
    """As many members as a group may have, then one more; one goes, and there is room."""
    group, members = group_of(s), []
    for _ in range(GROUP_MAX):
        members = one_more(s, group, members)
    s.ask("one too many", **joining(group))
    s.ask("a static one too many", **joining(group, group_instance_id="i"))
    s.ask("with an id", **joining(group, "nobody"))
    s.ask("who is in lives", "Heartbeat", **being(group, members[0][1]))
    s.ask("one goes", "LeaveGroup", group_id=group,
          members=[{"member_id": members[0][1]["member_id"]}])  # fmt: skip
    said = s.ask("one comes", **joining(group))
    s.recognise(said["member_id"], "comes")


@script("JoinGroup", versions=(9, 9))
def classic_group_late_members(s):
    """Who does not join again, or does not fetch its share, within the rebalance timeout is out."""
    group = group_of(s)
    one = stable(s, group, rebalance_timeout=1000)
    two = enter(s, "joined alone", group, "two", rebalance_timeout=1000)
    s.ask("one is out", "Heartbeat", **being(group, one))
    s.ask_until("two is out", lambda answer: answer["error_code"] != "NONE",
                "Heartbeat", **being(group, two))  # fmt: skip
    look(s, "nobody", group)
