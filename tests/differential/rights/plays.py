"""One script for each API: who is denied, who has just what it needs or one rule less, and a super
user ask the same about what is theirs, what is hidden from them and what is not there."""

import time

from tests.differential import transactions
from tests.differential.groups import offsets
from tests.differential.registry import APIS, Script
from tests.differential.rights import request_values
from tests.differential.rights.needs import BEFORE_LOGIN, NEEDS, User, users
from tests.differential.table import RIGHTS

ROOT, NOBODY = User("root", (), True), User("nobody", (), False)
PREFIXED, LITERAL, ALLOW, CLUSTER, USER = 4, 3, 3, 4, 7
PASSWORD = "secret"
LIMIT_S = 5
MINE, NEW, HIDDEN, ABSENT = "mine", "new", "hidden", "absent"
"""What is there and what is not: the first two may be used by who has rules."""
PASSING = {
    "CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR", "LEADER_NOT_AVAILABLE",
}  # fmt: skip
"""What is answered for a moment only."""
CHOSEN = {
    "assignment", "target_assignment", "group_epoch", "assignment_epoch", "member_epoch",
    "high_watermark", "log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp",
    "heartbeat_interval", "nodes", "documentation", "synonyms", "token_id", "hmac",
    "expiry_timestamp", "max_timestamp",
}  # fmt: skip
"""Fields that other scripts compare, and that depend on the moment here."""
KAFKAS_OBJECT = "Request Request("
"""How a text begins in which Kafka prints its own objects, with addresses of its controllers."""
WITH_TOPICS = {"topic", "topics", "topic_data", "topic_names", "topic_partitions", "resources",
               "subscribed_topic_names", "group_ids"}  # fmt: skip
OF_GROUPS = {"OffsetFetch", "DescribeGroups", "ListGroups", "DeleteGroups", "OffsetDelete"}
"""APIs about groups that are there. Others join a new one."""


def scripts():
    """One for each API in the registry."""
    return [
        Script(f"{RIGHTS}{api}", api, playing(api), None) for api in APIS if api not in BEFORE_LOGIN
    ]


def passwords():
    """User → password, of everybody who logs in."""
    found = [ROOT, NOBODY, *(user for api in NEEDS for user in users(api))]
    return {user.name: PASSWORD for user in found}


def resource_of(api, kind):
    """The cluster, or the beginning of the names that are `mine`."""
    if kind == CLUSTER:
        return "kafka-cluster"
    return f"{'User:' if kind == USER else ''}{MINE}-{RIGHTS}{api}-"


def rules():
    """What CreateAcls takes: of each user the rules about what is `mine` in its script."""
    return [
        {
            "resource_type": kind, "operation": operation, "permission_type": ALLOW,
            "resource_name": resource_of(api, kind),
            "resource_pattern_type": LITERAL if kind == CLUSTER else PREFIXED,
            "principal": f"User:{user.name}", "host": "127.0.0.1",
        }
        for api in NEEDS for user in users(api) for operation, kind in user.rules
    ]  # fmt: skip


def playing(api):
    """The function of a scene that plays the API in one version."""
    return lambda scene: _Play(scene, api).run()


