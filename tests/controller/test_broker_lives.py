"""Brokers register, are heard of, are fenced and end: what the controller decides."""

import random

import pytest
from brokers import FEATURES, SESSION_MS, Brokers, doors, folder

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller import broker_states
from appliance.controller.heartbeats import NEVER, Heartbeats
from appliance.wire import kraft_records as kraft
from tests.seeds import each_seed


def refused(code):
    return pytest.raises(PeerError, check=lambda error: error.code == code)


def test_a_broker_is_fenced_until_it_has_read_its_registration():
    cluster = Brokers(1)
    epoch = cluster.register(2)
    assert epoch == cluster.image.applied_offset
    assert cluster.image.brokers[2].fenced
    assert cluster.beat(2, offset=epoch - 1) == (False, True, False)
    assert cluster.written == []
    assert cluster.beat(2, offset=epoch, want_fence=True) == (True, True, False)
    assert cluster.beat(2, offset=epoch) == (True, False, False)
    assert not cluster.image.brokers[2].fenced
    assert cluster.beat(2) == (True, False, False)
    assert cluster.written == [], "a heartbeat that changes nothing writes nothing"


def test_who_may_not_register():
    cluster = Brokers(1)
    with refused(errors.INCONSISTENT_CLUSTER_ID):
        cluster.register(2, cluster_id="another")
    with refused(errors.DUPLICATE_BROKER_REGISTRATION):
        cluster.register(1, endpoints=(doors(1),))
    with refused(errors.DUPLICATE_BROKER_REGISTRATION):
        cluster.register(1, log_dirs=(folder(9),))
    with refused(errors.BROKER_ID_NOT_REGISTERED):
        cluster.register(2, is_migrating_zk_broker=True)
    for folders in ((), (bytes(15) + b"\1",), (folder(2), folder(2)), (folder(1),)):
        with refused(errors.INVALID_REGISTRATION):
            cluster.register(2, log_dirs=folders)
    with refused(errors.INVALID_REGISTRATION):
        cluster.register(2, features=())
    with refused(errors.UNSUPPORTED_VERSION):
        cluster.register(2, features=[one for one in FEATURES if one.name != "group.version"])
    assert list(cluster.image.brokers) == [1]


def test_who_is_where_the_broker_was_takes_its_place_at_once():
    cluster = Brokers(2)
    cluster.create("t", [1, 2])
    cluster.register(1)
    assert cluster.shape() == (2, [2], [])
    assert cluster.beat(1) == (True, False, False)


def test_the_same_incarnation_registers_again_and_keeps_its_epoch():
    cluster = Brokers(1)
    epoch = cluster.epochs[1]
    assert cluster.register(1, cluster.incarnations[1]) == epoch
    assert not cluster.image.brokers[1].fenced
    assert cluster.beat(1) == (True, False, False)


def test_a_stale_epoch_is_refused():
    cluster = Brokers(1)
    cluster.epochs[1] -= 1
    with refused(errors.STALE_BROKER_EPOCH):
        cluster.beat(1)
    cluster.epochs[7] = 1
    with refused(errors.STALE_BROKER_EPOCH):
        cluster.beat(7)


def test_a_broker_that_is_not_heard_of_is_fenced_when_its_session_is_over():
    cluster = Brokers(2)
    cluster.create("t", [1, 2])
    assert cluster.heartbeats.deadline == cluster.now + SESSION_MS + 1
    cluster.now += 10
    cluster.beat(2)
    assert cluster.tick(SESSION_MS - 10) == []
    assert cluster.tick(1) == [1]
    assert cluster.shape() == (2, [2], [])
    assert cluster.tick(9) == []
    assert cluster.tick(1) == [2]
    assert cluster.shape() == (-1, [], [2])
    assert cluster.heartbeats.deadline == NEVER


def test_a_closed_connection_shortens_a_session_and_a_heartbeat_restores_it():
    cluster = Brokers(2)
    cluster.heartbeats.lost(1, cluster.now, 500)
    assert cluster.heartbeats.deadline == cluster.now + 501
    cluster.beat(1)
    assert cluster.tick(501) == []
    cluster.heartbeats.lost(1, cluster.now, 500)
    assert cluster.tick(501) == [1]
    cluster.register(1, endpoints=(doors(1),)), "another one need not wait for the session"


def test_who_was_never_heard_of_does_not_keep_its_id_from_its_next_start():
    cluster = Brokers(3)
    cluster.heartbeats = Heartbeats(cluster.image, -1, SESSION_MS, cluster.now)
    cluster.beat(2)
    for broker in (1, 2):  # as when all were killed at once: the new controller has the old ones
        with refused(errors.DUPLICATE_BROKER_REGISTRATION):
            cluster.register(broker, endpoints=(doors(1),))
        cluster.heartbeats.doubt(broker, cluster.now, 500)
    assert cluster.tick(501) == [1], "2 lives: somebody else has its id by mistake"
    cluster.register(1, endpoints=(doors(1),))


