"""A fetch in a replica's name moves nothing unless it has the epoch of that broker's registration
(KIP-903): a client could make acknowledged records vanish by it."""

import pytest
from core_world import NOW_MS, batch
from test_damaged_replicas import cluster, led

from appliance.base import errors
from appliance.ring import messages

__all__ = ["cluster"]  # the fixture


def fetch(life, offset, epoch, replica=2):
    head = (messages.READ, messages.READ_REPLICA, 0, 5, offset, 4, -1, 0, epoch, replica, 0, 0)
    life.world.arrivals.handle(
        life.world.core.askers[0], [messages.Message(*head, 1 << 20, 1)], NOW_MS
    )
    return [answer.flags for answer in life.world.turn() if answer.op == messages.FOUND]


@pytest.mark.parametrize(
    ("ahead", "code"),
    [(-1, errors.NOT_LEADER_OR_FOLLOWER), (None, errors.NOT_LEADER_OR_FOLLOWER),
     (1, errors.UNKNOWN_LEADER_EPOCH), (1 << 40, errors.UNKNOWN_LEADER_EPOCH)],
)  # fmt: skip
def test_another_epoch_than_the_registered_one_acknowledges_nothing(cluster, ahead, code):
    life, partition = led(cluster)
    life.world.cluster.epochs = {2: 70, 3: 71}
    before = partition.progress.high_watermark
    life.world.append(0, batch(b"waits"), acks=-1)
    assert life.world.turn() == [], "two others have to have it"
    wrong = -1 if ahead is None else 70 + ahead
    end = partition.progress.log_end
    assert fetch(life, end, wrong) == [code]
    assert fetch(life, end, wrong if ahead is None else 71 + ahead, replica=3) == [code]
    assert partition.progress.high_watermark == before
    fetch(life, end, 70)
    fetch(life, end, 71, replica=3)
    assert partition.progress.high_watermark == end
