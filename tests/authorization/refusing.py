"""An appliance whose authorizer refuses what a test names, and the answers of it as trees.

The topics `mine` and `hidden` exist, and so do groups of these names. `admin` may do everything;
everybody else is refused whatever bears the name `hidden` or `absent` and is of the kind that the
test says, and the cluster.
"""

import dataclasses
import time

from appliance.authorization.operations import CLUSTER
from appliance.authorization.rights import Authorizer
from appliance.config.internal_topics import OFFSETS, TRANSACTIONS
from appliance.wire.batch import NewRecord, build_batch
from tests.netproc.netproc_world import World

MINE, HIDDEN, ABSENT = "mine", "hidden", "absent"
BATCH = build_batch([NewRecord(1, None, b"value")])
TRANSACTIONAL_BATCH = build_batch(
    [NewRecord(1, None, b"value")],
    producer_id=1,
    producer_epoch=0,
    base_sequence=0,
    transactional=True,
)
LIMIT_S = 60
LOOK_S = 0.0005
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.flush.policy": "os",
}


class Refuses(Authorizer):
    """kinds: of which the two names are refused; CLUSTER: the cluster is."""

    def __init__(self):
        self.kinds = ()

    def allows_everything(self, caller):
        return caller.client_id == "admin"

    def allows(self, caller, operation, resource):
        if resource.kind == CLUSTER:
            return CLUSTER not in self.kinds
        return resource.kind not in self.kinds or resource.name not in (HIDDEN, ABSENT)

    def allows_some(self, caller, operation, kind):
        return kind not in self.kinds


class Refusing:
    """admin and client: two connections."""

    def __init__(self, path):
        self.authorizer = Refuses()
        topics = (MINE, HIDDEN, OFFSETS.name, TRANSACTIONS.name)
        self.world = World(path, SETTINGS, topics, self.authorizer)
        self.world.io_process()
        self.admin, self.client = self.world.client("admin"), self.world.client("client")

    def id_of(self, name):
        """Of a topic; 16 bytes that no topic has for one that is not there."""
        topic = self.world.server.host.image.topics_by_name.get(name)
        return b"?" * 16 if topic is None else topic.topic_id

    def asked(self, key, version, /, **values):
        return self._ask(self.client, key, version, values)

    def done(self, key, version, /, **values):
        """By who may do everything."""
        return self._ask(self.admin, key, version, values)

    def _ask(self, client, key, version, values):
        client.send(key, version, **values)
        give_up = time.monotonic() + LIMIT_S
        while time.monotonic() < give_up:  # a sync runs on a thread
            self.world.turn()
            self.world.io_turn()
            if (found := client.answer()) is not None:
                return tree(found[1])
            time.sleep(LOOK_S)
        raise AssertionError("it is not answered")

    def produce(self, name):
        rows = [{"name": name, "partition_data": [{"index": 0, "records": BATCH}]}]
        told = self.done(0, 9, transactional_id=None, acks=-1, timeout=9999, topic_data=rows)
        assert codes(told) == {0}

    def commit(self, group, *names):
        told = self.done(8, 9, **commit(group, names))
        assert codes(told) == {0}

    def join_anew(self, group, *names):
        """A member of the new protocol that reads these topics."""
        told = self.done(68, 0, **heartbeat(group, names))
        assert codes(told) == {0}

    def close(self):
        self.world.close()


def no_id(name):
    """In the versions that name topics."""
    return bytes(16)


def commit(group, names, ids=no_id):
    row = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
    topics = [{"name": one, "topic_id": ids(one), "partitions": [row]} for one in names]
    return {
        "group_id": group, "generation_id_or_member_epoch": -1, "member_id": "",
        "group_instance_id": None, "retention_time": -1, "topics": topics,
    }  # fmt: skip


def heartbeat(group, names, **more):
    return {
        "group_id": group, "member_id": "m", "member_epoch": 0, "instance_id": None,
        "rack_id": None, "rebalance_timeout": 1000, "subscribed_topic_names": names,
        "server_assignor": None, "topic_partitions": [], **more,
    }  # fmt: skip


def tree(message):
    """A decoded message as dictionaries, lists and plain values."""
    if dataclasses.is_dataclass(message):
        fields = dataclasses.fields(message)
        return {field.name: tree(getattr(message, field.name)) for field in fields}
    if isinstance(message, tuple):
        return [tree(one) for one in message]
    return message


def below(node):
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def codes(node):
    """Every error code in a tree."""
    found = {int(node["error_code"])} if isinstance(node, dict) and "error_code" in node else set()
    return found.union(*map(codes, below(node)))


def about(node, *names):
    """The smallest parts of a tree that name one of these."""
    if isinstance(node, dict) and any(value in names for value in node.values()):
        return [node]
    return [found for one in below(node) for found in about(one, *names)]


def mentions(node, *names):
    """Whether one of these is anywhere in a tree."""
    return node in names or any(mentions(one, *names) for one in below(node))


def renamed(node, *names):
    """The tree with another name in the place of these."""
    if isinstance(node, dict):
        return {key: renamed(value, *names) for key, value in node.items()}
    if isinstance(node, list):
        return [renamed(one, *names) for one in node]
    return "?" if node in names else node
