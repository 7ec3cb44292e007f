"""Producer ids for the transaction coordinators of an I/O process: blocks that control hands out.

Invariant: an id is given once in the life of the cluster. Control writes down that a block is taken
before it says which one; what is left of a block when this process ends is nobody's, which is
harmless: there are 2^63. Called by coordinators while they decide, so nobody waits here: whose
decision lacks one waits in its shard until a block is given.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from appliance.base import errors
from appliance.ring.messages import Message
from appliance.ring.slots import read_id_block

FEW: Final = 100
"""With so many left, the next block is asked for."""


class ProducerIdPool:
    """ask: asks control for a block; False when it cannot be asked now."""

    __slots__ = ("_ask", "_asked", "_left")

    def __init__(self, ask: Callable[[], bool]) -> None:
        self._ask = ask
        self._asked = False
        self._left: deque[range] = deque()

    def take_id(self) -> int | None:
        """An id that no producer had; None while a block is being asked for."""
        if not self._asked and sum(map(len, self._left)) <= FEW:
            self._asked = self._ask()
        if not self._left:
            return None
        first = self._left.popleft()
        if len(first) > 1:
            self._left.appendleft(first[1:])
        return first[0]

    def given(self, message: Message) -> bool:
        """Control's answer (PRODUCER_ID_BLOCK): whether it gave any. When there was none to have,
        the next who wants an id asks again."""
        self._asked = False
        if message.flags - 1 != errors.NONE:
            return False
        block = read_id_block(message)
        assert block.size > 0 and all(block.first >= one.stop for one in self._left)
        self._left.append(range(block.first, block.first + block.size))
        return True

    def control_died(self) -> None:
        """Forgets the pending request: control died before it answered."""
        self._asked = False
