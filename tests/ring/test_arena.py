"""The arena's allocator against a list of owned bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.ring.arena import NO_ROOM, UNIT, Arena

UNITS = 12

steps = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.integers(1, UNITS * UNIT + 1)),
        st.tuples(st.just("allocate"), st.integers(1, UNIT)),
        st.tuples(st.just("free"), st.integers(0, 100)),
    ),
    max_size=80,
)


@given(steps)
def test_allocations_never_overlap_and_room_is_refused_only_when_there_is_none(steps):
    arena = Arena(UNITS * UNIT + 17)
    owner = [None] * UNITS
    live = []
    for step, number in steps:
        if step == "allocate":
            units = -(-number // UNIT)
            free_run = any(
                all(o is None for o in owner[at : at + units]) for at in range(UNITS - units + 1)
            )
            position = arena.allocate(number)
            assert (position != NO_ROOM) == free_run
            if position != NO_ROOM:
                first, rest = divmod(position, UNIT)
                assert rest == 0
                assert first + units <= UNITS
                assert owner[first : first + units] == [None] * units
                owner[first : first + units] = [position] * units
                live.append(position)
                assert arena.room(position) == units * UNIT >= number
        elif live:
            position = live.pop(number % len(live))
            arena.free_slab(position)
            owner = [None if o == position else o for o in owner]
        arena.invariants()
        assert arena.used == sum(o is not None for o in owner) * UNIT


def test_the_unit_freed_last_is_taken_first():
    arena = Arena(4 * UNIT)
    first, second, third = (arena.allocate(1) for _ in range(3))
    arena.free_slab(first)
    arena.free_slab(third)
    arena.free_slab(second)
    assert [arena.allocate(UNIT) for _ in range(3)] == [second, third, first]


@pytest.mark.parametrize("position", [0, 1, UNIT, -UNIT, 100 * UNIT])
def test_freeing_what_is_not_allocated_is_a_bug(position):
    with pytest.raises(AssertionError):
        Arena(4 * UNIT).free_slab(position)


def test_what_does_not_fit_is_refused():
    arena = Arena(UNIT)
    arena.allocate(1)
    assert arena.allocate(1) == arena.allocate(2 * UNIT) == NO_ROOM
    assert arena.used == UNIT


def test_what_rested_between_two_looks_is_idle_once():
    arena = Arena(8 * UNIT)
    held, single = arena.allocate(UNIT), arena.allocate(UNIT)
    run = arena.allocate(3 * UNIT)
    arena.free_slab(single)
    arena.free_slab(run)
    assert arena.idle() == [], "it may be needed again at once"
    assert sorted(arena.idle()) == [(single, UNIT), (run, 3 * UNIT)]
    assert arena.idle() == []
    again = arena.allocate(UNIT)
    assert arena.idle() == []
    arena.free_slab(again)
    assert arena.idle() == []
    assert arena.idle() == [(again, UNIT)]
    arena.free_slab(held)
    arena.invariants()


def test_what_was_used_between_two_looks_is_not_idle():
    arena = Arena(4 * UNIT)
    for _ in range(5):
        arena.free_slab(arena.allocate(UNIT))
        assert arena.idle() == []
