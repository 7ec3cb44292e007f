"""An exception at the end of a turn, in an observer, a coordinator or a chore costs one partition,
one coordinator's reload or one run; it is told once with its traceback, and others are served."""

import inspect
import os
import re
from itertools import chain

import pytest
from core_world import World, batch
from test_coordinating import COMMIT, Groups, code_of

from appliance.base import errors
from appliance.ioproc.coordination.coordinator_host import CoordinatorHost
from appliance.ioproc.coordination.coordinator_partition import LedCoordinator
from appliance.ioproc.coordination.group_lag_sampler import GroupLagSampler
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.partitions.partition_listener import PartitionListener
from appliance.ioproc.partitions.partition_rows import Rows
from appliance.ioproc.requests.appends import Appends
from appliance.ioproc.requests.reads import PartitionReads
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ring import partition_table as columns
from appliance.shell.bugs import Bugs
from tests.netproc.netproc_world import World as NetprocWorld
from tests.netproc.test_fetched_files import fetch, produce
from tests.seats import log_file

PLANTED = pytest.mark.interpreted("plants exceptions in parts")
NOTICED = [
    name for name, _ in inspect.getmembers(PartitionListener, inspect.isfunction) if name[0] != "_"
]
OBSERVERS = ("CoordinatorHost", "Replicas", "Heard")


def fail(*args, **more):
    raise KeyError("planted")


def fails_for(partition, whole):
    """Raises for one partition; for others what is meant is done."""

    def planted(*args, **more):
        if partition in args:
            raise KeyError("planted")
        return whole(*args, **more)

    return planted


@pytest.fixture
def said(tmp_path):
    (tmp_path / "said").mkdir()
    fd, log = log_file(tmp_path / "said", "ioproc")
    yield Bugs(log), tmp_path / "said" / "log"
    os.close(fd)


@pytest.fixture
def world(tmp_path, said):
    one = World(tmp_path)
    one.core.barrier.bugs = said[0]
    return one


def told(said):
    return [line for line in said[1].read_text().splitlines() if " bug " in line]


def is_offline(world, partition):
    return world.table.read_column(partition.handle, columns.STATUS) == columns.OFFLINE


def is_served(world, partition):
    world.append(partition.handle, batch(b"other"), acks=1, token=99)
    world.read(partition.handle, 0, token=98)
    return {(m.flags, m.token) for m in world.settle()} >= {(errors.NONE, 99), (errors.NONE, 98)}


# The end of a turn --------------------------------------------------------------------------------


@PLANTED
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Appends, "write_staged"),
        (Rows, "publish"),
        (PartitionReads, "complete_parked"),
        (Partition, "on_synced"),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_what_fails_at_the_end_of_a_turn_costs_its_partition(world, said, monkeypatch, kind, name):
    p, q = world.add(), world.add("q")
    with monkeypatch.context() as planted:
        planted.setattr(kind, name, fails_for(p, getattr(kind, name)))
        world.read(p.handle, 0, token=1)
        world.append(p.handle, batch(b"a"), acks=-1, token=2)
        world.append(q.handle, batch(b"b"), acks=-1, token=3)
        answers = {m.token: m.flags for m in world.settle()}
    assert answers[1] == errors.KAFKA_STORAGE_ERROR, "the read that waited"
    assert answers[2] in (errors.KAFKA_STORAGE_ERROR, errors.NONE)
    assert answers[2] == errors.KAFKA_STORAGE_ERROR or name in ("complete_parked", "publish")
    assert answers[3] == errors.NONE
    assert is_offline(world, p) and p.broken is not None
    assert is_served(world, q)
    (line,) = told(said)
    assert "Traceback" in line and "planted" in line


@PLANTED
def test_watches_that_cannot_be_told_cost_nobody_else(world, said, monkeypatch):
    p = world.add()
    monkeypatch.setattr(PartitionReads, "tell_watching", fail)
    monkeypatch.setattr(type(world.served.rows.watches), "waits", property(lambda self: [1]),
                        raising=False)  # fmt: skip
    assert is_served(world, p)
    assert len(told(said)) >= 1


# Observers ----------------------------------------------------------------------------------------


