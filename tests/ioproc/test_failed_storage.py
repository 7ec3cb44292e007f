"""A write, sync or read that fails takes one partition offline: never the loop, never another."""

import errno

import pytest
from core_world import World, batch

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.ring import partition_table as columns


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


class Refusing:
    """A file that refuses one kind of call."""

    def __init__(self, file, method):
        self._file = file
        self._method = method

    def __getattr__(self, name):
        if name == self._method:
            raise StorageFailed(self._file.path, errno.EIO, "broken")
        return getattr(self._file, name)


def break_file(partition, method):
    partition.log.active.file = Refusing(partition.log.active.file, method)


def goes_on(world, p, q):
    """p is offline for good and nothing of it is tried again; q is served."""
    assert world.table.read_column(p.handle, columns.STATUS) == columns.OFFLINE
    world.append(q.handle, batch(b"other"), acks=-1, token=99, position=65536)
    got = world.turn(ms=10_000)
    world.threads.run_all()
    got += world.turn(ms=10_000)
    assert [(m.flags, m.token) for m in got] == [(errors.NONE, 99)]
    assert p not in world.core.syncing.dirty
    assert [name for name, _ in world.failures] == [str(p)], "said once"


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_failed_write_leaves_nothing_to_be_synced(world, acks):
    p, q = world.add(), world.add("q")
    break_file(p, "pwritev")
    world.append(p.handle, batch(b"a"), acks=acks, token=1)
    assert [(m.flags, m.token) for m in world.turn()] == [(errors.KAFKA_STORAGE_ERROR, 1)]
    goes_on(world, p, q)


def test_a_write_that_fails_while_a_sync_is_under_way(world):
    """The sync succeeds, and its end must not make the partition dirty again."""
    p, q = world.add(), world.add("q")
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    world.append(p.handle, batch(b"b"), acks=1, token=2)
    assert [(m.flags, m.token) for m in world.turn()] == [(errors.NONE, 2)]
    break_file(p, "pwritev")
    world.append(p.handle, batch(b"c"), acks=1, token=3)
    assert {m.token: m.flags for m in world.turn()} == {
        1: errors.KAFKA_STORAGE_ERROR,
        3: errors.KAFKA_STORAGE_ERROR,
    }
    world.threads.run_all()
    assert world.turn() == []
    goes_on(world, p, q)


def test_a_partition_that_fails_between_wish_and_start_of_a_sync(world):
    p, q = world.add(), world.add("q")
    world.core.syncing.request_sync(p)
    world.core.fail(p, StorageFailed("somewhere", errno.EIO, "broken"))
    world.turn()
    goes_on(world, p, q)


@pytest.mark.interpreted("replaces a method of Log")
@pytest.mark.parametrize("acks", [-1, 1])
def test_leader_epochs_that_cannot_be_written_before_a_sync(world, acks, monkeypatch):
    """What a sync needs first is written on the loop, and can fail there."""
    p, q = world.add(), world.add("q")
    world.append(p.handle, batch(b"a"), acks=acks, token=1)

    def refuse():
        raise StorageFailed("leader-epoch-checkpoint", errno.ENOSPC, "full")

    monkeypatch.setattr(type(p.log), "write_epochs", lambda log: log is p.log and refuse())
    p.log.epochs.changed = True
    got = world.turn() + world.turn(ms=10_000)
    world.threads.run_all()
    got += world.turn()
    wanted = errors.NONE if acks == 1 else errors.KAFKA_STORAGE_ERROR
    assert [(m.flags, m.token) for m in got] == [(wanted, 1)]
    goes_on(world, p, q)


@pytest.mark.interpreted("replaces a method of a segment")
@pytest.mark.parametrize("parked", [False, True])
def test_a_read_that_fails_costs_that_read_alone(world, monkeypatch, parked):
    """A bad sector or a file that somebody removed: what can be read still is."""
    p = world.add()
    if parked:
        world.read(p.handle, 0, token=5)

    def refuse(*_):
        raise StorageFailed("00000000000000000000.log", errno.EIO, "broken")

    monkeypatch.setattr(type(p.log.active), "locate", refuse)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    got = world.turn()
    world.threads.run_all()
    got += world.turn()
    if not parked:
        world.read(p.handle, 0, token=5)
        got += world.turn()
    failed = {1: errors.NONE, 5: errors.KAFKA_STORAGE_ERROR}
    assert {m.token: m.flags for m in got} == failed
    world.read(p.handle, 0, token=6)
    assert [(m.flags, m.token) for m in world.turn()] == [(errors.KAFKA_STORAGE_ERROR, 6)]
    assert [name for name, _ in world.failures] == [str(p)], "said once"
    assert p.broken is None
    assert world.table.read_column(p.handle, columns.STATUS) == columns.ONLINE
    monkeypatch.undo()
    world.read(p.handle, 0, token=7)
    assert [(m.flags, m.token) for m in world.turn()] == [(errors.NONE, 7)]
