"""What control does while a sync or a snapshot takes long: it decides on, and tells nobody of what
a power cut could take back. Jobs end when the test says so."""

import pytest
from kio.index import load_request_schema
from test_control_shell import CALLER, CTL, Appliance, build, create, new

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.metadata import checkpoint
from appliance.metadata.trash import TRASH_FILE
from appliance.ring.messages import ENSURE_TOPIC
from appliance.ring.process_table import CONTROL
from appliance.shell.loop import STOP
from appliance.wire.messages import decode_response, encode_request

SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "2000"}


@pytest.fixture
def appliance(tmp_path):
    one = Appliance(tmp_path)
    one.threads.held = True
    yield one
    one.close()


def ensure(appliance, name):
    appliance.tokens += 1
    writer = appliance.net.writer(CONTROL, 0)
    writer.push_with_payload(
        ENSURE_TOPIC, 0, 0, appliance.tokens, e=len(CALLER), payload=CALLER + name
    )
    return appliance.tokens


def answered(appliance):
    """Tokens and codes of what has come since the last call."""
    return {token: code for token, (code, _) in appliance.answers().items()}


def test_requests_are_decided_while_a_sync_runs_and_answered_when_theirs_has_ended(appliance):
    before = appliance.table.metadata_offset
    first = ensure(appliance, b"a")
    assert answered(appliance) == {}
    assert len(appliance.threads.jobs) == 1
    second, again = ensure(appliance, b"b"), ensure(appliance, b"a")
    assert answered(appliance) == {}, "the loop goes on, but b is not durable"
    assert appliance.control._quorum.image.topics_by_name.keys() >= {"a", "b"}
    assert appliance.table.metadata_offset == before
    assert len(appliance.threads.jobs) == 1, "one sync at a time"
    appliance.threads.run()
    assert answered(appliance) == {first: errors.NONE}
    assert appliance.followed().image.topics_by_name.keys() == {"a"}
    assert len(appliance.followed().handles) == 1
    appliance.threads.run()
    assert answered(appliance) == {second: errors.NONE, again: errors.NONE}
    assert appliance.followed().image.topics_by_name.keys() == {"a", "b"}
    third = ensure(appliance, b"a")
    assert answered(appliance) == {third: errors.NONE}, "nothing is to be synced for it"
    assert not appliance.threads.jobs


def test_who_asks_about_what_is_not_durable_waits_for_it(appliance):
    first = ensure(appliance, b"a")
    answered(appliance)
    second = ensure(appliance, b"a")  # it is there already, but a power cut may take it
    assert answered(appliance) == {}
    appliance.threads.run()
    assert answered(appliance) == {first: errors.NONE, second: errors.NONE}


def test_rows_are_counted_for_what_a_sync_still_holds_back(appliance):
    rows = appliance.memory.partitions.rows
    for name in ("a", "b"):
        appliance.forward(19, 7, request(name, rows))
        appliance.turn()
    assert appliance.control._rows.free_rows == rows, "none is given yet"
    codes = []
    while len(codes) < 2:
        appliance.threads.run()
        codes += [decoded(body) for _, body in appliance.answers().values()]
    assert codes == [errors.NONE, errors.INVALID_PARTITIONS]


def request(name, partitions):
    fields = {
        "topics": [{**new(name), "num_partitions": partitions}],
        "timeout": 1000,
        "validate_only": False,
    }
    return encode_request(build(load_request_schema(19, 7), fields))


def decoded(body):
    return decode_response(19, 7, body).topics[0].error_code


def test_control_ends_only_when_a_sync_has(appliance):
    ensure(appliance, b"a")
    appliance.turn()
    appliance.table.set_drain(3)
    assert appliance.control.run_once(0) != STOP
    appliance.threads.run()
    assert appliance.control.run_once(0) == STOP
    assert appliance.table.metadata_offset == appliance.control._quorum.log.end_offset


def delete(appliance, name):
    request = {"topics": [{"name": name, "topic_id": None}], "timeout": 1000}
    body = encode_request(build(load_request_schema(20, 6), request))
    return appliance.forward(20, 6, body)


