"""Endings on their way into partitions that other nodes lead: what is asked of whom, and what
becomes of it when nodes refuse, die, or leadership moves."""

from random import Random

import pytest
from test_endings import HOMES, STORAGE, TOPIC_ID, World, indexes

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.runtime.call import NEVER
from appliance.ioproc.coordination.marker_sender import (
    FIRST_REST_MS,
    LONGEST_REST_MS,
    MOST_SENT,
    SHARE,
)
from appliance.ioproc.coordination.remote_markers import VERSIONS, RemoteMarkers
from appliance.wire import kraft_records as kraft
from appliance.wire import messages
from appliance.wire.build import build, response
from tests.alone import Nobody
from tests.seeds import each_seed

KEY = 27
LOST = PeerError(errors.NETWORK_EXCEPTION, "it was closed")
NOT_LEADER = errors.NOT_LEADER_OR_FOLLOWER


class Nodes(Nobody):
    """Other nodes: what each was asked, and is still to answer. registered: who can be asked."""

    def __init__(self):
        self.asked = {}  # by node: (request, done)
        self.registered = {2, 3}

    def ask_peer(self, node, api_key, versions, message, done, timeout_ms):
        assert node not in self.asked and api_key == KEY
        for version in versions:
            built = build(messages.request_type(KEY, version), message)
            request = messages.decode_request(KEY, version, messages.encode_request(built))
        if node in self.registered:
            self.asked[node] = request, done
        return node in self.registered

    def partitions(self, node):
        """Indexes of what it was asked for."""
        request, _ = self.asked[node]
        return [n for m in request.markers for topic in m.topics for n in topic.partition_indexes]

    def answer(self, node, code=errors.NONE, codes=None):
        """It says this of each partition."""
        request, done = self.asked.pop(node)
        told = [
            {
                "producer_id": marker.producer_id,
                "topics": [
                    {
                        "name": topic.name,
                        "partitions": [
                            {"partition_index": n, "error_code": (codes or {}).get(n, code)}
                            for n in topic.partition_indexes
                        ],
                    }
                    for topic in marker.topics
                ],
            }
            for marker in request.markers
        ]
        done(response(KEY, VERSIONS[-1], {"markers": told}))

    def lose(self, node):
        """The connection is gone."""
        self.asked.pop(node)[1](LOST)


class Cluster(World):
    """This is node 1; nodes 2 and 3 lead what `leaders` says."""

    def __init__(self, leaders, partitions=8):
        self.nodes = Nodes()
        self.image = None
        super().__init__(partitions, leaders=leaders, away=RemoteMarkers(1, self.nodes))
        self.image = self.endings._image

    def move(self, leader, *partitions):
        for index in partitions:
            record = kraft.PartitionChangeRecord(
                partition_id=index, topic_id=TOPIC_ID, leader=leader, isr=(1,)
            )
            self.image.apply(self.image.applied_offset + 1, record)
        self.endings.follow(self.image)

    def written(self):
        return sorted(self.told.get("owner", []))


def test_markers_go_to_the_nodes_that_lead_and_to_homes_here():
    world = Cluster({0: 2, 1: 3, 2: 2})
    world.begin(0, 1, 2, 3)
    here = world.turn()
    assert sorted(n for found in here.values() for n in indexes(found)) == [3]
    assert (world.nodes.partitions(2), world.nodes.partitions(3)) == ([0, 2], [1])
    (marker,) = world.nodes.asked[2][0].markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (77, 5, True)
    assert (marker.coordinator_epoch, marker.transaction_version) == (3, 2)
    for home, found in here.items():
        world.answer(home, found)
    world.turn()
    world.nodes.answer(2)
    world.turn()
    assert world.written() == [0, 2, 3] and world.endings.under_way == 1
    world.nodes.answer(3)
    world.turn()
    assert world.written() == [0, 1, 2, 3]
    assert world.endings.under_way == 0 and world.endings.due_ms == NEVER


def test_what_comes_while_a_node_is_asked_goes_together_in_the_next_request():
    world = Cluster(dict.fromkeys(range(8), 2))
    world.begin(0, number=1)
    world.turn()
    world.begin(1, owner="another", number=2)
    world.begin(2, owner="third", number=3, commit=False)
    world.turn()
    assert world.nodes.partitions(2) == [0] and world.endings.due_ms == NEVER
    world.nodes.answer(2)
    world.turn()
    assert sorted(world.nodes.partitions(2)) == [1, 2]
    assert len(world.nodes.asked[2][0].markers) == 2, "each ending has its own"


@pytest.mark.parametrize("how", ["refused", "lost", "not registered"])
def test_a_node_that_does_not_write_is_asked_again_with_patience(how):
    world = Cluster({0: 2})
    if how == "not registered":
        world.nodes.registered.clear()
    world.begin(0)
    world.turn()
    if how == "refused":
        world.nodes.answer(2, NOT_LEADER)
    elif how == "lost":
        world.nodes.lose(2)
    world.nodes.registered.add(2)
    world.turn()
    assert not world.nodes.asked and world.told == {}
    assert world.endings.due_ms == world.now + FIRST_REST_MS
    world.turn(FIRST_REST_MS)
    world.nodes.answer(2)
    world.turn()
    assert world.written() == [0] and world.endings.due_ms == NEVER


def test_who_is_fenced_there_needs_no_marker():
    world = Cluster({0: 2})
    world.begin(0)
    world.turn()
    world.nodes.answer(2, errors.INVALID_PRODUCER_EPOCH)
    world.turn()
    assert world.written() == [0] and world.refused


