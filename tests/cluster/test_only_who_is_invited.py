"""Who is let in where `penstock.join` is `invited`: a token lets in one node, once. The line of an
invitation as it is typed, and what the controller says to who comes without that."""

import subprocess
import sys
import time
from types import SimpleNamespace
from uuid import uuid4

import pytest

from appliance.base import errors
from appliance.base.caller import ANONYMOUS, Caller
from appliance.base.errors import PeerError
from appliance.config.invitations import Invitation, hashed
from appliance.controller import admission
from appliance.controller.features import SUPPORTED
from appliance.handlers.config_rights import is_here
from appliance.metadata.image import BROKER
from appliance.wire import kraft_records as kraft
from console.model.asking.failure import Failure
from console.model.asking.link import Link as Asking
from console.model.cluster import joining
from tests.cluster.test_one_becomes_three import KEPT, Invited
from tests.console_process import typing
from tests.controller.brokers import Brokers
from tests.differential.link import Link

FEATURES = [
    {"name": name, "min_supported_version": low, "max_supported_version": high}
    for name, (low, high) in SUPPORTED.items()
]


def words(line):
    return dict(zip(line.split()[2::2], line.split()[3::2], strict=True))


def register(link, number, cluster, token=None):
    """A BrokerRegistration of a fresh incarnation: its error."""
    none = {"min_supported_version": 0, "max_supported_version": 0}
    tokens = [] if token is None else [{"name": f"penstock.token={token}"} | none]
    place = {"name": "PLAINTEXT", "host": "h", "port": 1, "security_protocol": 0}
    answer = link.ask(62, 4, {
        "broker_id": number, "cluster_id": cluster, "incarnation_id": uuid4(), "rack": None,
        "listeners": [place], "features": [*FEATURES, *tokens], "is_migrating_zk_broker": False,
        "log_dirs": [uuid4()], "previous_broker_epoch": -1,
    })  # fmt: skip
    return answer["error_code"]


def test_a_token_lets_in_one_node_once(tmp_path):
    with Invited(tmp_path) as nodes:
        alone, bootstrap = typing(nodes[1].bootstrap), nodes[1].bootstrap
        asking = Asking(bootstrap, {}, 10)
        kept = str(tmp_path / "new" / KEPT)
        line = alone("cluster", "invite").stdout
        cluster, token = words(line)["--cluster-id"], words(line)["--token"]
        link = Link(("127.0.0.1", nodes[1].port + 1))
        for number, given, refused in (
            (2, None, "CLUSTER_AUTHORIZATION_FAILED"),
            (2, "guessed", "DELEGATION_TOKEN_NOT_FOUND"),
            (3, token, "DELEGATION_TOKEN_OWNER_MISMATCH"),
        ):
            assert register(link, number, cluster, given) == refused
        for given, number, said in (
            (None, 2, "admits only invited nodes"),
            ("guessed", 2, "used already, or never issued"),
            (token, 3, "for node 2, not for node 3"),
        ):
            with pytest.raises(Failure, match=said):
                joining.prepare(asking, kept, number, cluster, (), {}, given)
        voter = {
            "cluster_id": cluster, "timeout": 1000, "voter_id": 2, "voter_directory_id": uuid4(),
            "listeners": [{"name": "CONTROLLER", "host": "h", "port": 1}],
            "ack_when_committed": True,
        }  # fmt: skip
        assert link.ask(80, 1, voter)["error_code"] == "CLUSTER_AUTHORIZATION_FAILED"
        joining.prepare(asking, kept, None, cluster, (":1",), {}, token)
        assert f"penstock.join.token={token}\n" in (tmp_path / "new" / KEPT).read_text()
        assert register(link, 2, cluster, token) in ("NONE", "none")
        assert register(link, 4, cluster, token) == "DELEGATION_TOKEN_NOT_FOUND", "it is spent"
        told = alone("config", "list", "--cluster", "-o", "json").stdout
        assert "penstock.invitations" not in told and token not in told
        link.close()
        uninvited(nodes, tmp_path, cluster)