def test_a_deletion_is_appended_when_its_note_is_on_the_disk_and_what_follows_behind_it(tmp_path):
    appliance = Appliance(tmp_path)
    create(appliance, new("a"), new("b"))
    appliance.threads.held = True
    end = appliance.control._quorum.log.end_offset
    gone = delete(appliance, "a")
    appliance.turn()
    behind = ensure(appliance, b"c")
    assert answered(appliance) == {}
    assert appliance.control._quorum.image.topics_by_name.keys() == {"b", "c"}, "it is decided"
    assert appliance.control._quorum.log.end_offset == end, "and nothing of it is in the log"
    assert not (tmp_path / TRASH_FILE).exists() and len(appliance.threads.jobs) == 1
    appliance.threads.run()
    assert answered(appliance) == {}
    assert (tmp_path / TRASH_FILE).exists()
    assert appliance.control._quorum.log.end_offset == end + 3
    assert appliance.followed().image.topics_by_name.keys() == {"a", "b"}
    appliance.threads.run()
    assert answered(appliance) == {gone: errors.NONE, behind: errors.NONE}
    assert appliance.followed().image.topics_by_name.keys() == {"b", "c"}
    appliance.close()


def test_deletions_that_come_while_a_note_is_written_share_the_next_one(tmp_path):
    appliance = Appliance(tmp_path)
    create(appliance, new("a"), new("b"), new("c"))
    appliance.threads.held = True
    first = delete(appliance, "a")
    appliance.turn()
    second, third = delete(appliance, "b"), None
    appliance.turn()
    third = delete(appliance, "c")
    appliance.turn()
    assert len(appliance.threads.jobs) == 1
    appliance.threads.run()  # the note of a
    appliance.turn()
    assert len(appliance.threads.jobs) == 2, "the sync of its deletion, and one note for two more"
    appliance.threads.run()
    assert answered(appliance) == {first: errors.NONE}
    appliance.threads.run()
    assert answered(appliance) == {second: errors.NONE, third: errors.NONE}
    appliance.close()


def test_whatever_waits_for_a_note_is_forgotten_with_the_leadership(tmp_path):
    appliance = Appliance(tmp_path)
    create(appliance, new("a"))
    appliance.threads.held = True
    gone, there = delete(appliance, "a"), ensure(appliance, b"b")
    appliance.turn()
    end = appliance.control._quorum.log.end_offset
    appliance.control.resign()
    appliance.threads.run()
    found = appliance.answers()
    assert appliance.control._quorum.log.end_offset == end, "who does not lead appends nothing"
    assert decode_response(20, 6, found[gone][1]).responses[0].error_code == errors.NOT_CONTROLLER
    assert found[there][0] == errors.LEADER_NOT_AVAILABLE
    appliance.threads.held = False
    appliance.control.lead()
    appliance.turn()
    appliance.turn()
    assert appliance.table.metadata_offset == end + 1, "the first record of the epoch"
    assert appliance.followed().image.topics_by_name.keys() == {"a"}
    appliance.close()


def test_a_sync_that_fails_ends_control_and_nobody_is_answered(appliance):
    ensure(appliance, b"a")
    appliance.turn()
    (tag, _), appliance.threads.jobs = appliance.threads.jobs[0], []

    def refuse():
        raise StorageFailed("x", 5, "no")

    appliance.threads.submit(tag, refuse)
    appliance.threads.run()
    with pytest.raises(StorageFailed):
        appliance.control.run_once(0)
    assert [one for _, batch in appliance.net.poll() for one in batch] == []


def test_a_snapshot_holds_what_was_committed_when_it_began_whatever_comes_meanwhile(tmp_path):
    appliance = Appliance(tmp_path, SNAPSHOTS)
    create(appliance, new("before"))
    appliance.threads.held = True
    appliance.forward(19, 7, request("large", 40))
    appliance.turn()
    appliance.threads.run()  # the sync: what it covers is what the snapshot is of
    appliance.turn()
    assert len(appliance.threads.jobs) == 1, "the file is written by a job"
    committed = appliance.table.metadata_offset
    meanwhile = ensure(appliance, b"meanwhile")
    appliance.turn()
    snapshot, sync = appliance.threads.jobs
    appliance.threads.jobs = [sync]
    appliance.threads.run()
    assert answered(appliance)[meanwhile] == errors.NONE, "no sync waits for a snapshot"
    appliance.threads.jobs = [snapshot]
    appliance.threads.run()
    appliance.turn()
    folder = tmp_path / "__cluster_metadata-0"
    (path,) = folder.glob(f"{committed:020d}-*.checkpoint")
    values = checkpoint.read(path.read_bytes()).values
    named = [n for n in (b"before", b"large", b"meanwhile") if any(n in v for v in values)]
    assert named == [b"before", b"large"]
    appliance.kill_control()
    assert appliance.followed().image.topics_by_name.keys() == {"before", "large", "meanwhile"}
    assert appliance.table.generation(CTL) == 2
    appliance.close()
