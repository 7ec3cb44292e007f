"""A `quorum-state` that no election can have written is mended by a start, and a log without an
epoch left is refused with the command that helps."""

import json

import pytest
from control.test_metadata_log import LIMITS, follower, opened

from appliance.base.os_disk import OsDisk
from appliance.control.quorum import log_repair as repair
from appliance.control.quorum import state_file as quorum_state
from appliance.control.quorum.metadata_log import batch_of, open_log
from appliance.control.quorum.metadata_quorum import VotingSetup, open_quorum
from appliance.metadata.follower import MetadataUnreadable
from appliance.metadata.record_versions import encode
from appliance.quorum.epochs import LAST, MOST_AHEAD
from appliance.quorum.messages import QuorumState
from appliance.quorum.voters import Voter
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import NewRecord

THREE = VotingSetup(voters=(Voter(1), Voter(2), Voter(3)))


def begun(path):
    """A log of one epoch."""
    quorum = opened(path)
    quorum.log.close()
    return quorum.log.last_epoch


def state(path):
    return path / "__cluster_metadata-0" / "quorum-state"


def write(path, **values):
    was = json.loads(state(path).read_text())
    state(path).write_text(json.dumps({**was, **values}))


def of_three(path):
    log = open_log(OsDisk(), str(path), LIMITS.segment_bytes, 1000, alone=False)
    return open_quorum(OsDisk(), 1, log, follower(path), LIMITS, THREE)


@pytest.mark.parametrize("epoch", [LAST + 1, LAST + 2, 1 << 40])
def test_an_epoch_behind_the_last_is_replaced_and_said(tmp_path, epoch):
    written = begun(tmp_path)
    write(tmp_path, leaderEpoch=epoch, leaderId=-1, votedId=2, data_version=0)
    quorum = of_three(tmp_path)
    assert quorum.replica.known == QuorumState(written + MOST_AHEAD)
    assert f"leaderEpoch {epoch} to {written + MOST_AHEAD}" in quorum.mended
    assert str(state(tmp_path)) in quorum.mended
    quorum.log.close()
    again = of_three(tmp_path)
    assert (again.replica.known, again.mended) == (quorum.replica.known, "")
    again.log.close()


@pytest.mark.parametrize(("field", "value", "left"), [
    ("leaderId", 1 << 31, -1), ("leaderId", -7, -1), ("votedId", 1 << 40, LAST + 1),
    ("votedId", -2, LAST + 1),
])  # fmt: skip
def test_an_id_that_is_none_is_replaced_and_no_vote_is_given_twice(tmp_path, field, value, left):
    epoch = begun(tmp_path) + 1
    write(tmp_path, **{"leaderEpoch": epoch, "leaderId": -1, "votedId": -1, field: value})
    quorum = of_three(tmp_path)
    assert f"{field} {value} to {left}" in quorum.mended
    known = quorum.replica.known
    assert {"leaderId": known.leader, "votedId": known.voted}[field] == left
    assert known.epoch == epoch
    quorum.log.close()


def test_a_lone_node_goes_on(tmp_path):
    written = begun(tmp_path)
    write(tmp_path, leaderEpoch=LAST + 2)
    quorum = opened(tmp_path)
    assert quorum.active and quorum.leadership.epoch == written + MOST_AHEAD + 1
    quorum.log.close()


def test_nothing_is_written_that_a_start_would_have_to_mend(tmp_path):
    begun(tmp_path)
    folder = str(state(tmp_path).parent)
    for known in (
        QuorumState(LAST + 1),
        QuorumState(-1),
        QuorumState(1, leader=1 << 31),
        QuorumState(1, voted=1 << 31),
    ):
        with pytest.raises(AssertionError):
            quorum_state.write_state(OsDisk(), folder, known, dynamic=False, voters=(1,))


def test_a_log_that_ends_in_the_last_epoch_is_refused_until_it_is_repaired(tmp_path):
    begun(tmp_path)
    log = open_log(OsDisk(), str(tmp_path), LIMITS.segment_bytes, 1000)
    value = encode(kraft.NoOpRecord(), 30)
    log.append(batch_of([NewRecord(1, None, value)], LAST + 1), LAST + 1, 1)
    log.sync()
    log.close()
    with pytest.raises(MetadataUnreadable, match="penstock metadata repair"):
        opened(tmp_path)
    repair.carry_out(OsDisk(), str(tmp_path), repair.plan(OsDisk(), str(tmp_path)), 1000)
    quorum = opened(tmp_path)
    assert quorum.active and quorum.leadership.epoch < MOST_AHEAD
    quorum.log.close()
