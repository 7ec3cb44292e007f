"""Control of a node with several log folders: ids, places of new partitions, places that change."""

import pytest
from test_control_shell import Appliance, create, new

from appliance.base.errors import KAFKA_STORAGE_ERROR, CannotServe
from appliance.ring.messages import ASSIGN, Message
from appliance.ring.partition_table import OFFLINE, STATUS
from appliance.ring.process_table import IOPROC, Peer
from appliance.wire.kraft_records import BrokerRegistrationChangeRecord


@pytest.fixture
def two_folders(tmp_path):
    """An appliance with two log folders."""
    for name in ("data", "more"):
        (tmp_path / name).mkdir()
    return Appliance(tmp_path / "data", other_dirs=(str(tmp_path / "more"),))


def places(appliance, name):
    """Of each partition the number of the folder that the metadata names."""
    ids = appliance.control._dirs.ids
    topic = appliance.followed().image.topics_by_name[name]
    return [ids.index(partition.directories[0]) for partition in topic.partitions]


def test_new_partitions_are_spread_over_the_folders_that_are_there(two_folders, tmp_path):
    one = two_folders
    assert len(set(one.control._dirs.ids)) == 2
    create(one, {**new("a"), "num_partitions": 5})
    assert places(one, "a") == [0, 1, 0, 1, 0]
    create(one, {**new("b"), "num_partitions": 1})
    assert places(one, "b") == [1]
    (tmp_path / "more" / "meta.properties").rename(tmp_path / "gone")
    create(one, {**new("c"), "num_partitions": 3})
    assert places(one, "c") == [0, 0, 0]
    data, _ = one.ask(35, 4, topics=None).results
    assert (data.log_dir, data.error_code) == (str(tmp_path / "data"), 0)
    assert one.followed().image.brokers[1].log_dirs == one.control._dirs.ids


def test_a_cordoned_folder_takes_nothing_new(two_folders, tmp_path):
    """KIP-1066. With all of them cordoned, and no other node, there is nowhere to go."""
    one = two_folders

    def cordon(operation, value):
        config = {"name": "cordoned.log.dirs", "config_operation": operation, "value": value}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [config]}
        [result] = one.ask(44, 1, resources=[resource], validate_only=False).responses
        assert result.error_code == 0
        one.turn()

    cordon(0, str(tmp_path / "data"))
    create(one, {**new("a"), "num_partitions": 3})
    assert places(one, "a") == [1, 1, 1]
    cordon(0, "*")
    [refused] = one.ask(19, 7, topics=[new("b")], timeout=0, validate_only=False).topics
    assert int(refused.error_code) == KAFKA_STORAGE_ERROR
    assert "cordoned.log.dirs" in refused.error_message
    assert sorted(one.control._room.full()) == sorted(one.control._dirs.ids)
    cordon(1, None)
    create(one, {**new("b"), "num_partitions": 1})
    assert places(one, "b") == [0]


def test_a_partition_whose_files_failed_is_named_and_takes_no_folder_with_it(tmp_path):
    one = Appliance(tmp_path)
    create(one, {**new("a"), "num_partitions": 2})
    (bad,) = [row for (_, index), row in one.followed().handles.items() if index == 1]
    one.memory.partitions.set(bad, STATUS, OFFLINE)
    folder, failed = one.ask(35, 4, topics=None).results
    assert (folder.log_dir, folder.error_code) == (str(tmp_path), 0)
    assert [p.partition_index for t in folder.topics for p in t.partitions] == [0]
    assert (failed.log_dir, int(failed.error_code)) == (f"{tmp_path}/a-1", KAFKA_STORAGE_ERROR)
    assert [p.partition_index for t in failed.topics for p in t.partitions] == [1]


def test_a_folder_that_is_told_to_be_offline_says_so(two_folders):
    """It failed while the appliance ran: until the next start."""
    one = two_folders
    broker = one.followed().image.brokers[1]
    change = BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=broker.epoch, log_dirs=(one.control._dirs.ids[0],)
    )
    one.control._append([change])
    one.turn()
    data, more = one.ask(35, 4, topics=None).results
    assert (int(data.error_code), int(more.error_code)) == (0, KAFKA_STORAGE_ERROR)


def test_where_a_partition_has_moved_to_is_written_down(two_folders):
    one = two_folders
    create(one, {**new("a"), "num_partitions": 2})
    (first,) = [row for (_, index), row in one.followed().handles.items() if index == 0]
    before = one.followed().image.topics_by_name["a"].partitions[0]
    for handle, number in ((first, 1), (first, 1), (first, 7), (first | 1 << 25, 0), (999, 0)):
        message = Message(ASSIGN, 0, handle, 0, number, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        one.control.handle(Peer(IOPROC, 0), [message])
        one.turn()
    assert places(one, "a") == [1, 1]
    after = one.followed().image.topics_by_name["a"].partitions[0]
    assert after.leader_epoch == before.leader_epoch, "the leader stays what it is"
    assert after.partition_epoch == before.partition_epoch + 1, "said twice it is one change"


def test_a_folder_of_somebody_else_is_refused(tmp_path):
    for name in ("data", "more"):
        (tmp_path / name).mkdir()
    Appliance(tmp_path / "more")
    others = (str(tmp_path / "more"),)
    with pytest.raises(CannotServe, match="belongs to node 1 of cluster"):
        Appliance(tmp_path / "data", other_dirs=others)
    copied = (tmp_path / "data" / "meta.properties").read_text()
    (tmp_path / "more" / "meta.properties").write_text(copied)
    with pytest.raises(CannotServe, match="copy of the other"):
        Appliance(tmp_path / "data", other_dirs=others)
