"""Three appliances agree on their metadata: one leads, all have the same log, and who comes back
from the dead follows."""

import time

import pytest

from appliance.base.os_disk import OsDisk
from appliance.control.metadata_log import batch_of, open_log
from appliance.metadata.record_versions import encode
from appliance.observer.door import Observer
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import NewRecord
from appliance.wire.batch_header import read_header
from tests.broker_process import KAFKA
from tests.cluster.nodes import Nodes

pytestmark = pytest.mark.skipif(KAFKA, reason="it looks into the tables of the appliance")

LOG = "__cluster_metadata"
CREATE_TOPICS, DESCRIBE_QUORUM = 19, 55


class Quorum(Nodes):
    """As far as the metadata log goes."""

    def start(self, *numbers):
        for number in numbers or tuple(self.all):
            self.all[number].start(wait=False)
        for number in numbers or tuple(self.all):
            self.all[number].wait_ready()
        return self

    def table(self, number):
        return Observer(str(self.all[number].data)).tables.processes

    def leader(self):
        """(node, epoch) in which all who live agree."""
        told = {self.table(number).leader for number in self.living}
        (leader,) = told if len(told) == 1 else [(-1, 0)]
        return leader if leader[0] in self.living else None

    def agreed(self):
        """Where the metadata ends, when all who live say the same."""
        ends = {self.table(number).metadata_offset for number in self.living}
        return ends.pop() if len(ends) == 1 else None

    def change(self, topic):
        """A change of the metadata that is answered; whoever leads."""
        values = {"timeout": 10_000, "topics": [
            {"name": topic, "num_partitions": 1, "replication_factor": 1, "assignments": [],
             "configs": []}
        ]}  # fmt: skip

        def done():
            leader = self.leader()
            if leader is None:
                return False
            (told,) = self.ask(CREATE_TOPICS, 5, values, leader[0])["topics"]
            return told["error_code"].upper() in ("NONE", "TOPIC_ALREADY_EXISTS")

        self.wait(done, f"{topic} is there")

    def described(self, number):
        topic = {"topic_name": LOG, "partitions": [{"partition_index": 0}]}
        answer = self.ask(DESCRIBE_QUORUM, 2, {"topics": [topic]}, number)
        return answer["topics"][0]["partitions"][0], answer["nodes"]

    def same(self):
        """The logs of all who live, as far as is agreed, byte by byte."""
        end = self.wait(self.agreed, "all know what is agreed")
        logs = {number: below(self.log_bytes(number, LOG), end) for number in self.living}
        assert len(set(logs.values())) == 1, {number: len(log) for number, log in logs.items()}
        return end


def below(log, end):
    at = 0
    while at < len(log) and read_header(log, at).base_offset < end:
        at += read_header(log, at).size
    return log[:at]


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    with Quorum(tmp_path_factory.mktemp("quorum")) as quorum:
        yield quorum


def test_one_leads_and_all_have_the_same(quorum):
    leader, epoch = quorum.wait(quorum.leader, "one leads")
    quorum.change("a")
    assert quorum.same() > 0
    assert quorum.leader() == (leader, epoch), "nobody disturbs a leader"

    def level():
        row, _ = quorum.described(leader)
        ends = {one["log_end_offset"] for one in row["current_voters"]}
        return row if ends == {row["high_watermark"]} else None

    row = quorum.wait(level, "the leader sees that all have everything")
    assert (row["leader_id"], row["leader_epoch"]) == (leader, epoch)
    assert [one["replica_id"] for one in row["current_voters"]] == [1, 2, 3]
    assert not row["observers"]
    now_ms = time.time() * 1000
    assert all(
        now_ms - 60_000 < one["last_caught_up_timestamp"] <= one["last_fetch_timestamp"] <= now_ms
        for one in row["current_voters"]
    )
    _, nodes = quorum.described(leader)
    ports = {one["node_id"]: one["listeners"][0]["port"] for one in nodes}
    assert ports == {place.number: place.controller_port for place in quorum.places}


def test_another_leads_when_the_leader_is_killed_and_who_comes_back_has_its_tail_cut_off(quorum):
    quorum.change("b")
    end = quorum.same()
    dead, epoch = quorum.leader()
    quorum.kill(dead)
    leads, later = quorum.wait(quorum.leader, "another one leads")
    assert leads != dead and later > epoch
    quorum.change("c")
    leave_behind(quorum.all[dead], 3)
    quorum.start(dead)
    quorum.wait(lambda: quorum.leader() and quorum.agreed(), "it follows")
    assert quorum.same() > end
    assert "metadata-truncated" in quorum.all[dead].output()
    assert quorum.leader() == (leads, later), "who comes back disturbs nobody"


def leave_behind(node, count):
    """Records at the end of its log that nobody else has, of the epoch in which it was last."""
    log = open_log(OsDisk(), str(node.files), 1 << 20, 1)
    for _ in range(count):
        value = encode(kraft.NoOpRecord(), 30)
        log.append(batch_of([NewRecord(1, None, value)], log.last_epoch), log.last_epoch, 1)
    log.sync()
    log.close()


def test_a_leader_that_ends_in_order_has_a_successor_before_it_is_gone(quorum):
    before, epoch = quorum.wait(quorum.leader, "one leads")
    assert quorum.stop(before) == 0
    after, later = quorum.wait(quorum.leader, "another one leads")
    assert after != before and later == epoch + 1


def test_all_come_back_with_what_was_agreed(quorum):
    quorum.change("e")
    end = quorum.same()
    for number in quorum.living:
        quorum.kill(number)
    quorum.start()
    quorum.wait(quorum.leader, "one leads")
    assert quorum.same() > end
    (told,) = quorum.ask(3, 9, {"topics": [{"name": "e"}], "allow_auto_topic_creation": False})[
        "topics"
    ]
    assert told["error_code"].upper() == "NONE"
