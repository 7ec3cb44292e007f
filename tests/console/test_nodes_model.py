"""The nodes of a cluster, as the controller's answers tell them: who has left is not among them."""

from types import SimpleNamespace

import pytest

from console.model.cluster import nodes

NOW_MS = 1_700_000_000_000


def broker(number):
    return SimpleNamespace(
        broker_id=number, host="h", port=9092, rack=None, is_fenced=False,
    )  # fmt: skip


def replica(number, silent_ms):
    return SimpleNamespace(
        replica_id=number, log_end_offset=100, last_fetch_timestamp=NOW_MS - silent_ms,
        last_caught_up_timestamp=NOW_MS - silent_ms,
    )  # fmt: skip


@pytest.fixture
def seen(monkeypatch):
    """What is seen of a cluster that node 1 leads, with these observers."""

    def look(voters, observers):
        quorum = SimpleNamespace(
            error_code=0, error_message=None, leader_id=1, leader_epoch=3, current_voters=voters,
            observers=observers,
        )  # fmt: skip
        answers = {
            60: SimpleNamespace(
                error_code=0, error_message=None, cluster_id="c", brokers=[broker(1)]
            ),
            55: SimpleNamespace(
                error_code=0, error_message=None, topics=[SimpleNamespace(partitions=[quorum])]
            ),
        }
        monkeypatch.setattr(nodes, "ask_server", lambda link, key, *rest: answers[key])
        return {number: one.state for number, one in nodes.read_nodes(None).all.items()}

    return look


def test_who_left_is_not_shown_once_it_reads_no_more(seen):
    assert seen([replica(1, 0)], [replica(4, 600)]) == {1: nodes.RUNNING, 4: nodes.RUNNING}
    assert seen([replica(1, 0)], [replica(4, 3_500)]) == {1: nodes.RUNNING}


def test_a_voter_that_is_silent_is_gone(seen):
    found = seen([replica(1, 0), replica(2, 900), replica(3, 3_500)], [])
    assert found == {1: nodes.RUNNING, 2: nodes.RUNNING, 3: nodes.GONE}
