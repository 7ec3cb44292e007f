"""An exception in the handling of a message costs one answer, or its partition where the log may be
half changed. In a chore it costs one run of the chore."""

import os

import pytest
from core_world import World, batch

from appliance.base import errors
from appliance.ioproc.partition_failures import ANSWERS
from appliance.ioproc.partitions import partition as partitions
from appliance.ioproc.requests.appends import Appends
from appliance.ioproc.requests.reads import PartitionReads
from appliance.ioproc.turn.message_barrier import MessageBarrier
from appliance.logstore.active import ActiveSegment
from appliance.ring import partition_table as columns
from appliance.ring.messages import APPENDED, DELETE_RECORDS
from appliance.shell.bugs import Bugs
from tests.netproc.netproc_world import World as NetprocWorld
from tests.netproc.test_fetched_files import fetch, produce
from tests.seats import log_file

PLANTED = pytest.mark.interpreted("plants exceptions in parts")


def fail(*args, **more):
    raise KeyError("planted")


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    fd, log = log_file(tmp_path, "ioproc")
    one.arrivals.barrier = MessageBarrier(one.core, Bugs(log))
    yield one
    os.close(fd)


def is_served(world, handle):
    world.append(handle, batch(b"other"), acks=1, token=99, position=65536)
    return [(m.flags, m.token) for m in world.turn()] == [(errors.NONE, 99)]


@PLANTED
@pytest.mark.parametrize(("kind", "name"), [(Appends, "append"), (partitions, "validate")])
def test_a_batch_that_cannot_be_looked_at_is_refused_and_changes_nothing(
    world, monkeypatch, kind, name
):
    p, q = world.add(), world.add("q")
    with monkeypatch.context() as planted:
        planted.setattr(kind, name, fail)
        world.append(p.handle, batch(b"a"), token=1)
        assert [(m.op, m.flags, m.token) for m in world.turn()] == [
            (APPENDED, errors.UNKNOWN_SERVER_ERROR, 1)
        ]
    assert is_served(world, p.handle) and is_served(world, q.handle)


@PLANTED
@pytest.mark.parametrize("name", ["stage", "_enter", "_begin_time"])
def test_a_log_that_may_be_half_changed_goes_offline(world, monkeypatch, name):
    p, q = world.add(), world.add("q")
    with monkeypatch.context() as planted:
        planted.setattr(ActiveSegment, name, fail)
        if name == "_enter":
            p.log.active.since_index = 1 << 20
        world.append(p.handle, batch(b"a"), token=1)
        assert (errors.KAFKA_STORAGE_ERROR, 1) in [(m.flags, m.token) for m in world.turn()]
    assert world.table.read_column(p.handle, columns.STATUS) == columns.OFFLINE
    assert is_served(world, q.handle)


@PLANTED
@pytest.mark.parametrize("op", sorted(ANSWERS))
def test_a_question_that_fails_is_answered(world, monkeypatch, op):
    p, q = world.add(), world.add("q")
    with monkeypatch.context() as planted:
        planted.setattr(PartitionReads, "ask_partition", fail)
        planted.setattr(type(world.arrivals), "_begin_move", fail)
        world.ask(op, p.handle, token=1)
        (answer,) = world.turn()
    assert (answer.op, answer.token) == (ANSWERS[op], 1)
    changes = answer.flags == errors.KAFKA_STORAGE_ERROR
    assert changes == (p.broken is not None)
    assert changes or answer.flags == errors.UNKNOWN_SERVER_ERROR
    assert op != DELETE_RECORDS or changes
    assert is_served(world, q.handle)


class Watched:
    """A part of the chores: what they call of it is noted, and one of these raises. Everything is
    due."""

    def __init__(self, part, name, called, raises):
        self.part, self.name, self.called, self.raises = part, name, called, raises

    def __getattr__(self, name):
        found, told = getattr(self.part, name), f"{self.name}.{name}"
        if name == "due_ms":
            return 0
        if not callable(found):
            inner = type(found).__module__.startswith("appliance.")
            return Watched(found, told, self.called, self.raises) if inner else found

        def call(*args, **more):
            self.called.append(told)
            return fail() if told == self.raises else found(*args, **more)

        return call


def watch(chores, raises=""):
    """Returns the list of what is called, by name, from now on."""
    called = []
    for name in type(chores).__slots__:
        part = getattr(chores, name)
        if type(part).__module__.startswith("appliance.") and name != "bugs":
            setattr(chores, name, Watched(part, name, called, raises))
    return called


def slices(tmp_path, raises=""):
    """What the chores call in a slice, the lines of bugs, and what is read of what was written."""
    world = NetprocWorld(tmp_path)
    process = world.io_process()
    process.raise_barriers(Bugs(world.log))
    called = watch(process._chores, raises)
    process.core.served.stirred = True
    client = world.client()
    produce(world, client, 2)
    records = fetch(world, client, 0).records
    with open(f"/proc/self/fd/{world.fd}") as said:
        told = [line for line in said if " bug " in line]
    world.close()
    return set(called), told, records


@PLANTED
def test_a_chore_that_fails_is_told_and_all_others_are_done(tmp_path):
    """Each that there is."""
    (tmp_path / "sound").mkdir()
    every, told, _ = slices(tmp_path / "sound")
    assert not told and {
        "_home.open_slice", "_housekeeping.tick", "_housekeeping.trims.trim_next", "_cleaning.tick",
        "_left.ask_due", "_isolating.tick",
    } <= every and len(every) >= 12  # fmt: skip
    for name in sorted(every):
        (tmp_path / name).mkdir()
        called, told, records = slices(tmp_path / name, name)
        assert called == every, name
        assert records and told and all("planted" in line for line in told), name
