"""A voter whose disk is full makes way for one that has room; where nobody has any, somebody leads
all the same."""

import errno

import pytest
from sim.agreed.full import ELECTED_MS, AllFull, Small, play
from sim.agreed.story import Story
from sim.agreed.talk import Ask
from sim.agreed.voter import LIMITS
from sim.seeds import first_broken
from sim.world import World

from appliance.control.quorum import state_file as quorum_state
from appliance.control.quorum import wire
from appliance.quorum.messages import Vote
from appliance.wire.build import build
from appliance.wire.messages import decode_response, encode_request, request_type
from tests.seeds import seeds


@pytest.mark.parametrize("seed", seeds(2))
def test_what_clients_ask_for_is_decided_while_a_disk_is_full(seed):
    play(seed)


def test_where_all_disks_are_full_somebody_leads_all_the_same():
    AllFull(World(1)).play()


class StaysOn(Small):
    """It leads on without room, trying again each second."""

    def make_way(self):
        pass


def test_who_leads_on_without_room_is_found():
    assert first_broken(lambda seed: play(seed, voter=StaysOn), 5), "no seed shows it"


class End:
    """Of a connection: what is answered."""

    def send(self, answer):
        self.answer = answer


def asked_for_a_vote(voter, vote):
    """Whether it grants it."""
    sender = wire.Sender("cluster", voter.replica.voters, ())
    key, values = wire.request(vote, voter.number, sender, wire.QuorumFetchLimits(0, 0, 0))
    version, end = wire.HIGHEST[key], End()
    body = encode_request(build(request_type(key, version), values))
    voter.received(end, Ask(1, key, version, body))
    answer = decode_response(key, version, end.answer.body)
    return answer.topics[0].partitions[0].vote_granted


def test_a_vote_that_finds_no_room_is_not_granted_until_it_does():
    story = Story(World(3), voter=Small, limits=LIMITS)
    story.faults.stop()
    story.world.run(ELECTED_MS)
    voters = story.machines[:-1]
    voter, candidate = (one for one in voters if not one.replica.leads)
    before, folder = voter.replica.known, voter.log.folder
    vote = Vote(before.epoch + 1, candidate.number, before.epoch, 1 << 20, pre_vote=False)
    voter.disk.refusing["quorum-state", "create"] = errno.ENOSPC
    assert not asked_for_a_vote(voter, vote)
    assert quorum_state.read(voter.disk, folder) == before
    assert voter.up, "a full disk ends nothing"
    voter.disk.refusing.clear()
    assert not asked_for_a_vote(voter, vote), "it tries now and then"
    story.world.network.block(voter.name, candidate.name)  # nothing else moves its epoch
    story.world.clock.now_ns += 200_000_000
    assert asked_for_a_vote(voter, vote)
    known = quorum_state.read(voter.disk, folder)
    assert (known.epoch, known.voted) == (vote.epoch, candidate.number)
