"""The process beside the loop that talks to the store: what it does, what it answers when it
cannot, and that each question has one answer whatever becomes of it."""

import os
import select
import signal

import pytest

from appliance.base.object_store import open_store
from appliance.ioproc.remote import failures
from appliance.ioproc.remote.link import (
    RemoteLink,
    ask_copy,
    ask_delete,
    ask_delete_partition,
    ask_file,
)
from appliance.remotelog.objects import (
    KINDS,
    LEADER_EPOCHS,
    LOG,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    RemoteObjects,
)
from appliance.remotelog.records import (
    RemoteLogSegmentMetadataRecord,
    RemoteSegmentId,
    RemoteTopicPartition,
    SegmentLeaderEpoch,
)
from tests.bucket_server import serving

TOPIC_ID = bytes(range(16))
BYTES = bytes(range(256)) * 8192  # two pieces
SIZE = len(BYTES)
FAST = 1e12


def segment(number=0, size=SIZE):
    return RemoteLogSegmentMetadataRecord(
        remote_log_segment_id=RemoteSegmentId(
            topic_id_partition=RemoteTopicPartition(name="t", id=TOPIC_ID, partition=3),
            id=bytes([number]) * 16,
        ),
        start_offset=10 * number,
        end_offset=10 * number + 9,
        broker_id=0,
        max_timestamp_ms=0,
        event_timestamp_ms=0,
        segment_leader_epochs=(SegmentLeaderEpoch(leader_epoch=0, offset=10 * number),),
        segment_size_in_bytes=size,
        custom_metadata=None,
        remote_log_segment_state=0,
    )


class Asker:
    """A link, the files that it copies, and waiting for answers by its bell."""

    def __init__(self, url, folder):
        self.link = RemoteLink(url, 2, 2)
        self.url = url
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.paths = {}
        for kind in (LOG, OFFSET_INDEX, TIME_INDEX):
            path = folder / kind
            path.write_bytes(BYTES if kind == LOG else kind.encode())
            self.paths[kind] = str(path)
        self.data = {PRODUCER_SNAPSHOT: b"snapshot", LEADER_EPOCHS: b"epochs"}

    def ask(self, *questions):
        """Answers by the number of the question."""
        for number, question in enumerate(questions):
            self.link.ask_store((number,), question)
        return self.wait(len(questions))

    def wait(self, count):
        found = []
        bell = select.poll()
        bell.register(self.link.fd, select.POLLIN)
        while len(found) < count:
            assert bell.poll(60_000), f"{len(found)} of {count} answers came"
            self.link.hush()
            found += self.link.take_answers()
        return [answer for _, answer in sorted((one.tag, one) for one in found)]

    @property
    def objects(self):
        """What the store has, past the process."""
        return RemoteObjects(open_store(self.url))

    def copy(self, one):
        return ask_copy(one, self.paths, self.data, FAST)


@pytest.fixture(params=["folder", "bucket"])
def asker(request, tmp_path, monkeypatch):
    if request.param == "folder":
        made = Asker(f"file://{tmp_path}/remote", tmp_path / "local")
        yield made
        made.link.close()
        return
    with serving(monkeypatch) as url:
        made = Asker(url, tmp_path / "local")
        yield made
        made.link.close()


def test_a_segment_goes_there_whole(asker):
    [copied] = asker.ask(asker.copy(segment()))
    assert (copied.failure, copied.fields) == ("", {"bytes": len(BYTES)})
    objects = asker.objects
    assert objects.fetch_range(segment(), 0, SIZE) == BYTES
    for kind, held in ((OFFSET_INDEX, b"index"), (LEADER_EPOCHS, b"epochs")):
        assert objects.fetch_index(segment(), kind) == held