class _Play:
    def __init__(self, scene, api):
        self.scene = scene
        self.api = api
        self.version = scene.version
        self.names = {word: scene.name(word) for word in (MINE, HIDDEN, ABSENT)}
        self.names[NEW] = f"{self.names[MINE]}.new"
        self.ids, self.producers = {}, {}
        self.denied = {}  # step → (the word that is asked about, what is answered)

    def run(self):
        assert self.api in NEEDS, f"what does {self.api} need?"
        self.prepare()
        for user in (NOBODY, *users(self.api), ROOT):
            self.ask_as(user)
        if self.scene.target.name == "penstock":
            self.hidden_is_absent()

    # what is there --------------------------------------------------------------------------------

    def prepare(self):
        scene, fields = self.scene, request_values.fields(self.api, self.version)
        there = [self.names[word] for word in (MINE, HIDDEN)]
        scene.recognise(scene.call("Metadata", 12)["cluster_id"], "cluster")
        if WITH_TOPICS & fields or self.api in OF_GROUPS:
            for name in there[1:] if self.api == "CreateTopics" else there:
                scene.create(name)
                self.ids[name] = scene.topic_id(name)
            for word in (NEW, ABSENT):
                self.ids[self.names[word]] = scene.id(f"{word} topic")
        if self.api in OF_GROUPS:
            for name in there:
                self.commit(name)
        if self.api == "ConsumerGroupDescribe":
            for name in there:
                self.join(name)
        if any("transactional_id" in one for one in fields) or self.api == "ListTransactions":
            for name in there if self.api != "InitProducerId" else ():
                self.begin(name)

    def commit(self, name):
        scene = self.scene
        told = scene.until(settled, "OffsetCommit", 8, group_id=name, topics=offsets(name, (0, 3)),
                           generation_id_or_member_epoch=-1)  # fmt: skip
        assert codes(told) == {"NONE"}, told

    def join(self, name):
        asked = {"group_id": name, "member_id": "m", "subscribed_topic_names": [name],
                 "rebalance_timeout": 60_000, "topic_partitions": []}  # fmt: skip
        told = self.scene.until(settled, "ConsumerGroupHeartbeat", **asked)
        assert codes(told) == {"NONE"}, told

    def begin(self, name):
        self.scene.until(settled, "FindCoordinator", 4, key_type=1, coordinator_keys=[name])
        one = transactions.writer(self.scene, name)
        self.producers[name] = {"producer_id": one[1], "producer_epoch": one[2]}
        if self.api == "DescribeTransactions":
            self.scene.create(f"{name}.written")
            transactions.add(self.scene, one, f"{name}.written", 0)

    # what is asked --------------------------------------------------------------------------------

    def ask_as(self, user):
        theirs = {"": {}, **request_values.VARIANTS.get(self.api, {})}
        every = [MINE, NEW, HIDDEN, ABSENT]
        denied = every[2:]
        for variant, fields in theirs.items():
            once = request_values.named_once(self.api, self.version, fields)
            if user in (NOBODY, ROOT):
                rounds = [(one, denied) for one in denied] if once else [("", denied)]
            else:
                rounds = [(MINE, [MINE]), (MINE, every)]
                rounds += [(one, [MINE]) for one in every[1:]] if once else []
            for by_id in request_values.ways(self.api, self.version):
                for one, many in rounds:
                    self.ask(user, variant, fields, one, many, by_id)

    def ask(self, user, variant, fields, one, many, by_id):
        names = [self.names[word] for word in many]
        name = self.names.get(one, names[0])
        about = request_values.About(name, names, self.ids if by_id else (), self.producers)
        values = request_values.request(self.api, self.version, about, fields)
        answer = self.answer(user, values)
        words = [user.name.removesuffix(f"_{self.api}"), variant, one, "by id" * by_id,
                 "with others" * (len(many) > 2)]  # fmt: skip
        step = " ".join(word for word in words if word)
        self.scene.note(step, self.own(answer))
        if user is NOBODY and not by_id:
            self.denied[step] = one, answer

    def answer(self, user, values):
        end = time.monotonic() + LIMIT_S
        while True:
            link = self.scene.link_of(user.name, PASSWORD)
            answer = link.ask(APIS[self.api], self.version, values)
            if settled(answer):
                return answer
            assert time.monotonic() < end, f"{self.scene.target.name}: it stays {answer}"

    def own(self, value):
        """Without what this scene has not made, and what each broker chose."""
        if isinstance(value, str) and value.startswith(KAFKAS_OBJECT):
            return None
        if isinstance(value, dict):
            return {key: self.own(item) for key, item in value.items() if key not in CHOSEN}
        if isinstance(value, list):
            return [self.own(one) for one in value if not self.is_strange(one)]
        return value

    def is_strange(self, row):
        if not isinstance(row, dict) or not self.api.startswith("List"):
            return False
        named = [
            row[key] for key in ("group_id", "transactional_id", "resource_name") if key in row
        ]
        return any(name not in self.names.values() for name in named)

    # what must be so on ours ----------------------------------------------------------------------

    def hidden_is_absent(self):
        """Who is denied cannot tell what is hidden from what is not there."""
        for step, (word, answer) in self.denied.items():
            other = self.denied[step.replace(HIDDEN, ABSENT)][1] if word == HIDDEN else answer
            if word != ABSENT:
                swapped, other = in_order(self.swapped(answer)), in_order(other)
                assert swapped == other, f"{step} tells {answer}, and of what is not there {other}"

    def swapped(self, value):
        if isinstance(value, dict):
            return {key: self.swapped(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.swapped(one) for one in value]
        if isinstance(value, str):
            hidden, absent = self.names[HIDDEN], self.names[ABSENT]
            return value.replace(hidden, "?").replace(absent, hidden).replace("?", absent)
        return value


def in_order(value):
    if isinstance(value, dict):
        return {key: in_order(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((in_order(one) for one in value), key=repr)
    return value


def codes(value):
    """Every error code in an answer."""
    if isinstance(value, dict):
        own = {value[key] for key in ("error_code", "partition_error_code") if key in value}
        return own.union(*map(codes, value.values()))
    return set().union(*map(codes, value)) if isinstance(value, list) else set()


def settled(answer):
    """True if it is not one that is answered for a moment only."""
    return not codes(answer) & PASSING
