"""Scenarios as text: what members do, line by line, and what they hear of it.

    A joins [word value ...]     words: instance, with (protocols a,b), on (topics t,u), type,
                                 session, rebalance (ms), version, id (another's name, or none)
    A syncs [B=x C=y]            the leader's assignment
    A heartbeats | A leaves [B ...] [instance i]
    A commits t-0 5 [as none | generation 7 | metadata 5000 | version n | retention ms]
    A fetches t-0
    someone deletes | describes | lists [states] | deletes-offset t-0
    tick 5000 | restart | topic t deleted | settings name value
    expect A ANSWER              the oldest thing that A heard and nobody looked at; `waits`: none
    expect group Stable ...      any of: state, `generation 3`, `members A B`, `leader A`, `gone`

Whatever is heard must be expected before the same member acts again. Names stand for member ids.
"""

from types import SimpleNamespace

from coordinator_world import World, subscription

JOIN, SYNC, HEARTBEAT, LEAVE, COMMIT, FETCH = 11, 14, 12, 13, 8, 9
NEWEST = {8: 9, 9: 9, 11: 9, 12: 4, 13: 5, 14: 5, 15: 6, 16: 5, 42: 2, 47: 0}


class Script:
    def __init__(self, text: str) -> None:
        self.settings: dict[str, int] = {}
        self.world: World | None = None
        self.people: dict[str, SimpleNamespace] = {}
        self.asked: dict[int, str] = {}
        self.names: dict[str, str] = {}
        self.lines = text.splitlines()

    def run(self) -> None:
        for number, line in enumerate(self.lines, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            try:
                self.step(words)
            except AssertionError as cause:
                raise AssertionError(f"line {number}: {line.strip()}\n{cause}") from cause
        for name, person in self.people.items():
            assert not person.heard, f"{name} heard {person.heard} at the end"

    def step(self, words: list[str]) -> None:
        if words[0] == "settings":
            self.settings[words[1]] = int(words[2])
            return
        if self.world is None:
            self.world = World(**self.settings)
        if words[0] == "expect":
            self.expect(words[1], " ".join(words[2:]))
        elif words[0] == "tick":
            self.hear(self.world.pass_time(int(words[1])))
        elif words[0] == "restart":
            self.world.restart()
        elif words[0] == "topic":
            topic = self.world.image.topics_by_name[words[1]]
            outcome = self.world.shard.on_topic_deleted(words[1], topic.topic_id, self.world.now)
            self.hear(self.world.carry_out(outcome))
        else:
            person = self.person(words[0])
            assert not person.heard, f"{words[0]} heard {person.heard}, which nobody expected"
            verb = words[1].replace("-", "_")
            key, version, fields = getattr(self, verb)(person, words[2:])
            token, answers = self.world.ask(key, version, **fields)
            self.asked[token] = words[0]
            self.hear(answers)

    def person(self, name: str) -> SimpleNamespace:
        fresh = SimpleNamespace(name=name, id="", generation=-1, instance=None, heard=[], on=["t"])
        return self.people.setdefault(name, fresh)

    # What people do -------------------------------------------------------------------------------

    def joins(self, person, words):
        given = dict(zip(words[::2], words[1::2], strict=True))
        person.on = given["on"].split(",") if "on" in given else person.on
        person.instance = given.get("instance", person.instance)
        if "id" in given:
            person.id = "" if given["id"] == "none" else self.person(given["id"]).id
        version = int(given.get("version", NEWEST[JOIN]))
        topics = subscription(*person.on)
        fields = {
            "group_id": "g",
            "session_timeout": int(given.get("session", 10_000)),
            "rebalance_timeout": int(given.get("rebalance", 60_000)),
            "member_id": person.id,
            "group_instance_id": person.instance,
            "protocol_type": given.get("type", "consumer"),
            "protocols": [
                {"name": one, "metadata": topics} for one in given.get("with", "range").split(",")
            ],
        }
        return JOIN, version, fields

    def syncs(self, person, words):
        shares = [one.split("=") for one in words]
        fields = {
            **self.identity(person),
            "generation_id": person.generation,
            "protocol_type": "consumer",
            "protocol_name": person.protocol,
            "assignments": [
                {"member_id": self.person(name).id, "assignment": share.encode()}
                for name, share in shares
            ],
        }
        return SYNC, NEWEST[SYNC], fields

    def heartbeats(self, person, words):
        fields = {**self.identity(person), "generation_id": person.generation}
        return HEARTBEAT, NEWEST[HEARTBEAT], fields

    def leaves(self, person, words):
        if words[:1] == ["instance"]:
            members = [{"member_id": "", "group_instance_id": one} for one in words[1:]]
        else:
            members = [
                {"member_id": self.person(one).id, "group_instance_id": self.person(one).instance}
                for one in words or [person.name]
            ]
        return LEAVE, NEWEST[LEAVE], {"group_id": "g", "members": members}

    def commits(self, person, words):
        topic, partition = words[0].split("-")
        given = dict(zip(words[2::2], words[3::2], strict=True))
        anonymous = given.get("as") == "none"
        fields = {
            "group_id": "g",
            "member_id": "" if anonymous else person.id,
            "group_instance_id": None if anonymous else person.instance,
            "generation_id_or_member_epoch": -1
            if anonymous
            else int(given.get("generation", person.generation)),
            "retention_time": int(given.get("retention", -1)),
            "topics": [
                {
                    "name": topic,
                    "partitions": [
                        {
                            "partition_index": int(partition),
                            "committed_offset": int(words[1]),
                            "committed_metadata": "m" * int(given.get("metadata", 0)),
                        }
                    ],
                }
            ],
        }
        return COMMIT, int(given.get("version", NEWEST[COMMIT])), fields

    def fetches(self, person, words):
        topic, partition = words[0].split("-")
        asked = [{"name": topic, "partition_indexes": (int(partition),)}]
        return FETCH, NEWEST[FETCH], {"groups": [{"group_id": "g", "topics": asked}]}

    def describes(self, person, words):
        return 15, NEWEST[15], {"groups": ("g",), "include_authorized_operations": False}

    def lists(self, person, words):
        return 16, NEWEST[16], {"states_filter": tuple(words), "types_filter": ()}

    def deletes(self, person, words):
        return 42, NEWEST[42], {"groups_names": ("g",)}

    def deletes_offset(self, person, words):
        topic, partition = words[0].split("-")
        asked = [{"name": topic, "partitions": [{"partition_index": int(partition)}]}]
        return 47, 0, {"group_id": "g", "topics": asked}

    def identity(self, person):
        return {
            "group_id": "g",
            "member_id": person.id,
            "group_instance_id": person.instance,
        }

    # What people hear -----------------------------------------------------------------------------

    def hear(self, answers) -> None:
        for token, message in answers:
            if type(message).__name__ == "JoinGroupResponse" and message.member_id:
                self.names[message.member_id] = self.asked[token]
        for token, message in answers:
            person = self.people[self.asked.pop(token)]
            person.heard.append(self.told(person, message))

    def told(self, person, message) -> str:
        kind = type(message).__name__
        error = getattr(message, "error_code", 0)
        if kind == "JoinGroupResponse":
            return self.told_of_join(person, message)
        if error:
            return error.name.upper()
        if kind == "SyncGroupResponse":
            return f"has {message.assignment.decode() or 'nothing'}"
        if kind == "LeaveGroupResponse":
            return " ".join(one.error_code.name.upper() for one in message.members)
        if kind == "DescribeGroupsResponse":
            (group,) = message.groups
            return f"{group.group_state} {group.error_code.name.upper()} {len(group.members)}"
        if kind == "ListGroupsResponse":
            return " ".join(f"{one.group_id}:{one.group_state}" for one in message.groups) or "-"
        if kind == "DeleteGroupsResponse":
            return message.results[0].error_code.name.upper()
        if kind == "OffsetFetchResponse":
            row = message.groups[0].topics[0].partitions[0]
            return str(row.committed_offset)
        if kind in ("OffsetCommitResponse", "OffsetDeleteResponse"):
            return message.topics[0].partitions[0].error_code.name.upper()
        return "NONE"

    def told_of_join(self, person, message) -> str:
        error = message.error_code
        if error:
            if error.name == "member_id_required":
                person.id = message.member_id
            return error.name.upper()
        person.id, person.generation = message.member_id, message.generation_id
        person.protocol = message.protocol_name
        members = "".join(" " + self.name(one.member_id) for one in message.members)
        skip = " skipping" if getattr(message, "skip_assignment", False) else ""
        led = self.name(message.leader)
        return f"joined {message.generation_id} {person.protocol} led by {led}{members}{skip}"

    def name(self, member_id: str) -> str:
        """Members who have not heard their id yet are known by who waits for it."""
        if member_id in self.names:
            return self.names[member_id]
        waiting = self.world.shard.state.groups["g"].awaiting_join
        call = waiting.get(member_id)
        return "?" if call is None else self.asked[call.token]

    # What is expected -----------------------------------------------------------------------------

    def expect(self, name: str, wanted: str) -> None:
        if name == "group":
            self.expect_group(wanted.split())
            return
        heard = self.person(name).heard
        got = heard.pop(0) if heard else "waits"
        assert got == wanted, f"{name} heard: {got}"

    def expect_group(self, words: list[str]) -> None:
        group = self.world.shard.state.groups.get("g")
        if words == ["gone"]:
            assert group is None, "it is there"
            return
        assert group is not None, "it is gone"
        members = [self.names.get(one, "?") for one in group.members]
        got = {
            "generation": [str(group.generation)],
            "leader": [self.names.get(group.leader, "-")],
            "members": members,
        }
        label, values = "state", {"state": []}
        for word in words:
            if word in got:
                label = word
                values[label] = []
            else:
                values[label].append(word)
        assert values.pop("state") in ([], [group.state]), f"it is {group.state}"
        for what, wanted in values.items():
            assert got[what] == wanted, f"{what}: {got[what]}"
