"""Scenarios of consumer groups as text: who says what, line by line, and what it hears.

    A joins t,u [instance i] [assignor range] [version 0] [rebalance ms]   `^re` reads by expression
    A beats [owns t0,t1] [epoch 7] [reads t,u]     owns: partitions as topic and number, `-`: none
    A leaves [for a while]
    A commits t0 5 [epoch n] [as none] [version n] | A fetches t0
    C joins-classic t,u [owns t0] [instance i] | C syncs | C beats-classic | C leaves-classic
    someone describes | describes-classic | lists | deletes
    topic v 3 | topic t deleted | grow t 6 | tick 5000 | restart | settings name value
    expect A ANSWER    the answer to its last request: `epoch has …`, `epoch` alone, or an error
    expect group …     state, `epoch n`, `members A B`, `gone`

Names stand for member ids. Everything heard must be expected before the same person acts again.
"""

from types import SimpleNamespace

from consumer_simulation import by_topic, subscription
from consumer_world import ConsumerWorld
from coordinator_world import add_topic

from appliance.coordinators.groups import embedded
from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft


class Script:
    def __init__(self, text: str) -> None:
        self.settings: dict[str, object] = {}
        self.world: ConsumerWorld | None = None
        self.people: dict[str, SimpleNamespace] = {}
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

    def step(self, words: list[str]) -> None:
        if words[0] == "settings":
            self.settings[words[1]] = int(words[2]) if words[2].isdigit() else words[2]
            return
        if self.world is None:
            self.world = ConsumerWorld(**self.settings)
        verb = {"expect", "tick", "restart", "topic", "grow"} & {words[0]}
        if verb:
            getattr(self, f"do_{words[0]}")(*words[1:])
            return
        person = self.person(words[0])
        assert not person.heard, f"{words[0]} heard {person.heard}, which nobody expected"
        person.heard = getattr(self, words[1].replace("-", "_"))(person, words[2:])

    def person(self, name: str) -> SimpleNamespace:
        fresh = SimpleNamespace(name=name, id=name, epoch=0, instance=None, heard="")
        return self.people.setdefault(name, fresh)

    # The world ------------------------------------------------------------------------------------

    def do_tick(self, ms: str) -> None:
        for token, message in self.world.pass_time(int(ms)):
            person = next(p for p in self.people.values() if getattr(p, "token", 0) == token)
            person.heard = self.told_of_join(person, message)

    def do_restart(self) -> None:
        self.world.restart()

    def do_topic(self, name: str, what: str) -> None:
        image: MetadataImage = self.world.image
        if what == "deleted":
            topic_id = image.topics_by_name[name].topic_id
            record = kraft.RemoveTopicRecord(topic_id=topic_id)
            image.apply(image.applied_offset + 1, record)
            self.world.carry_out(self.world.shard.on_topic_deleted(name, topic_id, self.world.now))
        else:
            add_topic(image, name, name.encode().ljust(16, b"."), int(what))

    def do_grow(self, name: str, count: str) -> None:
        image = self.world.image
        topic = image.topics_by_name[name]
        old = image.topics_by_name[name].partitions[0]
        for index in range(len(topic.partitions), int(count)):
            record = kraft.PartitionRecord(
                partition_id=index,
                topic_id=topic.topic_id,
                replicas=old.replicas,
                isr=old.isr,
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=old.directories,
            )
            image.apply(image.applied_offset + 1, record)

    # Members of the consumer protocol -------------------------------------------------------------

    def joins(self, person, words):
        given = dict(zip(words[1::2], words[2::2], strict=True))
        person.instance = given.get("instance", person.instance)
        version = int(given.get("version", 1))
        person.id = given.get("id", person.id)
        return self.heartbeat(
            person,
            "" if version == 0 else person.id,
            0,
            version=version,
            instance_id=person.instance,
            rebalance_timeout=int(given.get("rebalance", 60_000)),
            server_assignor=given.get("assignor"),
            topic_partitions=(),
            **reads(words[0]),
        )

    def beats(self, person, words):
        given = dict(zip(words[::2], words[1::2], strict=True))
        epoch = int(given.get("epoch", person.epoch))
        fields = reads(given["reads"]) if "reads" in given else {}
        if "owns" in given:
            image = self.world.image
            fields["topic_partitions"] = [
                {"topic_id": image.topics_by_name[topic].topic_id, "partitions": numbers}
                for topic, numbers in by_topic(places(given["owns"])).items()
            ]
        return self.heartbeat(person, person.id, epoch, instance_id=person.instance, **fields)

    def leaves(self, person, words):
        epoch = -2 if words else -1
        return self.heartbeat(person, person.id, epoch, instance_id=person.instance)

    def heartbeat(self, person, member_id, epoch, **fields):
        _, ((_, message),) = self.world.heartbeat(member_id, epoch, **fields)
        if message.error_code:
            return message.error_code.name.upper()
        person.id, person.epoch = message.member_id, message.member_epoch
        self.people[person.id] = self.people[person.name]
        if message.assignment is None:
            return str(message.member_epoch)
        return f"{message.member_epoch} has {self.shown(message.assignment.topic_partitions)}"

    def shown(self, topics) -> str:
        names = self.world.image.topics_by_id
        found = [f"{names[one.topic_id.bytes].name}{p}" for one in topics for p in one.partitions]
        return ",".join(sorted(found)) or "nothing"

    # Members of the classic protocol --------------------------------------------------------------

    def joins_classic(self, person, words):
        given = dict(zip(words[1::2], words[2::2], strict=True))
        person.instance = given.get("instance", person.instance)
        metadata = subscription(tuple(words[0].split(",")), places(given.get("owns", "-")))
        person.id = "" if person.id == person.name else person.id
        for _ in range(2):
            token, answers = self.world.ask(
                11,
                9,
                group_id="g",
                session_timeout=10_000,
                rebalance_timeout=20_000,
                member_id=person.id,
                group_instance_id=person.instance,
                protocol_type=given.get("type", "consumer"),
                protocols=[{"name": "range", "metadata": metadata}],
            )
            person.token = token
            self.others_hear(answers, token)
            mine = [message for answered, message in answers if answered == token]
            if not mine:
                return "waits"
            if mine[0].error_code.name != "member_id_required":
                return self.told_of_join(person, mine[0])
            person.id = mine[0].member_id
        raise AssertionError("asked for an id twice")

    def others_hear(self, answers, token) -> None:
        for answered, message in answers:
            if answered != token:
                other = next(p for p in self.people.values() if getattr(p, "token", 0) == answered)
                other.heard = self.told_of_join(other, message)

    def told_of_join(self, person, message) -> str:
        if message.error_code:
            return message.error_code.name.upper()
        person.id, person.epoch = message.member_id, message.generation_id
        self.people[person.id] = self.people[person.name]
        return str(message.generation_id)

    def syncs(self, person, words):
        shares = [one.split("=") for one in words]
        rows = [
            {
                "member_id": self.person(name).id,
                "assignment": embedded.encode_assignment(by_topic(places(share)), b"\0\1"),
            }
            for name, share in shares
        ]
        _, ((_, message),) = self.world.ask(
            14,
            5,
            group_id="g",
            generation_id=person.epoch,
            protocol_type="consumer",
            protocol_name="range",
            assignments=rows,
            **self.identity(person),
        )
        if message.error_code:
            return message.error_code.name.upper()
        found = embedded.assignment(message.assignment)
        return ",".join(sorted(f"{t}{p}" for t in found for p in found[t])) or "nothing"

    def beats_classic(self, person, words):
        fields = {"group_id": "g", "generation_id": person.epoch, **self.identity(person)}
        return self.code(12, 4, **fields)

    def leaves_classic(self, person, words):
        answer = self.ask_one(13, 5, group_id="g", members=[self.identity(person)])
        code = answer.error_code or answer.members[0].error_code
        return code.name.upper()

    def identity(self, person):
        return {"member_id": person.id, "group_instance_id": person.instance}

    # Everybody ------------------------------------------------------------------------------------

    def commits(self, person, words):
        given = dict(zip(words[2::2], words[3::2], strict=True))
        nobody = given.get("as") == "none"
        ((topic, partition),) = places(words[0])
        row = {"partition_index": partition, "committed_offset": int(words[1])}
        answer = self.ask_one(
            8,
            int(given.get("version", 9)),
            group_id="g",
            member_id="" if nobody else person.id,
            generation_id_or_member_epoch=-1 if nobody else int(given.get("epoch", person.epoch)),
            retention_time=-1,
            topics=[{"name": topic, "partitions": [{**row, "committed_metadata": ""}]}],
        )
        return answer.topics[0].partitions[0].error_code.name.upper()

    def fetches(self, person, words):
        ((topic, partition),) = places(words[0])
        given = dict(zip(words[1::2], words[2::2], strict=True))
        asked = [{"name": topic, "partition_indexes": (partition,)}]
        group = {"group_id": "g", "topics": asked, "member_id": None, "member_epoch": -1}
        if "epoch" in given:
            group |= {"member_id": person.id, "member_epoch": int(given["epoch"])}
        (found,) = self.ask_one(9, 9, groups=[group], require_stable=False).groups
        if found.error_code:
            return found.error_code.name.upper()
        return str(found.topics[0].partitions[0].committed_offset)

    def describes(self, person, words):
        (found,) = self.ask_one(69, 1, group_ids=("g",), include_authorized_operations=False).groups
        if found.error_code:
            return found.error_code.name.upper()
        rows = [
            f"{self.people[one.member_id].name}:{'classic' if one.member_type == 0 else 'consumer'}"
            f":{self.shown(one.assignment.topic_partitions)}"
            f">{self.shown(one.target_assignment.topic_partitions)}"
            for one in found.members
        ]
        head = f"{found.group_state} {found.group_epoch}/{found.assignment_epoch}"
        return " ".join([head, found.assignor_name, *sorted(rows)])

    def describes_classic(self, person, words):
        fields = {"groups": ("g",), "include_authorized_operations": False}
        (found,) = self.ask_one(15, 6, **fields).groups
        return found.error_code.name.upper() if found.error_code else found.group_state

    def lists(self, person, words):
        answer = self.ask_one(16, 5, states_filter=(), types_filter=tuple(words))
        return " ".join(f"{one.group_type}:{one.group_state}" for one in answer.groups) or "-"

    def deletes(self, person, words):
        return self.ask_one(42, 2, groups_names=("g",)).results[0].error_code.name.upper()

    def ask_one(self, key, version, **fields):
        token, answers = self.world.ask(key, version, **fields)
        self.others_hear(answers, token)
        return next(message for answered, message in answers if answered == token)

    def code(self, key, version, **fields):
        return self.ask_one(key, version, **fields).error_code.name.upper()

    def do_expect(self, name: str, *words: str) -> None:
        if name == "group":
            self.expect_group(list(words))
            return
        person = self.person(name)
        heard, person.heard = person.heard, ""
        assert heard == " ".join(words), f"{name} heard: {heard}"

    def expect_group(self, words: list[str]) -> None:
        group = self.world.shard.state.groups.get("g")
        if words == ["gone"]:
            assert group is None, "it is there"
            return
        assert group is not None, "it is gone"
        while words:
            word = words.pop(0)
            if word == "epoch":
                assert group.epoch == int(words.pop(0)), f"epoch {group.epoch}"
            elif word == "members":
                found = sorted(self.people[one].name for one in group.members)
                assert found == words, f"members {found}"
                return
            else:
                assert group.state_name == word, f"it is {group.state_name}"


def reads(text: str) -> dict[str, object]:
    if text.startswith("^"):
        return {"subscribed_topic_names": (), "subscribed_topic_regex": text}
    names = () if text == "-" else tuple(text.split(","))
    return {"subscribed_topic_names": names, "subscribed_topic_regex": ""}


def places(text: str) -> frozenset[tuple[str, int]]:
    if text == "-":
        return frozenset()
    return frozenset((one[0], int(one[1:])) for one in text.split(","))