def test_what_is_deleted_is_gone_and_its_neighbour_is_not(asker):
    asker.ask(asker.copy(segment(0)), asker.copy(segment(1)))
    assert [one.failure for one in asker.ask(ask_delete(segment(0)), ask_delete(segment(0)))] == [
        "", "",
    ]  # fmt: skip
    left = asker.objects.list_segments(TOPIC_ID, 3)
    assert left.whole == {(10, segment(1).remote_log_segment_id.id): SIZE}
    assert left.orphans == []
    [swept] = asker.ask(ask_delete_partition(TOPIC_ID, 3, 1))
    assert swept.fields == {"objects": len(KINDS) - 1}
    left = asker.objects.list_segments(TOPIC_ID, 3)
    assert (left.whole, left.orphans) == ({}, [])


def test_a_refusal_is_one_answer_and_says_what_refused(tmp_path):
    asker = Asker(f"file://{tmp_path}/remote", tmp_path / "local")
    try:
        asker.ask(asker.copy(segment()))
        log = os.path.join(
            tmp_path, "remote", TOPIC_ID.hex(), "3", f"{0:020d}-{bytes(16).hex()}.log"
        )
        os.truncate(log, 100)
        into = str(asker.folder / "cached")
        short, away, late, odd, fine = asker.ask(
            ask_file(segment(), LOG, (50, 1050), into, FAST),
            ask_file(segment(7), LOG, (0, 10), into, FAST),
            asker.copy(segment(2, size=len(BYTES) + 1)),
            {"op": "no such thing"},
            ask_delete(segment(7)),
        )
        assert (short.kind, away.kind, late.kind, odd.kind, fine.kind) == (
            failures.MISSING, failures.STORE, failures.LOCAL, failures.FAULT, "",
        )  # fmt: skip
        assert "50 bytes from 50 on" in short.failure and "too early" in late.failure
        assert "No such file" in away.failure and "no such thing" in odd.failure
        os.unlink(asker.paths[LOG])
        [gone] = asker.ask(asker.copy(segment(3)))
        assert gone.kind == failures.LOCAL and asker.paths[LOG] in gone.failure
    finally:
        asker.link.close()


def test_a_store_that_cannot_be_opened_refuses_each_question(tmp_path):
    asker = Asker("ftp://somewhere", tmp_path / "local")
    try:
        first, second = asker.ask(ask_delete(segment()), ask_delete(segment()))
        assert first.kind == second.kind == failures.STORE
        assert "ftp://somewhere is neither file:///FOLDER nor s3://" in first.failure
    finally:
        asker.link.close()


def test_the_process_dies_and_each_question_has_its_answer(tmp_path):
    """One that waits for its turn to send is answered as not done; the next one starts a process
    anew."""
    asker = Asker(f"file://{tmp_path}/remote", tmp_path / "local")
    try:
        asker.ask(ask_delete(segment()))
        asker.link.ask_store((0,), ask_copy(segment(), asker.paths, asker.data, 1000.0))
        asker.link.ask_store((1,), ask_delete(segment(9)))
        [first] = asker.wait(1)  # the copy is under way by then
        assert first.tag == (1,)
        asker.link.kill()
        [cut] = asker.wait(1)
        assert (cut.tag, cut.kind) == ((0,), failures.PROCESS)
        assert cut.failure == f"the process ended: status {-signal.SIGKILL}"
        [again] = asker.ask(asker.copy(segment()))
        assert again.failure == ""
        assert asker.link.outstanding() == 0
    finally:
        asker.link.close()


def test_a_question_that_cannot_be_sent_is_answered(tmp_path):
    asker = Asker(f"file://{tmp_path}/remote", tmp_path / "local")
    try:
        odd, fine = asker.ask({"op": object()}, ask_delete(segment()))
        assert (odd.kind, fine.failure) == (failures.FAULT, "")
        assert "TypeError" in odd.failure
    finally:
        asker.link.close()


def test_an_end_in_the_middle_leaves_no_process(tmp_path):
    asker = Asker(f"file://{tmp_path}/remote", tmp_path / "local")
    asker.link.ask_store((0,), ask_copy(segment(), asker.paths, asker.data, 1000.0))
    asker.ask(ask_delete(segment(9)))
    child = asker.link._process.pid
    asker.link.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