def test_a_new_controller_gives_every_broker_in_use_a_session_and_its_own_has_no_end():
    cluster = Brokers(3)
    cluster.kill(3)
    cluster.heartbeats = Heartbeats(cluster.image, 1, SESSION_MS, cluster.now)
    assert cluster.tick(SESSION_MS) == []
    assert cluster.tick(1) == [2], "1 is this node, 3 was fenced before"


def test_leaders_go_elsewhere_before_a_broker_ends_and_the_others_have_read_so():
    cluster = Brokers(3)
    cluster.create("t", [1, 2, 3], [2, 1, 3])
    moved = cluster.image.applied_offset
    assert cluster.beat(1, want_shut_down=True) == (True, False, False)
    assert cluster.image.brokers[1].in_controlled_shutdown
    assert cluster.shape() == (2, [2, 3], [])
    assert cluster.shape(index=1) == (2, [2, 3], [])
    assert cluster.partition().leader_epoch == 1 and cluster.partition(index=1).leader_epoch == 0
    assert cluster.beat(1, want_shut_down=True) == (True, False, False), "2 and 3 lead unknowing"
    cluster.beat(2)
    cluster.beat(3, offset=moved)
    assert cluster.beat(1, want_shut_down=True) == (True, False, False)
    cluster.beat(3)
    assert cluster.beat(1, want_shut_down=True) == (True, True, True)
    assert cluster.image.brokers[1].fenced


def test_a_new_controller_goes_on_with_a_broker_that_ends():
    cluster = Brokers(3)
    cluster.create("t", [1, 2, 3])
    cluster.beat(1, want_shut_down=True)
    cluster.heartbeats = Heartbeats(cluster.image, -1, SESSION_MS, cluster.now)
    assert cluster.beat(1, want_shut_down=True) == (True, True, True), "it leads nothing any more"


def test_a_broker_that_leads_nothing_ends_at_once():
    cluster = Brokers(2)
    assert cluster.beat(1, want_shut_down=True) == (True, True, True)
    assert cluster.beat(1, want_shut_down=True) == (True, True, True), "fenced, as often as it asks"
    cluster.beat(2)
    cluster.register(1, endpoints=(doors(1),)), "it ended: nobody waits for its session"


def test_a_broker_whose_partitions_nobody_else_has_ends_too():
    cluster = Brokers(2)
    cluster.create("t", [1])
    assert cluster.beat(1, want_shut_down=True) == (True, False, False)
    assert cluster.shape() == (-1, [], [1])
    cluster.beat(2)
    assert cluster.beat(1, want_shut_down=True) == (True, True, True)
    cluster.register(1, previous=cluster.epochs[1])
    assert cluster.beat(1) == (True, False, False)
    assert cluster.shape() == (1, [1], []), "it had everything, and says that it ended in order"


def test_without_eligible_replicas_the_last_in_sync_stays_so():
    cluster = Brokers(2, elr=False)
    cluster.create("t", [1, 2])
    cluster.kill(2)
    assert cluster.shape() == (1, [1], [])
    cluster.kill(1, 2)
    assert cluster.shape() == (-1, [1], [])
    cluster.start(2)
    assert cluster.shape() == (-1, [1], []), "2 has not everything"
    cluster.start(1)
    assert cluster.shape() == (1, [1], [])


def test_a_broker_that_did_not_end_in_order_is_not_eligible():
    cluster = Brokers(3)
    cluster.create("t", [1, 2, 3], min_insync_replicas="2")
    cluster.kill(3)
    assert cluster.shape() == (1, [1, 2], [])
    cluster.kill(2, 3)
    assert cluster.shape() == (1, [1], [2])
    cluster.kill(1, 2, 3)
    assert cluster.shape() == (-1, [], [1, 2])
    cluster.start(2)
    assert cluster.shape() == (-1, [], [1]), "it may have lost what it had"
    cluster.register(1, previous=cluster.epochs[1])
    assert cluster.shape() == (-1, [], [1])
    cluster.beat(1)
    assert cluster.shape() == (1, [1], [])


def test_a_life_that_was_never_unfenced_costs_nobody_its_eligibility():
    """Two lives that ended in order name the same epoch: the first had not heard of its own
    registration, which arrived when it was over."""
    cluster = Brokers(2)
    cluster.create("t", [1, 2], min_insync_replicas="2")
    cluster.kill(2)
    cluster.kill(1, 2)
    known = cluster.epochs[2]
    for _ in range(3):
        cluster.register(2, previous=known)
        assert cluster.shape() == (-1, [], [1, 2])
    cluster.beat(2)
    assert cluster.shape() == (2, [2], [1])


