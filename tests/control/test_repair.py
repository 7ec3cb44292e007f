"""A damaged metadata log: what a start mends by itself, what it refuses, what a repair saves."""

from pathlib import Path
from random import Random

import pytest
from test_metadata_log import opened, setting

from appliance.base.errors import ConfigError, StorageFailed
from appliance.base.ids import TopicId
from appliance.base.os_disk import OsDisk
from appliance.config.log_config import LogConfig
from appliance.control.folder.format import check_metadata_is_there, check_metadata_is_whole
from appliance.control.quorum import log_repair as repair
from appliance.control.quorum import state_file as quorum_state
from appliance.control.quorum.metadata_log import open_log, whole
from appliance.logstore.log import PartitionLog
from appliance.metadata import files
from appliance.quorum.messages import QuorumState
from appliance.wire import kraft_records as kraft
from tests.seeds import each_seed

DISK = OsDisk()
ID = b"t" * 16


def topic(number: int, partitions: int = 1) -> list[object]:
    topic_id = ID[:-1] + bytes((number,))
    return [
        kraft.TopicRecord(name=f"t{number}", topic_id=topic_id),
        *(
            kraft.PartitionRecord(
                partition_id=index, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1,
                leader_epoch=0, partition_epoch=0, directories=(bytes(16),),
            )
            for index in range(partitions)
        ),
    ]  # fmt: skip


def folder_of(tmp_path, number, partitions=1):
    for index in range(partitions):
        path = f"{tmp_path}/t{number}-{index}"
        PartitionLog.create(
            DISK, path, TopicId(ID[:-1] + bytes((number,))), LogConfig(), now_ms=0
        ).close()


def ended(tmp_path, snapshot_after=2, topics=5):
    """A folder with these topics, a snapshot somewhere in between, and an orderly end."""
    quorum = opened(tmp_path)
    places = []
    for number in range(topics):
        places.append(segment(tmp_path).stat().st_size)
        quorum.append(topic(number), 1000)
        quorum.sync()
        folder_of(tmp_path, number)
        if number == snapshot_after:
            quorum.snapshot(1000)
    quorum.log.close()
    return places


def segment(tmp_path):
    name = f"{files.segments(DISK, f'{tmp_path}/__cluster_metadata-0')[-1]:020d}.log"
    return tmp_path / "__cluster_metadata-0" / name


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 0x40
    path.write_bytes(data)


def names(quorum):
    return sorted(quorum.image.topics_by_name)


def test_damage_below_the_snapshot_is_mended_by_the_start(tmp_path):
    places = ended(tmp_path)
    flip(segment(tmp_path), places[1] + 9)  # its length: nothing behind it can be stepped to
    quorum = opened(tmp_path, clean=True)
    assert "damaged at byte" in quorum.log.recovered and "-stray" in quorum.log.recovered
    assert names(quorum) == [f"t{n}" for n in range(5)]
    quorum.append(topic(9), 1000)
    quorum.sync()
    quorum.log.close()
    again = opened(tmp_path, clean=True)
    assert names(again)[-1] == "t9" and not again.log.recovered
    assert [path.name for path in tmp_path.glob("*-stray")], "the damaged files are kept"


@pytest.mark.parametrize("at", [3, 4])
def test_damage_behind_the_snapshot_is_refused_and_saved_by_a_repair(tmp_path, at):
    places = ended(tmp_path)
    flip(segment(tmp_path), places[at] + 70)
    with pytest.raises(StorageFailed, match="penstock metadata repair"):
        opened(tmp_path, clean=True)
    assert not whole(DISK, str(tmp_path))
    made = repair.plan(DISK, str(tmp_path), node_id=1)
    assert len(made.lost) == 1 and made.snapshot > 0
    assert made.found == {f"t{at}": 1}  # the folder still knows its name and id
    repair.carry_out(DISK, str(tmp_path), made, 1000)
    assert whole(DISK, str(tmp_path))
    quorum = opened(tmp_path, clean=True)
    assert names(quorum) == [f"t{n}" for n in range(5)]
    assert quorum.image.topics_by_name[f"t{at}"].topic_id == ID[:-1] + bytes((at,))


