"""Control on a disk that another program fills: what frees room works, what needs it is refused
with a reason, nothing ends, and a start on a full disk serves what there is."""

from random import Random

import pytest
from kio.index import load_request_schema
from test_control_shell import Appliance, build, create, new

from appliance.base import errors, reserve
from appliance.base.errors import CannotServe, DiskFull
from appliance.base.reserve import ReservedDisk
from appliance.control.requests.refusals import refused
from appliance.ring.process_table import IOPROC, Peer
from appliance.wire import kraft_records as kraft
from appliance.wire.messages import decode_response, encode_request
from tests.seeds import each_seed
from tests.sim.disk import PAGE, SimDisk

MIB = 1 << 20
SECOND = 10**9
SETTINGS = {"penstock.disk.free.min.bytes": "1048576", "penstock.topic.trash.retention.ms": "0"}


class Full(Appliance):
    def __init__(self, path, capacity=64 * MIB):
        self.sim = SimDisk()
        self.sim.capacity = capacity
        self.sim.mkdir("/d")
        disk = ReservedDisk(self.sim, ["/d"])
        super().__init__(path, dict(SETTINGS), disk=disk, data_dir="/d")
        self.later()

    def later(self):
        self.now_ns += SECOND
        self.turn()

    def fill(self, leave=0):
        self.sim.foreign = 0
        self.sim.foreign = self.sim.free() - leave

    def make_room(self):
        self.sim.foreign = 0
        for _ in range(3):
            self.later()

    def reserve(self):
        return reserve.left(self.sim, "/d")

    def said(self):
        with open(self.fd, closefd=False) as file:
            file.seek(0)
            return file.read()


@pytest.fixture
def full(tmp_path):
    made = Full(tmp_path)
    yield made
    made.close()


def set_retention(appliance, value):
    entry = {"name": "retention.ms", "config_operation": 0, "value": value}
    resource = {"resource_type": 2, "resource_name": "a", "configs": [entry]}
    answer = appliance.ask(44, 1, resources=[resource], validate_only=False)
    return answer.responses[0]


def delete(appliance, name):
    topics = [{"name": name, "topic_id": None}]
    return appliance.ask(20, 6, topics=topics, timeout=1000).responses[0].error_code


def test_a_reserve_is_set_aside_while_there_is_room(full):
    assert full.reserve() == 2 * MIB
    full.fill()
    assert reserve.give_slice(full.sim, "/d")
    assert full.reserve() == 2 * MIB - reserve.SLICE
    full.make_room()
    assert full.reserve() == 2 * MIB


def test_a_full_disk_takes_no_topics_and_says_how_much_is_missing(full):
    create(full, new("a"))
    full.fill()
    full.later()
    [topic] = create(full, new("b")).topics
    assert topic.error_code == errors.KAFKA_STORAGE_ERROR
    assert "/d is nearly full: 0 MiB are free, 2 MiB more must be" in topic.error_message
    more = {"name": "a", "count": 3, "assignments": None}
    answer = full.ask(37, 3, topics=[more], timeout=1, validate_only=False)
    assert answer.results[0].error_code == errors.KAFKA_STORAGE_ERROR
    assert full.ensure("c") == errors.LEADER_NOT_AVAILABLE
    assert set(full.followed().image.topics_by_name) == {"a"}
    full.make_room()
    assert create(full, new("b")).topics[0].error_code == 0
    assert full.ensure("c") == 0


def test_what_frees_room_works_while_it_is_full(full):
    create(full, new("a"), new("b"))
    full.fill()
    full.later()
    assert set_retention(full, "1000").error_code == 0
    assert delete(full, "b") == 0
    assert full.followed().image.config(2, "a")["retention.ms"] == "1000"
    full.kill_control()
    assert set(full.followed().image.topics_by_name) == {"a"}


def test_without_any_room_a_change_is_refused_whole_and_control_lives(full):
    create(full, new("a"))
    end = full.control._quorum.log.end_offset
    full.fill()
    full.sim.unlink(f"/d/{reserve.RESERVE}")
    full.fill()
    for n in range(300):  # what is left of the last page
        answer = set_retention(full, str(10**14 + n))
        if answer.error_code:
            break
    assert answer.error_code == errors.KAFKA_STORAGE_ERROR
    assert "nearly full" in answer.error_message
    quorum = full.control._quorum
    log = quorum.log
    before = log.end_offset
    assert before >= end and quorum.image.applied_offset == before - 1
    assert delete(full, "a") == errors.KAFKA_STORAGE_ERROR
    full.make_room()
    assert delete(full, "a") == 0
    assert log.end_offset == before + 1  # the refused ones never came
    full.sim.process_death()
    full.kill_control()
    assert full.followed().image == full.control._quorum.image


