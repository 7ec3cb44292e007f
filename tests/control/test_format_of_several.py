"""What a folder has to be, or to be told, to be that of one of several nodes."""

import os

import pytest

from appliance.base.errors import ConfigError
from appliance.base.os_disk import OsDisk
from appliance.config.broker import BrokerConfig
from appliance.control.folder.format import open_or_format
from appliance.control.quorum import state_file as quorum_state
from appliance.quorum.messages import QuorumState

CLUSTER = "4L6g3nShT-eMCtK--X86sw"


def opened(path, *voters, cluster_id="", node_id=1):
    listed = {"controller.quorum.voters": ",".join(f"{one}@h:{one}" for one in voters)}
    config = BrokerConfig.of({"node.id": str(node_id), **(listed if voters else {})})
    return open_or_format(OsDisk(), str(path), config, os.urandom, 1000, cluster_id)


def voted(path, *voters, dynamic=False):
    folder = path / "__cluster_metadata-0"
    folder.mkdir(exist_ok=True)
    known = QuorumState(3, leader=1)
    quorum_state.write_state(OsDisk(), str(folder), known, dynamic=dynamic, voters=voters)


def test_an_empty_folder_of_several_is_formatted_for_the_cluster_that_is_named(tmp_path):
    with pytest.raises(ConfigError, match="same --cluster-id") as refused:
        opened(tmp_path, 1, 2, 3)
    assert not os.listdir(tmp_path)
    proposed = str(refused.value).rpartition(" ")[2]
    identity, fresh = opened(tmp_path, 1, 2, 3, cluster_id=proposed)
    assert fresh
    assert identity.cluster_id == proposed
    assert opened(tmp_path, 1, 2, 3) == (identity, False)  # and needs no name again
    with pytest.raises(ConfigError, match=f"belongs to the cluster {proposed}, not to {CLUSTER}"):
        opened(tmp_path, 1, 2, 3, cluster_id=CLUSTER)


def test_who_is_alone_makes_a_cluster_of_its_own(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    assert opened(folders[0])[0].cluster_id != opened(folders[1], 1)[0].cluster_id


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ((1,), (1, 2, 3), r"folder of a node alone, .* says \[1, 2, 3\].* an empty folder"),
        ((1, 2, 3), (), r"voters \[1, 2, 3\], .* says this node alone.* name them all"),
        ((1, 2, 3), (1, 2, 3, 4, 5), r"says \[1, 2, 3, 4, 5\]"),
    ],
)
def test_who_votes_is_not_changed_by_the_settings(tmp_path, before, now, words):
    opened(tmp_path, *before, cluster_id=CLUSTER)
    voted(tmp_path, *before)
    with pytest.raises(ConfigError, match=words):
        opened(tmp_path, *now)
    assert not opened(tmp_path, *reversed(before))[1]


def test_voters_that_the_log_names_are_not_compared(tmp_path):
    opened(tmp_path)
    voted(tmp_path, 1, dynamic=True)
    assert not opened(tmp_path, 1, 2, 3)[1]
