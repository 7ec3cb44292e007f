"""Allocator of a netproc's receive arena: offsets only, no memory.

The arena is cut into units of 64 KiB. Almost every frame takes one unit, and the unit freed last is
taken first, so a quiet appliance touches little memory and finds it in the cache. A big frame takes
a run of neighbouring units, searched from the far end so that runs and single units stay out of
each other's way.

Invariant: a unit is used by exactly one allocation or by none. Only the netproc that owns the arena
calls this.
"""

from typing import Final

UNIT: Final = 64 * 1024
NO_ROOM: Final = -1


class Arena:
    """Allocator of a memory of `size` bytes; what does not fill a unit at its end is not used."""

    __slots__ = (
        "_backed",
        "_recent",
        "_resting",
        "_stacked",
        "_units",
        "_used",
        "_used_units",
        "runs",
    )

    def __init__(self, size: int) -> None:
        self._units = size // UNIT
        assert self._units > 0, f"an arena has at least one unit of {UNIT} bytes"
        self._used = bytearray(self._units)
        self._stacked = bytearray(self._units)  # 1: the unit is in _recent, perhaps no longer free
        self._recent: list[int] = []
        self._backed: set[int] = set()  # units that have been allocated and not been idle since
        self._resting: set[int] = set()  # those of them that were free at the last look
        self._used_units = 0
        self.runs: dict[int, int] = {}  # first unit → units, for allocations of more than one

    def allocate(self, length: int) -> int:
        """Room for `length` bytes: its position in the arena, or NO_ROOM."""
        assert length > 0
        units = (length + UNIT - 1) // UNIT
        unit = self._take_one() if units == 1 else self._take_run(units)
        if unit < 0:
            return NO_ROOM
        self._used_units += units
        if units == 1:
            self._backed.add(unit)
            self._resting.discard(unit)
        else:
            taken = range(unit, unit + units)
            self._backed.update(taken)
            self._resting.difference_update(taken)
        return unit * UNIT

    def free_slab(self, position: int) -> None:
        """Give back what `allocate` answered; a position that is not allocated is a bug of the
        caller."""
        unit, rest = divmod(position, UNIT)
        assert rest == 0 and 0 <= unit < self._units and self._used[unit], (
            "not an allocated position"
        )
        units = self.runs.pop(unit, 1)
        if units == 1:
            self._used[unit] = 0
            if not self._stacked[unit]:
                self._stacked[unit] = 1
                self._recent.append(unit)
        else:
            self._used[unit : unit + units] = bytes(units)
        self._used_units -= units

    def idle(self) -> list[tuple[int, int]]:
        """Returns the runs unused since the last call as (position, bytes), each once until it is
        used again. Their content may be released."""
        used = self._used
        free = {unit for unit in self._backed if not used[unit]}
        idle = free & self._resting
        self._resting = free - idle
        self._backed -= idle
        runs: list[tuple[int, int]] = []
        for unit in sorted(idle):
            if runs and sum(runs[-1]) == unit * UNIT:
                runs[-1] = runs[-1][0], runs[-1][1] + UNIT
            else:
                runs.append((unit * UNIT, UNIT))
        return runs

    def room(self, position: int) -> int:
        """How many bytes the allocation at `position` may hold."""
        return self.runs.get(position // UNIT, 1) * UNIT

    @property
    def used(self) -> int:
        """Bytes allocated now, whole units."""
        return self._used_units * UNIT

    def invariants(self) -> None:
        """Assert what must always hold; O(units), for tests."""
        assert self._used.count(1) == self._used_units
        assert self._stacked.count(1) == len(self._recent) == len(set(self._recent))
        assert self._resting <= self._backed
        assert all(unit in self._backed for unit in range(self._units) if self._used[unit])
        for first, units in self.runs.items():
            assert units > 1 and self._used[first : first + units] == b"\1" * units

    def _take_one(self) -> int:
        recent, used = self._recent, self._used
        while recent:
            unit = recent.pop()
            self._stacked[unit] = 0
            if not used[unit]:
                used[unit] = 1
                return unit
        unit = used.find(0)
        if unit >= 0:
            used[unit] = 1
        return unit

    def _take_run(self, units: int) -> int:
        if units > self._units - self._used_units:
            return -1
        first = self._used.rfind(bytes(units))
        if first >= 0:
            self._used[first : first + units] = b"\1" * units
            self.runs[first] = units
        return first
