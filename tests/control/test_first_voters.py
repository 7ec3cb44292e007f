"""Who votes first, as the command line says it: what a folder is given, and what is refused."""

import os

import pytest

from appliance.base.disk import read_file
from appliance.base.errors import ConfigError
from appliance.base.os_disk import OsDisk
from appliance.config.broker import BrokerConfig
from appliance.control.folder.format import open_or_format
from appliance.control.quorum import first_voters
from appliance.control.quorum import state_file as quorum_state
from appliance.control.quorum.first_voters import FirstVoters
from appliance.control.quorum.voter_records import of_snapshot
from appliance.metadata import checkpoint
from appliance.quorum.messages import QuorumState
from appliance.quorum.voters import DYNAMIC, ControllerEndpoint, Electorate, Voter
from appliance.wire.uuids import parse_uuid
from benchmarks import kafka

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
ONE, TWO = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"
LIST = f"1@127.0.0.1:9193:{ONE},2@[::1]:9293:{TWO}"
SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
BOTH = (
    Voter(1, parse_uuid(ONE), (ControllerEndpoint("CONTROLLER", "127.0.0.1", 9193),)),
    Voter(2, parse_uuid(TWO), (ControllerEndpoint("CONTROLLER", "::1", 9293),)),
)
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:9192,CONTROLLER://127.0.0.1:9193",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9193,[::1]:9293",
    "process.roles": "broker,controller",
}


def settings(node_id=1, **others):
    return BrokerConfig.of(SETTINGS | {"node.id": str(node_id)} | others)


def opened(path, first, node_id=1, cluster_id=CLUSTER):
    config = settings(node_id)
    return open_or_format(OsDisk(), str(path), config, os.urandom, 1000, cluster_id, first)


def voters_in(path):
    said = checkpoint.read(read_file(OsDisk(), str(path / SNAPSHOT))).quorum
    return of_snapshot(said, Electorate())


def late(path, first, identity):
    return first_voters.write_late(OsDisk(), str(path), first, settings(), identity, 2000)


def test_each_of_several_has_the_same_voters_and_the_directory_id_that_it_is_given(tmp_path):
    first = first_voters.parse(LIST, settings())
    for number, directory in ((1, ONE), (2, TWO)):
        folder = tmp_path / str(number)
        folder.mkdir()
        identity, fresh = opened(folder, first, number)
        assert fresh and identity.directory_id == parse_uuid(directory)
        assert voters_in(folder) == Electorate(DYNAMIC, BOTH)
        assert opened(folder, first, number) == (identity, False)
        assert not late(folder, first, identity), "its log says who votes"


@pytest.mark.skipif(bool(kafka.unavailable()), reason=kafka.unavailable() or "")
def test_apache_kafkas_format_step_leaves_the_same_voters(tmp_path):
    listed = LIST.replace("[::1]", "127.0.0.1")
    lines = SETTINGS | {"node.id": "1", "log.dirs": str(tmp_path / "logs")}
    kafka.formatted(tmp_path, lines, "--initial-controllers", listed)
    first = first_voters.parse(listed, settings())
    assert voters_in(tmp_path / "logs") == Electorate(DYNAMIC, first.listed)


def test_one_that_stands_alone_needs_no_cluster_id_though_it_names_others(tmp_path):
    first = FirstVoters()
    with pytest.raises(ConfigError, match="same --cluster-id"):
        opened(tmp_path, None, cluster_id="")
    with pytest.raises(ConfigError, match="same --cluster-id"):
        opened(tmp_path, first_voters.parse(LIST, settings()), cluster_id="")
    identity, _ = opened(tmp_path, first, cluster_id="")
    (voter,) = voters_in(tmp_path).voters
    assert voter == Voter(1, identity.directory_id, BOTH[0].endpoints)


def test_a_folder_that_waits_for_voters_is_told_of_them(tmp_path):
    identity, _ = opened(tmp_path, None)
    assert not (tmp_path / SNAPSHOT).exists()
    first = FirstVoters((BOTH[0]._replace(directory=identity.directory_id), BOTH[1]))
    assert late(tmp_path, first, identity)
    assert voters_in(tmp_path).voters == first.listed


def test_who_has_followed_somebody_is_told_of_nobody(tmp_path):
    identity, _ = opened(tmp_path, None)
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    quorum_state.write_state(
        OsDisk(), str(folder), QuorumState(3, leader=1), dynamic=True, voters=()
    )
    assert not late(tmp_path, FirstVoters(), identity)
    with pytest.raises(ConfigError, match=f"names {ONE} for node 1: name that of the folder"):
        late(tmp_path, first_voters.parse(LIST, settings()), identity)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1@h:9093", "'1@h:9093': it takes ID@HOST:PORT:DIRECTORY-ID"),
        (f"1@h:9093:{ONE},", "'': it takes"),
        (f"h:9093:{ONE}", "it takes"),
        ("1@h:9093:xx", "penstock cluster new-id makes a directory id"),
        ("1@h:9093:AAAAAAAAAAAAAAAAAAAAAA", "it takes"),
        (f"1@h:9093:{ONE},1@h:9094:{TWO}", "have the same node.id"),
        (f"1@h:9093:{ONE},2@h:9094:{ONE}", "have the same directory id"),
        (f"1@h:9093:{ONE},2@h:9093:{TWO}", "have the same place"),
    ],
)
def test_what_first_voters_cannot_be(text, said):
    with pytest.raises(ConfigError) as refused:
        first_voters.parse(text, settings())
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("node_id", "others", "said"),
    [
        (3, {}, "names the nodes 1, 2, and this one is node.id=3; a node that joins"),
        (1, {"controller.quorum.voters": "1@h:1"}, "controller.quorum.voters fixes the voters"),
        (1, {"process.roles": "broker"}, "process.roles has no controller"),
    ],
)
def test_who_cannot_be_a_first_voter(node_id, others, said):
    config = settings(node_id, **others)
    with pytest.raises(ConfigError) as refused:
        first_voters.check(first_voters.parse(LIST, settings()), config)
    assert said in str(refused.value)
