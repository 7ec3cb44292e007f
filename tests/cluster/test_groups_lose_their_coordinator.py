"""The node that coordinates groups is killed while their members read: a group of the classic
protocol and one of the consumer protocol (KIP-848) go on with another coordinator."""

from collections import defaultdict
from itertools import count

import confluent_kafka as ck
import pytest

from tests.cluster.cluster_load import PARTITIONS, ClusterLoad
from tests.cluster.nodes import AGAIN, LIMIT_S, Nodes
from tests.groups.group_members import Member, share, until

pytestmark = pytest.mark.timeout(240)
FIND_COORDINATOR = 10
TOPIC = "read"
ASIDE, FAR = "aside", 7
"""A topic that nobody reads, and what is committed of it before the death: nobody commits it
again."""
ROUNDS = 20
"""How often the members are polled before they commit."""
REFUSED = {
    ck.KafkaError._TRANSPORT, ck.KafkaError._TIMED_OUT, ck.KafkaError._WAIT_COORD,
    ck.KafkaError.NOT_COORDINATOR, ck.KafkaError.COORDINATOR_NOT_AVAILABLE,
    ck.KafkaError.COORDINATOR_LOAD_IN_PROGRESS, ck.KafkaError.REQUEST_TIMED_OUT,
    ck.KafkaError.REBALANCE_IN_PROGRESS, ck.KafkaError.ILLEGAL_GENERATION,
    ck.KafkaError.STALE_MEMBER_EPOCH,
}  # fmt: skip
"""What a commit may be answered while the coordinator changes, or the group. UNKNOWN_MEMBER_ID is
none of it: a coordinator that takes over knows the members."""


class Steady(ClusterLoad):
    pause_s = 0.05


class Group:
    """Members of one group that commit as they read. committed: what was acknowledged, and tried:
    what was asked for, by partition."""

    def __init__(self, bootstrap, name, protocol):
        self.name, self._bootstrap = name, bootstrap
        self._settings = {"group_protocol": protocol}
        if protocol == "classic":  # where members say it; it is 45 s for the others, too
            self._settings["session_timeout_ms"] = 45_000
        self.members = []
        self.committed, self.tried = defaultdict(int), defaultdict(int)
        self.join()
        self.join()

    def join(self):
        self.members.append(Member(self._bootstrap, self.name, TOPIC, **self._settings))

    def whole(self):
        return share(self.members, PARTITIONS)

    def read(self):
        """The places of all records that a member was given."""
        return {place for member in self.members for place in member.got}

    def commit_aside(self):
        place = ck.TopicPartition(ASIDE, 0, FAR)
        (said,) = self.members[0].client.commit(offsets=[place], asynchronous=False)
        assert said.error is None

    def commit(self):
        for member in self.members:
            positions = member.client.position(member.client.assignment())
            places = [one for one in positions if one.offset > self.committed[one.partition]]
            for one in places:
                self.tried[one.partition] = max(self.tried[one.partition], one.offset)
            try:
                said = member.client.commit(offsets=places, asynchronous=False) if places else []
            except ck.KafkaException as error:
                if error.args[0].code() not in REFUSED:
                    raise
                continue
            for one in said:
                if one.error is None:
                    self.committed[one.partition] = one.offset
                assert one.error is None or one.error.code() in REFUSED, one


def go_on(groups, check):
    """The members read and commit until `check` holds of every group."""
    rounds = count()

    def done():
        if next(rounds) % ROUNDS:
            return False
        for group in groups:
            group.commit()
        return all(map(check, groups))

    until([one for group in groups for one in group.members], done, LIMIT_S)


def coordinator(nodes, group):
    told = nodes.ask(FIND_COORDINATOR, 3, {"key": group, "key_type": 0})
    assert told["error_code"].upper() in AGAIN | {"NONE"}, told
    return told["node_id"]


@pytest.fixture
def nodes(tmp_path):
    settings = {
        "offsets.topic.num.partitions": "3", "penstock.io.processes": "1",
        "penstock.net.processes": "1",
        "group.consumer.heartbeat.interval.ms": "200",
        "group.consumer.min.heartbeat.interval.ms": "200",
    }  # fmt: skip
    with Nodes(tmp_path, settings=settings) as running:
        running.create(TOPIC, PARTITIONS)
        running.create(ASIDE)
        yield running


def test_groups_of_both_protocols_go_on_with_another_coordinator(nodes):
    victim = nodes.wait(lambda: max(coordinator(nodes, "classic"), 0), "one coordinates")
    nodes.wait(lambda: nodes.whole("__consumer_offsets", 3), "all nodes have the offsets")
    other = next(name for n in count() if coordinator(nodes, name := f"consumer-{n}") == victim)
    with Steady(nodes, TOPIC) as load:
        groups = [Group(nodes.bootstrap, "classic", "classic"),
                  Group(nodes.bootstrap, other, "consumer")]  # fmt: skip
        go_on(groups, Group.whole)
        go_on(groups, lambda one: len(one.committed) == PARTITIONS)
        for one in groups:
            one.commit_aside()
        before = [dict(one.committed) for one in groups]
        read = [{id(one): len(one.got) for one in group.members} for group in groups]
        nodes.kill(victim)
        go_on(groups, lambda one: all(
            one.committed[at] > offset for at, offset in before[groups.index(one)].items()
        ))  # fmt: skip
        assert victim not in {coordinator(nodes, one.name) for one in groups}
        for one in groups:
            one.join()
        go_on(groups, Group.whole)
        load.finish()
    written = set(load.acknowledged.values())
    go_on(groups, lambda one: one.read() == written)
    ends = {at: 1 + max(offset for p, offset in written if p == at) for at in range(PARTITIONS)}
    go_on(groups, lambda one: one.committed == ends)
    for group, committed, some in zip(groups, before, read, strict=True):
        for member in group.members:
            assert not [one for one in member.told if one.fatal()]
            assert not member.losses, "who took over knows the members"
            later = member.got[some.get(id(member), 0) :]
            again = [place for place in later if place[1] < committed[place[0]]]
            assert not again, "what was committed before the death is not read again"
            member.close()
        reader = ck.Consumer({"bootstrap.servers": nodes.bootstrap, "group.id": group.name})
        places = [ck.TopicPartition(TOPIC, at) for at in ends] + [ck.TopicPartition(ASIDE, 0)]
        *found, aside = reader.committed(places, LIMIT_S)
        assert {one.partition: one.offset for one in found} == ends
        assert aside.offset == FAR, "what was committed before the death is there"
        reader.close()