def test_what_lies_behind_the_damage_is_saved_too(tmp_path):
    quorum = opened(tmp_path)
    quorum.append([setting(1)], 1000)
    quorum.append([setting(2)], 1000)
    damaged = segment(tmp_path).stat().st_size
    quorum.append(topic(1, 3), 1000)
    quorum.append(topic(2), 1000)
    quorum.sync()
    quorum.log.close()
    flip(segment(tmp_path), damaged + 70)
    made = repair.plan(DISK, str(tmp_path), node_id=1)
    assert sorted(made.image.topics_by_name) == ["t2"]
    [(first, last)] = made.lost
    assert last - first == 3  # a topic and three partitions
    repair.carry_out(DISK, str(tmp_path), made, 1000)
    again = opened(tmp_path, clean=True)
    assert names(again) == ["t2"]
    assert again.image.config(4, "") == {"log.retention.ms": "2"}


def test_an_empty_log_over_partitions_is_refused_and_made_anew_from_their_folders(tmp_path):
    ended(tmp_path, snapshot_after=-1)
    segment(tmp_path).write_bytes(b"")
    quorum = opened_without_bootstrap(tmp_path)
    with pytest.raises(ConfigError, match=r"is empty, but .* holds t\d-0"):
        check_metadata_is_whole(DISK, [str(tmp_path)], quorum.image)
    made = repair.plan(DISK, str(tmp_path), node_id=1)
    assert made.empty and made.found == {f"t{n}": 1 for n in range(5)}
    repair.carry_out(DISK, str(tmp_path), made, 1000)
    again = opened(tmp_path, clean=True)
    check_metadata_is_whole(DISK, [str(tmp_path)], again.image)
    assert names(again) == [f"t{n}" for n in range(5)]
    assert again.image.metadata_version


def opened_without_bootstrap(path):
    from test_metadata_log import LIMITS, follower

    from appliance.control.quorum.metadata_log import open_log
    from appliance.control.quorum.metadata_quorum import open_quorum

    log = open_log(DISK, str(path), LIMITS.segment_bytes, 1000, clean=True)
    return open_quorum(DISK, 1, log, follower(path), LIMITS)


def test_a_repair_that_was_cut_off_is_finished(tmp_path, monkeypatch):
    places = ended(tmp_path)
    flip(segment(tmp_path), places[3] + 70)
    made = repair.plan(DISK, str(tmp_path), node_id=1)
    monkeypatch.setattr(repair, "finish", lambda *_: False)
    repair.carry_out(DISK, str(tmp_path), made, 1000)
    monkeypatch.undo()
    assert not (tmp_path / "__cluster_metadata-0").exists()
    check_metadata_is_there(DISK, str(tmp_path))  # which a start asks first
    assert names(opened(tmp_path, clean=True)) == [f"t{n}" for n in range(5)]


@each_seed(40)
def test_wherever_one_byte_is_wrong_no_topic_is_lost_unsaid(tmp_path, seed):
    rng = Random(seed)
    ended(tmp_path, snapshot_after=rng.randint(0, 4))
    log = segment(tmp_path)
    flip(log, rng.randrange(log.stat().st_size))
    try:
        found = names(opened(tmp_path, clean=True))
    except StorageFailed:
        made = repair.plan(DISK, str(tmp_path), node_id=1)
        assert not made.lossless
        repair.carry_out(DISK, str(tmp_path), made, 1000)
        found = names(opened(tmp_path, clean=True))
    assert found == [f"t{n}" for n in range(5)]


def test_the_log_of_one_of_several_voters_is_set_aside_and_nothing_is_cut_off(tmp_path):
    places = ended(tmp_path)
    folder = segment(tmp_path).parent
    known = QuorumState(7, leader=2, voted=2)
    quorum_state.write_state(DISK, str(folder), known, dynamic=False, voters=(1, 2, 3))
    flip(segment(tmp_path), places[1] + 9)  # a snapshot has it, which others know nothing of
    before = segment(tmp_path).read_bytes()
    with pytest.raises(StorageFailed, match="the other voters have the whole log"):
        open_log(DISK, str(tmp_path), 1 << 20, 1000, clean=True, alone=False)
    assert segment(tmp_path).read_bytes() == before
    made = repair.plan(DISK, str(tmp_path), node_id=1)
    assert repair.others_vote(DISK, str(tmp_path), 1, made)
    old = repair.set_aside(DISK, str(tmp_path), 1000)
    assert (Path(old) / f"{0:020d}.log").read_bytes() == before
    log = open_log(DISK, str(tmp_path), 1 << 20, 1000, clean=True, alone=False)
    assert (log.end_offset, log.newest_snapshot) == (0, (0, 0))
    assert quorum_state.read(DISK, str(folder)) == known
