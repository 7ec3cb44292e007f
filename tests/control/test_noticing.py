"""What another leader decided comes true only behind the note of it: until that is on the disk the
metadata of this node ends before."""

from itertools import count

import pytest
from sim.disk import SimDisk

from appliance.control.deletion.deletion_barrier import NOWHERE
from appliance.control.quorum.metadata_log import open_log
from appliance.control.quorum.metadata_quorum import VotingSetup, open_quorum
from appliance.control.quorum.snapshots import SnapshotLimits
from appliance.metadata.follower import Follower
from appliance.quorum.voters import Voter
from appliance.ring.partition_table import PartitionTable
from appliance.wire import kraft_records as kraft

LIMITS = SnapshotLimits(snapshot_bytes=1 << 30, snapshot_ms=0, segment_bytes=1 << 20)
A, B = (bytes([n]) * 16 for n in (1, 2))


def opened(voters=()):
    disk = SimDisk()
    disk.mkdir("/d")
    disk.sync_dir("/")
    log = open_log(disk, "/d", LIMITS.segment_bytes, 1)
    table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(16))), 16)
    follower = Follower(disk, "/d", table)
    return open_quorum(disk, 1, log, follower, LIMITS, VotingSetup(tuple(map(Voter, voters))))


@pytest.fixture
def leader():
    """Of another machine: its log is what is agreed."""
    one = opened()
    one.elected(1)
    one.activate(1)
    one.append([kraft.FeatureLevelRecord(name="metadata.version", feature_level=25)], 1)
    return one


class Follows:
    """A node that fetches that log. told: what was to be noted."""

    def __init__(self, leader):
        self.leader = leader
        self.quorum = opened((1, 2, 3))
        self.told = []
        self.numbers = count(1)
        self.quorum.deletions.notice = self.notice

    def notice(self, decided, image):
        gone = [
            image.topics_by_id[one.topic_id].name
            for one in decided.records
            if isinstance(one, kraft.RemoveTopicRecord)
        ]
        self.told.append((gone, decided.end, decided.at_ms))
        return next(self.numbers) if gone else 0

    def fetch(self):
        """Everything, on the disk and agreed."""
        log = self.quorum.log
        batches = self.leader.log.read(log.end_offset, self.leader.log.end_offset)
        data = b"".join(bytes(batch) for _, batch in batches)
        self.quorum.follow(data, self.leader.replica.epoch, 1)
        log.sync()
        self.quorum.replica.high_watermark = log.end_offset

    def advance(self):
        while self.quorum.behind:
            self.quorum.advance()

    @property
    def topics(self):
        return set(self.quorum.images.committed.topics_by_name)


def make(leader, name, topic_id, at_ms=1):
    leader.append([kraft.TopicRecord(name=name, topic_id=topic_id)], at_ms)


def remove(leader, topic_id, at_ms):
    leader.append([kraft.RemoveTopicRecord(topic_id=topic_id)], at_ms)


def test_a_removal_is_replayed_when_its_note_is_on_the_disk(leader):
    node = Follows(leader)
    make(leader, "a", A)
    make(leader, "b", B)
    remove(leader, A, 700)
    end = leader.log.end_offset
    make(leader, "c", bytes(15) + b"\3")
    remove(leader, B, 800)
    node.fetch()
    node.advance()
    assert node.topics == {"a", "b"}
    assert node.quorum.committed == end - 1
    assert node.told[-1] == (["a"], end, 700)
    assert not node.quorum.behind, "nothing is to be done before it is written"
    node.quorum.noted(1, 1)
    node.advance()
    assert node.topics == {"b", "c"}
    assert node.told[-1] == (["b"], leader.log.end_offset, 800)
    node.quorum.noted(2, 1)
    node.advance()
    assert node.topics == {"c"}
    assert node.quorum.committed == leader.log.end_offset
    assert [gone for gone, _, _ in node.told if gone] == [["a"], ["b"]], "each once"


def test_removals_that_follow_each_other_share_a_note(leader):
    node = Follows(leader)
    ids = [bytes([n]) * 16 for n in range(1, 5)]
    for topic_id in ids:
        make(leader, str(topic_id[0]), topic_id)
    node.numbers = iter([1, 1, 1, 2])
    for topic_id in ids[:3]:
        remove(leader, topic_id, 700)
    make(leader, "between", A[::-1][:15] + b"x")
    remove(leader, ids[3], 800)
    node.fetch()
    node.advance()
    assert [gone for gone, _, _ in node.told if gone] == [["1"], ["2"], ["3"]]
    assert node.topics == {"1", "2", "3", "4"}
    node.quorum.noted(1, 1)
    node.advance()
    assert node.topics == {"4", "between"}
    node.quorum.noted(2, 1)
    node.advance()
    assert node.topics == {"between"}
    assert node.quorum.committed == leader.log.end_offset


def test_what_is_cut_off_is_waited_for_no_more_and_what_comes_instead_is_told(leader):
    node = Follows(leader)
    make(leader, "a", A)
    node.fetch()
    node.advance()
    kept, image = leader.log.end_offset, node.quorum.images.committed
    remove(leader, A, 700)
    node.fetch()
    node.quorum.replica.high_watermark = kept  # it will never be agreed
    [(header, _)] = node.quorum.log.read(kept, kept + 1)
    for told in (1, 2):
        node.quorum.deletions.check_batch(header, [kraft.RemoveTopicRecord(topic_id=A)], image)
        assert node.quorum.deletions.limit == kept
        assert [gone for gone, _, _ in node.told if gone] == [["a"]] * told
        if told == 1:
            node.quorum.truncate(kept, 1)
            assert node.quorum.deletions.limit == NOWHERE


def test_who_leads_next_notes_what_its_predecessor_left(leader):
    node = Follows(leader)
    make(leader, "a", A)
    node.fetch()
    node.advance()
    before = leader.log.end_offset
    remove(leader, A, 700)
    node.fetch()
    node.quorum.replica.high_watermark = before  # nobody knows yet that it is agreed
    node.quorum._over_the_log()
    assert node.told[-1] == (["a"], before + 1, 700)
    assert set(node.quorum.image.topics_by_name) == set()
    node.quorum.replica.high_watermark = before + 1
    assert not node.quorum.behind
    node.quorum.noted(1, 1)
    assert node.quorum.behind
    node.quorum.advance()
    assert node.topics == set()