@pytest.mark.parametrize("leave", range(4))
def test_a_start_on_a_full_disk_serves_and_changes_follow_when_there_is_room(full, leave):
    create(full, new("a"))
    full.sim.unlink(f"/d/{reserve.RESERVE}")
    full.sim.capacity = full.sim.used() + leave * PAGE
    full.sim.process_death()
    for _ in range(200):
        full.kill_control()
        assert set(full.followed().image.topics_by_name) == {"a"}
        if not full.control._leading.begun:
            break
    assert not full.control._leading.begun
    assert create(full, new("b")).topics[0].error_code == errors.KAFKA_STORAGE_ERROR
    full.sim.capacity = 64 * MIB
    full.make_room()
    assert full.control._leading.begun
    assert create(full, new("b")).topics[0].error_code == 0
    assert set(full.followed().image.topics_by_name) == {"a", "b"}


def test_a_first_start_on_a_full_disk_says_why_it_cannot_be(tmp_path):
    with pytest.raises(CannotServe, match="No space left on device"):
        Full(tmp_path, capacity=4 * PAGE)


@each_seed(25)
def test_whatever_finds_no_room_control_lives_and_what_it_answered_stays(full, seed):
    rng = Random(seed)
    there: set[str] = set()
    for number in range(60):
        if rng.random() < 0.4:
            full.fill(leave=rng.randint(0, 3) * PAGE)
            if rng.random() < 0.5 and full.reserve():
                full.sim.unlink(f"/d/{reserve.RESERVE}")
                full.fill(leave=rng.randint(0, 3) * PAGE)
        elif rng.random() < 0.4:
            full.make_room()
        name = f"t{number}"
        if rng.random() < 0.6:
            if create(full, new(name)).topics[0].error_code == 0:
                there.add(name)
        elif there:
            gone = rng.choice(sorted(there))
            if delete(full, gone) == 0:
                there.discard(gone)
        if rng.random() < 0.15:
            full.sim.process_death()
            full.kill_control()
        assert set(full.followed().image.topics_by_name) == there
    full.sim.foreign = 0
    full.make_room()
    assert create(full, new("last")).topics[0].error_code == 0
    full.sim.process_death()
    full.kill_control()
    assert set(full.followed().image.topics_by_name) == there | {"last"}


def test_a_deletion_that_finds_no_room_behind_its_note_is_refused_with_all_that_saw_it(full):
    create(full, new("a"))
    full.threads.held = True
    request = {"topics": [{"name": "a", "topic_id": None}], "timeout": 1000}
    body = encode_request(build(load_request_schema(20, 6), request))
    tokens = []
    for _ in range(2):  # the second one is told that there is no such topic
        tokens.append(full.forward(20, 6, body))
        full.turn()
    assert not full.control._quorum.image.topics_by_name
    full.sim.refusing["00000000000000000000.log", "write"] = 28
    full.threads.run()
    answers = full.answers()
    for token in tokens:
        [row] = decode_response(20, 6, answers[token][1]).responses
        assert row.error_code == errors.KAFKA_STORAGE_ERROR
    assert full.control._quorum.image.topics_by_name.keys() == {"a"}, "it was never deleted"
    full.sim.refusing.clear()
    full.threads.held = False
    full.make_room()
    assert delete(full, "a") == 0
    assert not full.followed().image.topics_by_name


def test_an_answer_of_which_nothing_came_true():
    rows = [
        {"name": "a", "error_code": 0, "error_message": None},
        {"name": "b", "error_code": 3, "error_message": "gone"},
    ]
    assert refused({"throttle_time": 0, "rows": rows}, "full") == {
        "throttle_time": 0,
        "rows": [{"name": "a", "error_code": 56, "error_message": "full"}, rows[1]],
    }


def test_the_log_takes_back_what_found_no_room(full):
    quorum = full.control._quorum
    log, path = quorum.log, "/d/__cluster_metadata-0/00000000000000000000.log"
    full.sim.unlink(f"/d/{reserve.RESERVE}")
    full.fill()
    big = kraft.ConfigRecord(resource_type=4, resource_name="", name="x", value="v" * 2 * PAGE)
    end, size = log.end_offset, full.sim.size(path)
    with pytest.raises(DiskFull):
        quorum.append([big], 1000)
    assert (log.end_offset, full.sim.size(path)) == (end, size)
    assert quorum.image.config(4, "") == {}


def test_that_an_io_process_found_no_room_is_looked_at_now(full):
    full.fill()
    full.turn()
    assert not full.control._room.low("/d"), "it looked just now"
    processes = full.control._seat.processes
    processes.set_without_room(Peer(IOPROC, 0), 1)
    full.turn()
    assert full.control._room.low("/d")
