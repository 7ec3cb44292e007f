"""Memory that arrives in, and goes back."""

import mmap
import os

import pytest

from appliance.netproc.memory.slabs import allocate, give_back
from appliance.ring.arena import UNIT, Arena


def pages(fd):
    return os.fstat(fd).st_blocks * 512


@pytest.fixture
def shared():
    fd = os.memfd_create("arena")
    os.ftruncate(fd, 8 * UNIT)
    yield fd, memoryview(mmap.mmap(fd, 8 * UNIT))
    os.close(fd)


def test_idle_memory_goes_back_and_what_is_used_stays(shared):
    fd, memory = shared
    arena = Arena(len(memory))
    kept, gone = allocate(arena, UNIT, 1), allocate(arena, 4 * UNIT, 1)
    for slab in (kept, gone):
        memory[slab.position : slab.limit] = b"x" * (slab.limit - slab.position)
    assert pages(fd) == 5 * UNIT
    gone.let_go()
    give_back(arena, memory)
    give_back(arena, memory)
    assert pages(fd) == UNIT
    assert bytes(memory[kept.position : kept.limit]) == b"x" * UNIT


def test_memory_of_another_kind_is_left_alone():
    arena = Arena(UNIT)
    allocate(arena, UNIT, 1).let_go()
    memory = memoryview(bytearray(UNIT))
    for _ in range(3):
        give_back(arena, memory)