def uninvited(nodes, tmp_path, cluster):
    """A node that somebody has configured by hand: it ends, and says why."""
    port = nodes[1].port + 4
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1}"
    settings = ("node.id=7", f"listeners={listeners}", "controller.listener.names=CONTROLLER",
                f"controller.quorum.bootstrap.servers=127.0.0.1:{nodes[1].port + 1}")  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "console", "up", "--data", str(tmp_path / "seven"),
         "--cluster-id", cluster, *(word for one in settings for word in ("-o", one))],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "refuses this node: it is not known there" in done.stderr
    assert "penstock cluster invite" in done.stderr


NOW = 1_000


@pytest.fixture
def world():
    made = Brokers()
    texts = {"penstock.join": "invited"}
    there = [Invitation(8, hashed("eight"), NOW + 1), Invitation(9, hashed("nine"), NOW + 1),
             Invitation(9, hashed("late"), NOW), Invitation(6, hashed("gone"), NOW)]  # fmt: skip
    texts["penstock.invitations"] = ",".join(map(str, there))
    for key, value in texts.items():
        record = kraft.ConfigRecord(resource_type=BROKER, resource_name="", name=key, value=value)
        made.image.apply(made.image.applied_offset + 1, record)
    return made.situation


@pytest.mark.parametrize(
    ("number", "token", "code"),
    [
        (9, None, errors.CLUSTER_AUTHORIZATION_FAILED),
        (9, "late", errors.DELEGATION_TOKEN_EXPIRED),
        (9, "eight", errors.DELEGATION_TOKEN_OWNER_MISMATCH),
        (9, "other", errors.DELEGATION_TOKEN_NOT_FOUND),
    ],
)
def test_who_is_refused(world, number, token, code):
    with pytest.raises(PeerError) as refused:
        admission.admitted(world, number, token, NOW)
    assert refused.value.code == code


def test_a_token_is_spent_with_all_of_its_node_and_what_is_out_of_date(world):
    (record,) = admission.admitted(world, 9, "nine", NOW)
    assert record.name == "penstock.invitations"
    assert record.value == str(Invitation(8, hashed("eight"), NOW + 1))
    assert admission.admitted(world, world.node_id, None, NOW) == []


def test_who_is_known_needs_no_token_and_spends_the_one_that_it_has():
    made = Brokers(2)
    there = [Invitation(2, hashed("two"), NOW + 1), Invitation(8, hashed("eight"), NOW + 1)]
    for key, value in (("penstock.join", "invited"),
                       ("penstock.invitations", ",".join(map(str, there)))):  # fmt: skip
        record = kraft.ConfigRecord(resource_type=BROKER, resource_name="", name=key, value=value)
        made.image.apply(made.image.applied_offset + 1, record)
    for token in (None, "eight", "other"):
        assert admission.admitted(made.situation, 2, token, NOW) == []
    (record,) = admission.admitted(made.situation, 2, "two", NOW)
    assert record.value == str(there[1])


def test_whoever_comes_is_let_in_where_it_is_open():
    situation = Brokers().situation
    assert admission.admitted(situation, 9, None, time.time_ns()) == []
    admission.check_voter(situation, 9, b"d" * 16)
    admission.check_controller(situation, 9, ())


@pytest.mark.parametrize(
    ("address", "here"),
    [("127.0.0.1", True), ("::1", True), ("::ffff:127.0.0.1", True), ("10.0.0.1", False),
     ("fe80::1", False), ("1.127.0.0", False), ("", True)],
)  # fmt: skip
def test_invitations_are_made_on_the_host_of_a_node(address, here):
    rights = SimpleNamespace(caller=Caller(ANONYMOUS, "", address, "PLAINTEXT"))
    assert is_here(rights) == here
    if not here:
        with pytest.raises(PeerError, match="on the host of a node"):
            admission.check_here(here, ["penstock.join"])
    admission.check_here(here, ["num.partitions"])
