"""I/O processes that stay away and folders without room, as control tells them."""

import pytest

from appliance.config.broker import BrokerConfig
from appliance.control.broker.crew import Crew
from appliance.control.broker.lifecycle import NEVER, State
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import LOST
from appliance.metadata.parts import PartitionImage, TopicImage
from appliance.ring.process_table import DRAINING, READY

US, OTHER = 1, 2


class Processes:
    """One I/O process of two is the one that dies."""

    def __init__(self):
        self.states = {0: READY, 1: READY}
        self.read = 10

    def state(self, peer):
        return self.states[peer.index]

    def applied(self, peer):
        return self.read


class Teller:
    def __init__(self):
        self.state, self.epoch = State.RUNNING, 5
        self.told, self.cordoned = [], []

    def assign(self, topic_id, partition, folder):
        self.told.append((topic_id, partition, folder))

    def cordon(self, folders):
        self.cordoned = list(folders)


class Said:
    def __init__(self):
        self.events = []

    def event(self, level, name, **fields):
        self.events.append(name)


class Story:
    def __init__(self):
        self.processes, self.teller, self.said = Processes(), Teller(), Said()
        self.full, self.lacking = [], set()
        config = BrokerConfig.of({"node.id": str(US), "broker.heartbeat.interval.ms": "1000"})
        self.crew = Crew(self.processes, 2, config, lambda: self.full, self.lacking, self.said)
        self.image = MetadataImage()
        self.topic(b"a" * 16, (US, OTHER), (US, OTHER), (OTHER, US), (OTHER, 3))
        self.topic(b"b" * 16, (US,), (US,))

    def topic(self, topic_id, *replicas):
        self.image.topics_by_id[topic_id] = TopicImage(
            "t", topic_id,
            [PartitionImage(index=at, leader=US, leader_epoch=0, partition_epoch=0, replicas=those,
                            isr=those, directories=(b"f" * 16,) * len(those))
             for at, those in enumerate(replicas)],
        )  # fmt: skip

    def look(self, now_ms):
        self.teller.told.clear()
        ready = self.crew.check_ioprocs(now_ms, self.teller, self.image)
        return ready, sorted(self.teller.told)


def test_one_that_is_soon_back_is_not_missed():
    story = Story()
    assert story.look(100) == (True, [])
    story.processes.states[0] = 0
    assert story.look(200) == (False, [])
    assert story.crew.due_ms == 250, "nobody tells when it is back"
    story.processes.states[0] = READY
    story.processes.read = 5
    assert story.look(900) == (False, []), "it does not know our registration yet"
    story.processes.read = 6
    assert story.crew.due_ms == 950, "nor when it knows that"
    assert story.look(1_200) == (True, [])
    assert story.crew.due_ms == NEVER
    assert story.said.events == []


def test_what_one_that_stays_away_has_is_lost_where_others_have_it_too():
    story = Story()
    story.look(0)
    story.processes.states[0] = 0
    _, of_the_first = story.look(1_000)
    assert story.look(1_999) == (False, [])
    assert story.look(2_000)[1] == of_the_first, "again while the metadata do not say so"
    story.processes.states = {0: READY, 1: DRAINING}
    story.look(2_100)
    _, of_the_second = story.look(3_100)
    told = [(b"a" * 16, at, LOST) for at in range(3)]
    assert sorted(of_the_first + of_the_second) == told
    assert of_the_first and of_the_second
    assert story.said.events == ["ioproc-away", "ioproc-back", "ioproc-away"]


@pytest.mark.parametrize("state", [State.NEW, State.FENCED, State.LEAVING])
def test_nobody_waits_for_a_node_that_is_not_in_use(state):
    """It starts: its logs are being opened. Or it ends."""
    story = Story()
    story.teller.state = state
    story.processes.states[0] = 0
    assert story.look(60_000) == (False, [])


def test_folders_without_room_are_cordoned():
    story = Story()
    story.full = [b"f" * 16]
    story.look(0)
    assert story.teller.cordoned == [b"f" * 16]


def test_what_has_no_row_here_is_led_by_others():
    """Another node, with a larger partition table, gave this one more than fits."""
    story = Story()
    story.lacking |= {(b"a" * 16, 1), (b"b" * 16, 0), (b"gone" * 4, 0)}
    ready, told = story.look(0)
    assert ready, "what it has, it serves"
    assert told == [(b"a" * 16, 1, LOST)], "nobody else has b"
    assert story.crew.due_ms == 1_000
    assert story.look(999)[1] == []
    assert story.look(1_000)[1] == [(b"a" * 16, 1, LOST)], "until the metadata say so"
    partitions = story.image.topics_by_id[b"a" * 16].partitions
    partitions[1] = partitions[1]._replace(directories=(LOST, b"f" * 16))
    assert story.look(2_000)[1] == []
