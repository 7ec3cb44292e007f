"""The requests in flight of one network process: their numbers, their deadlines, and what was lost
of them.

Invariant: a number names one living exchange, and each living exchange waits for something, so
nothing is answered in another's name and nothing waits for ever. An exchange begins when it asks
somebody, and ends once; what is answered at once never begins.
"""

import heapq
from collections import deque
from collections.abc import Collection
from typing import Final

from appliance.handlers.exchange import Exchange
from appliance.netproc.memory.slabs import Slab

NO_NUMBER: Final = -1
"""Of an exchange that is not in flight: no token carries it."""
DEADLINE: Final = -1
"""Stands for the exchange as a whole where what it waits for has its index."""
_MOST_OVER: Final = 1024
"""Deadlines of exchanges that are over may be so many, beside as many as live."""
_PRODUCE: Final = 0  # API keys
_FETCH: Final = 1
_NUMBERS: Final = 1 << 32  # as many as fit into the upper half of a token


class Exchanges:
    """living: by number. deadlines: (when in ns, number, index or DEADLINE), a heap. lost: see
    `lose`. Read them, never write them."""

    __slots__ = ("_next", "deadlines", "living", "lost")

    def __init__(self, first: int = 0) -> None:
        self.living: dict[int, Exchange] = {}
        self._next = first
        self.deadlines: list[tuple[int, int, int]] = []
        self.lost: deque[tuple[Exchange, int]] = deque()

    def number_exchange(self, x: Exchange) -> None:
        """Give it a number that no living one has."""
        assert x.number == NO_NUMBER, "it is in flight already"
        living = self.living
        number = self._next
        while number in living:  # a long poll may outlive four billion requests
            number = (number + 1) % _NUMBERS
        self._next = (number + 1) % _NUMBERS
        x.number = number
        living[number] = x

    def end_if_done(self, x: Exchange) -> None:
        """End it, and let go of its memory, if nothing is pending and nobody waits. Its handler may
        have hung up: then it is over already."""
        if x.number == NO_NUMBER:
            assert x.connection.closed, "it was answered and is not known"
            return
        if not x.pending and (x.answer is not None or x.connection.closed):
            if x.slab is not None:
                x.slab.let_go()
                x.slab = None
            found = self.living.pop(x.number, None)
            assert found is x, "its number is another's"
            x.number = NO_NUMBER

    def forget_exchange(self, x: Exchange) -> None:
        """Forget a request with nothing pending: completions that still come are ignored."""
        assert x.slab is None, "it ends and holds memory"
        found = self.living.pop(x.number, None)
        assert found is x, "its number is another's"
        x.number = NO_NUMBER

    # Deadlines ------------------------------------------------------------------------------------

    def schedule(self, x: Exchange) -> None:
        """Its deadline is to be kept to the millisecond. A deadline stays in the heap when its
        exchange ends: fetches that wait for weeks and are woken at once would fill the memory, so
        that the heap is bounded by what lives."""
        if len(self.deadlines) > _MOST_OVER + 2 * len(self.living):
            self._drop_over()
        heapq.heappush(self.deadlines, (x.deadline_ns, x.number, DEADLINE))

    def _drop_over(self) -> None:
        self.deadlines[:] = [entry for entry in self.deadlines if self._is_due_some_day(entry)]
        heapq.heapify(self.deadlines)

    def _is_due_some_day(self, entry: tuple[int, int, int]) -> bool:
        deadline, number, index = entry
        x = self.living.get(number)
        if x is None:
            return False
        return index in x.pending if index != DEADLINE else x.deadline_ns == deadline

    def wake_at(self, x: Exchange, index: int, when_ns: int) -> None:
        """End the wait that is pending by this index at `when_ns`. Bounded as `schedule` is."""
        if len(self.deadlines) > _MOST_OVER + 2 * len(self.living):
            self._drop_over()
        heapq.heappush(self.deadlines, (when_ns, x.number, index))

    def next_due(self, now_ns: int) -> tuple[Exchange, int] | None:
        """One that was scheduled for now or before and is not answered, with DEADLINE, or one whose
        wait is over, no longer pending, with its index; each is told once."""
        deadlines = self.deadlines
        while deadlines and deadlines[0][0] <= now_ns:
            deadline, number, index = heapq.heappop(deadlines)
            x = self.living.get(number)
            if x is None:
                continue
            if index != DEADLINE:
                if x.pending.pop(index, None) is not None:
                    return x, index
            elif x.answer is None and x.deadline_ns == deadline:
                return x, index
        return None

    def take_scheduled(self) -> list[Exchange]:
        """All that were scheduled and are not answered, whenever it would be time; each is told
        once."""
        told = [entry for entry in self.deadlines if entry[2] == DEADLINE]
        self.deadlines[:] = [entry for entry in self.deadlines if entry[2] != DEADLINE]
        heapq.heapify(self.deadlines)
        found = []
        for deadline, number, _ in told:
            x = self.living.get(number)
            if x is not None and x.answer is None and x.deadline_ns == deadline:
                found.append(x)
        return found

    def count_delayed(self) -> tuple[int, int]:
        """Returns how many Produce and Fetch requests are in flight: what Kafka's purgatories
        hold, as nothing else of them takes longer than a turn or two."""
        keys = [x.handler.key for x in self.living.values() if x.answer is None]
        return keys.count(_PRODUCE), keys.count(_FETCH)

    def overdue(self, now_ns: int) -> list[Exchange]:
        """All whose deadline has passed without an answer, scheduled or not."""
        return [
            x
            for x in self.living.values()
            if x.deadline_ns and x.answer is None and x.deadline_ns <= now_ns
        ]

    def wait_ms(self, now_ns: int, longest_ms: int) -> int:
        """How long the loop may wait until the next deadline."""
        if not self.deadlines:
            return longest_ms
        return max(0, min(longest_ms, -(-(self.deadlines[0][0] - now_ns) // 1_000_000)))

    # What was lost --------------------------------------------------------------------------------

    def lose(self, x: Exchange, index: int) -> None:
        """Note that the question of this index will never be answered."""
        self.lost.append((x, index))

    def lose_all(self, homes: set[int], answered: Collection[int] = ()) -> None:
        """These processes died: what was asked of them is lost, but for what they had answered (by
        token)."""
        for x in self.living.values():
            for index, home in x.pending.items():
                if home in homes and (x.number << 32 | index) not in answered:
                    self.lost.append((x, index))

    def next_lost(self) -> tuple[Exchange, int] | None:
        """One that was lost, no longer pending; each is told once."""
        while self.lost:
            x, index = self.lost.popleft()
            if x.pending.pop(index, None) is not None:
                return x, index
        return None

    def check(self) -> list[Slab | None]:
        """Assert what must always hold; what memory they hold. O(living)."""
        for number, x in self.living.items():
            assert x.number == number, f"{x.handler.name} {x.number} is known as {number}"
            assert x.pending, f"{x.handler.name} {number} waits for nobody"
        return [x.slab for x in self.living.values()]
