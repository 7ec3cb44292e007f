"""When a node asks for its own vote."""

from types import SimpleNamespace

import pytest

from appliance.config.load import load
from appliance.control.quorum.no_voters_warning import Unvoted
from appliance.control.quorum.voter_duties import VoterDuties
from appliance.quorum.voters import DYNAMIC, ControllerEndpoint, Electorate, Voter
from appliance.ring.process_table import ProcessTable

ADD = 80
PLACE = (ControllerEndpoint("CONTROLLER", "h", 9093),)
FIRST, ME = Voter(1, b"1" * 16, PLACE), Voter(2, b"2" * 16, PLACE)


def table():
    return ProcessTable(
        memoryview(bytearray(ProcessTable.bytes_needed(1, 1))), ioprocs=1, netprocs=1
    )


def test_a_node_that_nobody_tells_of_voters_says_so_until_somebody_does():
    said, processes = [], table()
    log = SimpleNamespace(event=lambda level, event, **told: said.append((event, told)))
    leadership = SimpleNamespace(leader_id=-1)
    quorum = SimpleNamespace(
        electing=SimpleNamespace(latest=Electorate(0, ())), leadership=leadership
    )
    config, _ = load(None, {"controller.quorum.bootstrap.servers": "h:1,h:2"})
    unvoted = Unvoted(quorum, config, processes, log)
    for now_ms in (1_000, 5_999):
        unvoted.warn_once(now_ms)
        assert not said and not processes.unvoted
    unvoted.warn_once(6_000)
    unvoted.warn_once(7_000)
    ((event, told),) = said
    assert event == "nobody-votes" and "h:1,h:2" in told["cause"]
    assert "--standalone" in told["action"] and processes.unvoted
    leadership.leader_id = 2
    unvoted.warn_once(8_000)
    assert not processes.unvoted
    leadership.leader_id = -1
    unvoted.warn_once(9_000)
    unvoted.warn_once(13_999)
    assert len(said) == 1
    quorum.electing.latest = Electorate(DYNAMIC, (FIRST,))
    unvoted.warn_once(20_000)
    assert len(said) == 1, "a voter is known, whoever leads"


@pytest.fixture
def joining():
    """A node that follows and may join by itself. `asked`: what it asks of the leader."""
    asked = []

    def ask(key, version, values, heard, *_):
        asked.append(key)
        heard(SimpleNamespace(error_code=0))

    quorum = SimpleNamespace(
        replica=SimpleNamespace(node_id=2, directory=ME.directory, leads=False, votes=False),
        leadership=SimpleNamespace(leads=False, leader_id=1, epoch=1),
        electing=None,
    )
    ways = SimpleNamespace(talk=SimpleNamespace(ask_peer=ask))
    driver = SimpleNamespace(level=True, others=SimpleNamespace(to=lambda _: ways))
    config, _ = load(None, {"controller.quorum.auto.join.enable": "true"})
    seat = SimpleNamespace(config=config, processes=table())
    duties = VoterDuties(quorum, driver, "id", PLACE, seat, None)

    def turn(now_ms, latest, agreed):
        quorum.electing = SimpleNamespace(
            latest=Electorate(DYNAMIC, latest), oldest=Electorate(DYNAMIC, agreed)
        )
        duties.tick(now_ms, 0)
        return [asked.pop() for _ in range(len(asked))]

    return turn


def test_a_node_asks_for_its_vote_until_that_is_agreed_and_not_again_when_it_is_taken(joining):
    alone, both = (FIRST,), (FIRST, ME)
    assert joining(10_000, alone, alone) == [ADD]
    assert joining(20_000, both, alone) == []
    assert joining(30_000, alone, alone) == [ADD], "another leader had never heard of it"
    assert joining(40_000, both, both) == []
    assert joining(50_000, alone, both) == [], "its vote is being taken"
    assert joining(60_000, alone, alone) == []


def test_an_empty_folder_in_the_place_of_another_asks_for_its_vote(joining):
    lost = (FIRST, ME._replace(directory=b"3" * 16))
    assert joining(10_000, lost, lost) == [81], "that of the lost one is taken first"
    assert joining(20_000, (FIRST,), (FIRST,)) == [ADD]
