"""An exception in any function that a read of the remote store calls costs that read: it is
answered, and the next one has the records."""

import itertools
import os

import pytest

from appliance.base import errors
from appliance.ioproc.remote_reads import (
    file_cache,
    remote_files,
    remote_read_rules,
    segment_chunks,
)
from appliance.ioproc.turn.message_barrier import MessageBarrier
from appliance.ring.messages import FOUND, READ, READ_COMMITTED, READ_WAIT
from appliance.shell.bugs import Bugs
from tests.ioproc.planting import play
from tests.ioproc.test_remote_reads import CONFIG
from tests.ioproc.tiered import TieredWorld
from tests.seats import log_file
from tests.sim.disk import SimDisk

pytestmark = pytest.mark.interpreted("plants exceptions in parts")
MODULES = (file_cache, remote_files, remote_read_rules, segment_chunks)
TURNS = 40


def reads(folder, plants):
    """Every offset is read, across the border between the store and this host."""
    folder.mkdir()
    fd, log = log_file(folder, "ioproc")
    bugs = Bugs(log)
    world = TieredWorld("", disk=SimDisk(), payload=4096)
    world.arrivals.barrier = MessageBarrier(world.core, bugs)
    world.core.barrier.bugs = bugs
    partition = world.add("t", **CONFIG)
    for number in range(20):
        world.write(partition, b"%03d" % number * 60)
    world.write(partition, b"x" * 100, producer=(5, 0))
    world.end(partition, 5, commit=False)
    partition.log.roll(0)
    world.settle()
    world.tier(partition, 100)
    refused = 0
    for offset in (0, 4, 9, 0, 15, 20):
        answer = asked(world, plants, bugs, partition, offset)
        if answer.flags != errors.NONE:
            refused += 1
            assert answer.flags == errors.UNKNOWN_SERVER_ERROR
            answer = asked(world, plants, bugs, partition, offset)
        assert answer.flags == errors.NONE and answer.e, offset
        assert world.bytes_of(answer, partition)[:8] == offset.to_bytes(8, "big")
    assert refused <= plants.raised and partition.broken is None
    told = [line for line in (folder / "log").read_text().splitlines() if " bug " in line]
    os.close(fd)
    assert len(told) == plants.raised and all("planted" in line for line in told), told


def asked(world, plants, bugs, partition, offset):
    """The answer to a read."""
    flags = READ_WAIT | READ_COMMITTED
    with plants.chores():
        world.ask(READ, partition.handle, 7, offset, e=400, f=1, flags=flags)
    for _ in range(TURNS):
        with plants.chores():
            got = world.turn()
            bugs.guard("tiered storage", lambda: world.come(most=1))
        found = [one for one in got if one.op == FOUND]
        if found:
            return found[0]
        world.questions.complete_remote_reads(world.served.now_ms)
    raise AssertionError(f"nobody answers a read of {offset}")


def test_reads_of_the_remote_store(tmp_path, monkeypatch):
    numbers = itertools.count()
    names = play(monkeypatch, MODULES, lambda plants: reads(tmp_path / str(next(numbers)), plants))
    assert {
        "RemoteReads.find_bytes", "RemoteFiles.chunk", "RemoteFiles._arrived", "RemoteFiles._fetch",
        "RemoteCache.landed", "SegmentChunks.bounds",
    } <= set(names)  # fmt: skip