def test_what_was_sent_is_asked_of_the_next_leader_at_once():
    world = Cluster({0: 2, 1: 2})
    world.begin(0, 1)
    world.turn()
    world.move(3, 0)
    world.move(1, 1)
    here = world.turn()
    assert world.nodes.partitions(3) == [0]
    assert [n for found in here.values() for n in indexes(found)] == [1]
    world.nodes.answer(2)  # it may have been written there, and nobody knows whether it stays
    world.turn()
    assert world.told == {}
    world.nodes.answer(3)
    for home, found in here.items():
        world.answer(home, found)
    world.turn()
    assert world.written() == [0, 1]


def test_what_is_queued_here_goes_where_the_leader_went():
    world = Cluster({})
    for home in range(HOMES):
        world.endings.changed(home, up=False)
    world.begin(0, 1)
    world.turn()
    world.move(2, 0, 1)
    for home in range(HOMES):
        world.endings.changed(home, up=True)
    assert not any(world.turn().values())
    world.turn()
    assert sorted(world.nodes.partitions(2)) == [0, 1]


def test_without_a_leader_it_waits_for_one():
    world = Cluster({0: -1})
    world.begin(0)
    world.turn()
    assert not world.nodes.asked and world.endings.due_ms == world.now + FIRST_REST_MS
    world.move(3, 0)
    world.turn(LONGEST_REST_MS)
    assert world.nodes.partitions(3) == [0]


def test_a_topic_that_is_deleted_elsewhere_needs_no_marker():
    world = Cluster({0: 2, 1: -1})
    world.begin(0, 1)
    world.turn()
    world.nodes.answer(2, errors.UNKNOWN_TOPIC_OR_PARTITION)
    world.turn()
    assert world.told == {}
    world.image.apply(world.image.applied_offset + 1, kraft.RemoveTopicRecord(topic_id=TOPIC_ID))
    world.endings.follow(world.image)
    world.turn(LONGEST_REST_MS)
    world.turn()
    assert world.written() == [0, 1] and world.endings.under_way == 0


def test_a_dropped_coordinator_sends_nothing_more():
    world = Cluster({0: 2, 1: 3})
    world.begin(0, 1)
    world.endings.forget_owner("owner")
    world.turn()
    assert not world.nodes.asked
    world.begin(0, 1)
    world.turn()
    world.endings.forget_owner("owner")
    world.nodes.answer(2)
    world.nodes.lose(3)
    world.turn()
    assert world.told == {} and world.endings.due_ms == NEVER


def test_a_large_ending_goes_in_shares_wherever_its_partitions_move():
    many = 3 * SHARE
    world = Cluster(dict.fromkeys(range(many), 2), partitions=many)
    world.begin(*range(many))
    world.turn()
    assert len(world.nodes.partitions(2)) == SHARE
    world.move(3, *range(many))
    for _ in range(many):
        world.turn()
        if 3 not in world.nodes.asked:
            break
        assert len(world.nodes.partitions(3)) <= MOST_SENT
        world.nodes.answer(3)
    assert world.written() == list(range(many))


class Moving(Cluster):
    """Everything moves all the time. truth: (ending, partition) that have their marker."""

    def __init__(self, rng):
        leaders = {n: rng.choice((-1, 1, 2, 3)) for n in range(8)}
        super().__init__(leaders)
        self.rng = rng
        self.inbox = {home: [] for home in range(HOMES)}

    def step(self):
        rng = self.rng
        what = rng.random()
        if what < 0.2:
            self.move(rng.choice((-1, 1, 2, 3)), rng.randrange(8))
        elif what < 0.5 and self.nodes.asked:
            node = rng.choice(sorted(self.nodes.asked))
            codes = {
                n: STORAGE if rng.random() < 0.2 else NOT_LEADER
                for n in range(8)
                if self.image.partition("t", n).leader != node or rng.random() < 0.2
            }
            if rng.random() < 0.2:
                self.nodes.lose(node)
            else:
                self.nodes.answer(node, codes=codes)
        elif what < 0.7:
            self.hear(refusing=0.2)
        for home, found in self.turn(rng.choice((0, 1, 60))).items():
            self.inbox[home] += found

    def hear(self, refusing):
        for home, found in self.inbox.items():
            self.inbox[home] = []
            for one in found:
                led = self.image.partition("t", *indexes([one])).leader == 1
                code = STORAGE if self.rng.random() < refusing else errors.NONE
                self.answer(home, [one], code if led else NOT_LEADER)


@each_seed(40)
def test_every_marker_is_told_once_however_leadership_moves(seed):
    rng = Random(seed)
    world = Moving(rng)
    wanted = {}
    for number in range(12):
        where = rng.sample(range(8), rng.randint(1, 8))
        wanted[f"owner {number}"] = sorted(where)
        world.begin(*where, owner=f"owner {number}", number=number, producer=number)
        for _ in range(rng.randint(0, 12)):
            world.step()
    for index in range(8):
        if world.image.partition("t", index).leader < 0:
            world.move(2, index)
    for _ in range(200):
        for node in sorted(world.nodes.asked):
            world.nodes.answer(node)
        world.hear(refusing=0)
        for home, found in world.turn(LONGEST_REST_MS).items():
            world.inbox[home] += found
    assert {owner: sorted(told) for owner, told in world.told.items()} == wanted
    assert world.endings.under_way == 0
