"""A cluster of three outlives whatever strangers send to its controllers' ports: no process ends,
the epochs stay those of elections, and a restart works."""

import json

import pytest
from kio.schema.errors import ErrorCode

from appliance.ring.process_table import CONTROL, Peer
from appliance.wire.messages import is_flexible
from benchmarks.nodes import CLUSTER_ID
from tests.broker_process import KAFKA
from tests.cluster.test_quorum import Quorum
from tests.differential.link import CLOSED, Link
from tests.strangers import AHEAD, BELOW, FETCH, STRANGER, every, made

pytestmark = pytest.mark.skipif(KAFKA, reason="Apache Kafka takes any epoch from a request")

FAR = 1 << 40
VOTE, BEGIN = 52, 53


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    with Quorum(tmp_path_factory.mktemp("strangers")) as quorum:
        yield quorum


def generations(quorum):
    return {n: quorum.table(n).generation(Peer(CONTROL, 0)) for n in quorum.living}


def send(quorum, target, requests):
    """The codes of the rows, by the name of the request."""
    link, told = Link(("127.0.0.1", quorum.places[target - 1].controller_port)), {}
    for one in requests:
        link.send_raw(one.key, one.version, one.body, is_flexible(one.key, one.version))
        answer = link.receive()
        assert answer is not CLOSED, one.name
        rows = [row for topic in answer.get("topics", answer.get("responses", ()))
                for row in topic["partitions"]]  # fmt: skip
        told[one.name] = {row["error_code"].upper() for row in rows} or {answer["error_code"]}
        assert told[one.name] <= {code.name.upper() for code in ErrorCode}
    link.close()
    return told


def states(quorum):
    files = {n: quorum.all[n].files / "__cluster_metadata-0" / "quorum-state"
             for n in quorum.all}  # fmt: skip
    return {n: json.loads(file.read_text())["leaderEpoch"] for n, file in files.items()}


def test_what_is_far_ahead_or_none_disturbs_nobody(quorum):
    before = quorum.wait(quorum.leader, "one leads")
    lives, (_, epoch) = generations(quorum), before
    for target in quorum.all:
        asked = [one for one in every(CLUSTER_ID, epoch, FAR, tuple(quorum.all), target)
                 if f"epoch {epoch + 1}," not in one.name]  # fmt: skip
        for name, codes in send(quorum, target, asked).items():
            assert "NONE" not in codes or name.startswith("API 55"), name
    assert quorum.leader() == before
    assert generations(quorum) == lives
    assert set(states(quorum).values()) == {epoch}


def test_what_comes_next_is_at_most_an_election(quorum):
    lives = generations(quorum)
    for target in quorum.all:
        _, epoch = quorum.wait(quorum.leader, "one leads")
        asked = [one for one in every(CLUSTER_ID, epoch, FAR, tuple(quorum.all), target)
                 if f"epoch {epoch + 1}," in one.name]  # fmt: skip
        send(quorum, target, asked)
    _, epoch = quorum.wait(quorum.leader, "one leads again")
    quorum.change("after-strangers")
    assert epoch < 100
    assert generations(quorum) == lives
    assert max(states(quorum).values()) < 100


def test_fields_of_no_sound_node_have_the_codes_of_kafka(quorum):
    leader, epoch = quorum.wait(quorum.leader, "one leads")
    other = next(n for n in quorum.all if n != leader)
    far, last, (past, _) = epoch + AHEAD[1], AHEAD[-1], BELOW

    def code(key, version, at, who=other, end=FAR, last=None):
        request = made(CLUSTER_ID, key, version, at, who, end, leader, last)
        ((found,),) = send(quorum, leader, [request]).values()
        return found

    assert code(VOTE, 2, far) == code(VOTE, 0, last) == code(BEGIN, 0, far) == "INVALID_REQUEST"
    assert code(VOTE, 2, epoch, last=epoch) == code(VOTE, 2, epoch, end=-1) == "INVALID_REQUEST"
    assert code(VOTE, 2, past) == code(VOTE, 2, epoch, who=-1, last=0) == "INVALID_REQUEST"
    assert code(BEGIN, 0, past) == "FENCED_LEADER_EPOCH"
    assert code(BEGIN, 0, epoch, who=-1) == "INVALID_REQUEST"
    assert code(VOTE, 2, epoch + 1, who=STRANGER) == "INVALID_VOTER_KEY"
    assert code(FETCH, 17, far) == code(FETCH, 17, epoch + 1) == "UNKNOWN_LEADER_EPOCH"
    assert code(FETCH, 17, past) == code(FETCH, 17, epoch, end=-1) == "INVALID_REQUEST"
    assert code(FETCH, 17, epoch, last=-1) == "INVALID_REQUEST"
    assert quorum.leader() == (leader, epoch)


def test_all_start_again(quorum):
    _, epoch = quorum.wait(quorum.leader, "one leads")
    for number in quorum.living:
        quorum.kill(number)
    quorum.start()
    quorum.wait(quorum.leader, "one leads")
    quorum.change("after-a-restart")
    assert max(states(quorum).values()) < epoch + 100
