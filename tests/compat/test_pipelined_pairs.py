"""Two requests sent together on one connection are served in the order in which they came: their
answers, and what they leave behind, are those of the same two sent one after the other."""

import itertools

import pytest

from tests.broker_process import Broker
from tests.differential.groups import BUSY, group_of, offsets
from tests.differential.registry import APIS, Script
from tests.differential.scene import Scene, Target
from tests.differential.scripts.classic_groups import being, joining, stable, sync
from tests.differential.scripts.consumer_groups import beat
from tests.differential.scripts.consumer_groups import joining as entering
from tests.differential.transactions import (
    add,
    adding,
    codes,
    ending,
    id_of,
    initialising,
    producing,
    rest,
    state,
    who,
    writer,
    written,
)

AGAIN = {"CONCURRENT_TRANSACTIONS", "NOT_ENOUGH_REPLICAS", *BUSY}
AT_THE_SAME_TIME = {("write elsewhere", "add"), ("commit", "write"), ("abort", "write")}
"""A batch may find its partition added by the request behind it. Behind the answer to an end a
partition takes batches of that transaction until its marker is there, as Kafka's does."""
TOLD = ("producer_epoch", "generation_id", "member_epoch", "committed_offset", "group_state")
HEARTBEAT = "ConsumerGroupHeartbeat"


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with Broker(folder / "data", settings) as broker:
        target = Target("penstock", (broker.host, broker.port))
        scene = Scene(target, Script("pairs", "Metadata", None, None), 12, "once")
        scene.shared = scene.topic(partitions=2), group_of(scene)
        yield scene
        scene.close()


def producer(s, number, rises, begun):
    """(requests by name, what to look at behind them) of a new producer. rises: its epoch does."""
    (topic, group), one = s.shared, writer(s, id_of(s, f"id-{number}"))
    if begun:
        add(s, one, topic, 0, version=5 if rises else 3)
    batches = {name: producing(s, one, topic, written(one, b"v"), 9, index)
               for index, name in enumerate(("write", "write elsewhere"))}  # fmt: skip
    offset = {**who(one), "group_id": group, "generation_id": -1, "topics": offsets(topic, (0, 5))}
    requests = {
        "go on": ("InitProducerId", 4, initialising(*one)),
        "take over": ("InitProducerId", 4, initialising(one[0])),
        "add": ("AddPartitionsToTxn", 3, adding(one, (topic, 1))),
        "add offsets": ("AddOffsetsToTxn", 3, {**who(one), "group_id": group}),
        **{name: ("Produce", 12 if rises else 11, asked) for name, asked in batches.items()},
        "commit offsets": ("TxnOffsetCommit", 5 if rises else 3, offset),
        "commit": ("EndTxn", 5 if rises else 4, ending(one)),
        "abort": ("EndTxn", 5 if rises else 4, ending(one, commit=False)),
    }

    def look():
        rest(s, one[0])
        found = state(s, one[0])
        topics = sorted((each["topic"], sorted(each["partitions"])) for each in found["topics"])
        return found["transaction_state"], found["producer_epoch"], topics

    return requests, look


def classic(s, number):
    topic, group = s.shared[0], group_of(s, f"classic-{number}")
    said = stable(s, group)
    member = said["member_id"]
    commit = {"group_id": group, "generation_id_or_member_epoch": said["generation_id"],
              "member_id": member, "topics": offsets(topic, (0, 5))}  # fmt: skip
    wanted = {"name": topic, "partition_indexes": [0]}
    requests = {
        "join": ("JoinGroup", 5, joining(group, member)),
        "sync": ("SyncGroup", 3, sync(group, said, (member, b"new"))),
        "beat": ("Heartbeat", 3, being(group, said)),
        "commit": ("OffsetCommit", 8, commit),
        "fetch": ("OffsetFetch", 7, {"group_id": group, "topics": [wanted]}),
        "leave": ("LeaveGroup", 3, {"group_id": group, "members": [{"member_id": member}]}),
        "describe": ("DescribeGroups", 5, {"groups": [group]}),
        "delete": ("DeleteGroups", 2, {"groups_names": [group]}),
    }

    def look():
        (found,) = s.call("DescribeGroups", groups=[group])["groups"]
        return found["group_state"], len(found["members"])

    return requests, look


def consumer(s, number):
    topic, group, member = s.shared[0], group_of(s, f"consumer-{number}"), f"member-{number}"
    epoch = s.call(HEARTBEAT, **entering(group, member, [topic]))["member_epoch"]
    commit = {"group_id": group, "generation_id_or_member_epoch": epoch, "member_id": member,
              "topics": offsets(topic, (0, 5))}  # fmt: skip
    asked = {"group_id": group, "member_id": member, "member_epoch": epoch,
             "topics": [{"name": topic, "partition_indexes": [0]}]}  # fmt: skip
    more = beat(group, member, epoch, subscribed_topic_names=[topic, "other"])
    requests = {
        "join": (HEARTBEAT, 1, entering(group, member, [topic])),
        "beat": (HEARTBEAT, 1, beat(group, member, epoch)),
        "subscribe": (HEARTBEAT, 1, more),
        "leave": (HEARTBEAT, 1, beat(group, member, -1)),
        "commit": ("OffsetCommit", 9, commit),
        "fetch": ("OffsetFetch", 9, {"groups": [asked]}),
        "describe": ("ConsumerGroupDescribe", 1, {"group_ids": [group]}),
        "delete": ("DeleteGroups", 2, {"groups_names": [group]}),
    }

    def look():
        (found,) = s.call("ConsumerGroupDescribe", group_ids=[group])["groups"]
        return found["group_state"], found["group_epoch"], len(found["members"])

    return requests, look


def told(answer):
    """What an answer says that is the same for every producer, group and member."""
    found = []
    for key, value in answer.items():
        if key.endswith("error_code") or key in TOLD:
            found.append((key, value))
        for inner in value if isinstance(value, list) else ():
            if isinstance(inner, dict):
                found += told(inner)
    return found


def play(s, made, names, together):
    """What both say, and what is there then. A client asks again while markers are pending."""
    requests, look = made
    asked = [(APIS[api], version, values) for api, version, values in map(requests.get, names)]
    link = s.connect()
    said = []
    for one in asked:
        link.send(*one)
        if not together:
            said.append(link.receive())
    said = said or [link.receive() for _ in asked]
    while codes(said[1]) & AGAIN:
        said[1] = link.ask(*asked[1])
    link.close()
    return [told(one) for one in said], look()


def both_ways(s, make):
    """Every ordered pair, together and apart."""
    names = list(make(next(NUMBERS))[0])
    for pair in set(itertools.product(names, names)) - AT_THE_SAME_TIME:
        apart = play(s, make(next(NUMBERS)), pair, together=False)
        assert play(s, make(next(NUMBERS)), pair, together=True) == apart, pair


NUMBERS = itertools.count()


@pytest.mark.parametrize("begun", [False, True], ids=["at rest", "open"])
@pytest.mark.parametrize("rises", [False, True], ids=["epoch stays", "epoch rises"])
def test_pairs_of_a_transactional_producer(scene, rises, begun):
    both_ways(scene, lambda number: producer(scene, number, rises, begun))


@pytest.mark.parametrize("member", [classic, consumer])
def test_pairs_of_a_member(scene, member):
    both_ways(scene, lambda number: member(scene, number))