@PLANTED
@pytest.mark.parametrize("kind", OBSERVERS)
@pytest.mark.parametrize("noticed", NOTICED)
def test_a_partition_of_which_an_observer_cannot_be_told_goes_offline(
    tmp_path, said, monkeypatch, kind, noticed
):
    world = Groups(tmp_path)
    world.core.barrier.bugs = said[0]
    assert {type(one).__name__ for one in world.core._observers} == set(OBSERVERS)
    (observer,) = [one for one in world.core._observers if type(one).__name__ == kind]
    whole = getattr(type(observer), noticed)

    def planted(self, partition, **more):
        if partition.topic == "p":
            raise KeyError("planted")
        return whole(self, partition, **more)

    with monkeypatch.context() as on_purpose:
        on_purpose.setattr(type(observer), noticed, planted)
        p, q = world.add("p"), world.add("q")
        world.core.follow(p, 1)
        world.core.lead(p, 2)
        world.core._failures.news.append((p, 1))
        world.core.tell_observers()
        world.core._failures.news.append((p, 3))
        world.core.tell_observers()
    assert is_offline(world, p) and not is_offline(world, q)
    assert told(said) and "Traceback" in told(said)[0]
    world.core.remove(p.handle, world.now_ns)
    world.commit(5, token=7)
    assert settled(world) == [(7, errors.NONE)], "groups are served"


@PLANTED
def test_a_partition_that_goes_is_gone_though_an_observer_cannot_be_told(world, said, monkeypatch):
    p, q = world.add(), world.add("q")
    heard = world.core._observers[-1]
    monkeypatch.setattr(type(heard), "closed", fail)
    world.core.remove(p.handle, world.now_ns)
    assert p.handle not in world.core.partitions and is_served(world, q)
    assert len(told(said)) == 1


# Coordinators -------------------------------------------------------------------------------------


def settled(world):
    answers = []
    for _ in range(4):
        told_now = chain.from_iterable(world.turn())
        answers += [(token, code_of(COMMIT, body)) for token, _, body in told_now]
        world.threads.run_all()
    return answers


@PLANTED
@pytest.mark.parametrize(
    ("kind", "name"),
    [(CoordinatorHost, "_append"), (LedCoordinator, "take_batches"),
     (LedCoordinator, "due"), (LedCoordinator, "staged")],
    ids=lambda one: getattr(one, "__name__", one),
)  # fmt: skip
def test_a_coordinator_that_cannot_write_or_answer_begins_from_its_log(
    tmp_path, said, monkeypatch, kind, name
):
    world = Groups(tmp_path)
    world.core.barrier.bugs = said[0]
    world.commit(1, token=1)
    assert settled(world) == [(1, errors.NONE)]
    with monkeypatch.context() as planted:
        planted.setattr(kind, name, fail)
        world.commit(2, token=2)
        answers = settled(world)
    ((token, code),) = answers
    assert token == 2 and code in (errors.NOT_COORDINATOR, errors.COORDINATOR_NOT_AVAILABLE)
    assert any("planted" in cause for _, event, cause in world.events.said if event == "bug")
    world.commit(3, token=3)
    assert settled(world) == [(3, errors.NONE)] and world.partition.broken is None


# Chores -------------------------------------------------------------------------------------------


CHORES = sorted(
    {
        name
        for text in (Housekeeping.tick, Housekeeping._go_round)
        for name in re.findall(r"self\.(_[a-z_]+)", inspect.getsource(text))
        if inspect.isfunction(getattr(Housekeeping, name, None))
    }
    - {"_run", "_believe"}
)
"""Whatever the timed work is made of."""


@PLANTED
@pytest.mark.parametrize("name", [*CHORES, "_retain", "_write", "behind"])
def test_a_chore_that_raises_costs_one_run(tmp_path, said, monkeypatch, name):
    world = NetprocWorld(tmp_path)
    process = world.io_process()
    process.raise_barriers(said[0])
    keeping = process._parts.housekeeping
    client = world.client()
    produce(world, client, 2)

    def all_is_due():
        keeping._next_recovery_ns = keeping._next_watermark_ns = 0
        keeping._next_retention_ns, keeping._relieve_ns = 0, 1  # the older one begins
        for space in process.core.served.spaces:
            space._budget = 0
        process.core.served.stirred = True

    with monkeypatch.context() as planted:
        kind, what = (GroupLagSampler, "sample_slice") if name == "behind" else (Housekeeping, name)
        planted.setattr(kind, what, fail)
        for _ in range(3):
            all_is_due()
            world.io_turn()
    lines = told(said)
    assert lines and "Traceback" in lines[0]
    all_is_due()
    world.io_turn()
    if name != "_retain":  # its segments may be half changed
        assert fetch(world, client, 0).records
    world.close()