def test_a_life_that_served_is_the_one_that_must_have_ended_in_order():
    cluster = Brokers(2)
    cluster.create("t", [1, 2], min_insync_replicas="2")
    known = cluster.epochs[2]
    cluster.start(2)
    cluster.kill(2)
    assert cluster.shape() == (1, [1], [])
    cluster.register(1, previous=cluster.epochs[1])
    cluster.register(2, previous=-1)
    served = cluster.epochs[1]
    cluster.beat(1)
    assert cluster.shape() == (1, [1], [])
    cluster.kill(1)
    assert cluster.shape() == (-1, [], [1])
    cluster.register(1, previous=known)
    assert cluster.shape() == (-1, [], []), f"it has what it had before {served}"


def test_a_name_of_what_is_yet_to_come_is_no_orderly_end():
    cluster = Brokers(2)
    cluster.create("t", [1, 2], min_insync_replicas="2")
    cluster.kill(2)
    cluster.kill(1, 2)
    cluster.register(2, previous=cluster.epochs[2] + 1)
    assert cluster.shape() == (-1, [], [1])


def test_the_last_leader_leads_when_nobody_is_eligible_any_more():
    cluster = Brokers(2)
    cluster.create("t", [1, 2], min_insync_replicas="2")
    cluster.kill(2)
    cluster.kill(1, 2)
    assert cluster.shape() == (-1, [], [1, 2])
    assert cluster.partition().last_known_elr == (1,)
    cluster.start(2)
    cluster.register(1)
    assert cluster.shape() == (-1, [], [])
    cluster.beat(1)
    found = cluster.partition()
    assert (found.leader, found.isr, found.leader_recovery_state) == (1, (1,), 1)
    assert found.last_known_elr == ()


def test_unclean_elections_are_for_topics_that_allow_them():
    cluster = Brokers(3, elr=False)
    cluster.create("t", [1, 2])
    cluster.create("u", [1, 2], unclean_leader_election_enable="true")
    cluster.kill(2)
    cluster.start(2)
    cluster.kill(1)
    assert cluster.shape() == (-1, [1], [])
    assert cluster.shape("u") == (2, [2], [])
    assert cluster.partition("u").leader_recovery_state == 1


def test_a_broker_is_unregistered_and_its_partitions_go_elsewhere():
    cluster = Brokers(3)
    cluster.create("t", [1, 2, 3])
    records = broker_states.unregister(cluster.situation, cluster.heartbeats, 1)
    cluster.replay(records)
    assert cluster.shape() == (2, [2, 3], [])
    assert list(cluster.image.brokers) == [2, 3]
    assert cluster.tick(SESSION_MS + 1) == [2, 3]
    with refused(errors.BROKER_ID_NOT_REGISTERED):
        broker_states.unregister(cluster.situation, cluster.heartbeats, 1)


def test_a_folder_that_fails_takes_its_replicas_with_it():
    cluster = Brokers(3)
    cluster.create("t", [1, 2, 3])
    cluster.beat(1, offline=[folder(1), folder(9)])
    assert cluster.shape() == (2, [2, 3], [])
    *_, change = cluster.written
    assert change == kraft.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=cluster.epochs[1]
    ), "Kafka cannot say that none is left"
    cluster.beat(1, cordoned=[folder(1)])
    assert cluster.image.brokers[1].cordoned_log_dirs == (folder(1),)
    cluster.beat(1, cordoned=[folder(1)])
    assert cluster.written == []


def test_a_heartbeat_looks_at_no_partition(monkeypatch):
    cluster = Brokers(3)
    cluster.create("t", *[[1, 2, 3]] * 50)

    class Unseen(dict):
        def values(self):
            raise AssertionError("all topics are looked at")

    monkeypatch.setattr(cluster.image, "topics_by_id", Unseen(cluster.image.topics_by_id))
    assert cluster.beat(2) == (True, False, False)
    assert cluster.tick(10) == []


@each_seed(20)
def test_who_is_fenced_is_who_was_not_heard_of(seed):
    """Against a twin that knows until when each session lasts, and nothing else."""
    chance = random.Random(seed)
    cluster = Brokers(4)
    until = dict.fromkeys(cluster.epochs, cluster.now + SESSION_MS)
    for _ in range(200):
        broker = chance.choice(list(until))
        match chance.choice(("beat", "beat", "lost", "tick")):
            case "beat":
                cluster.beat(broker)
                until[broker] = cluster.now + SESSION_MS
            case "lost":
                cluster.heartbeats.lost(broker, cluster.now, 300)
                if not cluster.image.brokers[broker].fenced:
                    until[broker] = min(until[broker], cluster.now + 300)
            case "tick":
                fenced = {one for one, broker in cluster.image.brokers.items() if broker.fenced}
                found = cluster.tick(chance.choice((0, 100, 301, 5000)))
                late = {one for one, end in until.items() if end < cluster.now}
                assert set(found) == late - fenced
        living = [end for one, end in until.items() if not cluster.image.brokers[one].fenced]
        assert cluster.heartbeats.deadline <= min(living, default=NEVER) + 1
