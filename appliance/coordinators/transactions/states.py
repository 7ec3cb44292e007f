"""The states of a transactional id, and which may follow which (KIP-98, KIP-890).

Invariant: MOVES is the only table; every step of a Transaction is held against it. Two states are
never recorded: PREPARE_EPOCH_FENCE lasts for the length of one decision, DEAD is a tombstone.

    Empty ──partition added──> Ongoing ──EndTxn──> PrepareCommit ──markers──> CompleteCommit
                                  │ ──EndTxn──> PrepareAbort ──markers──> CompleteAbort
                                  └──timeout, InitProducerId──> PrepareEpochFence ──> PrepareAbort
"""

from typing import Final

EMPTY: Final = 0
ONGOING: Final = 1
PREPARE_COMMIT: Final = 2
PREPARE_ABORT: Final = 3
COMPLETE_COMMIT: Final = 4
COMPLETE_ABORT: Final = 5
DEAD: Final = 6
PREPARE_EPOCH_FENCE: Final = 7

NAMES: Final = {
    EMPTY: "Empty",
    ONGOING: "Ongoing",
    PREPARE_COMMIT: "PrepareCommit",
    PREPARE_ABORT: "PrepareAbort",
    COMPLETE_COMMIT: "CompleteCommit",
    COMPLETE_ABORT: "CompleteAbort",
    DEAD: "Dead",
    PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
"""As DescribeTransactions and ListTransactions tell them."""

_AT_REST: Final = frozenset((EMPTY, ONGOING, PREPARE_ABORT, DEAD))

MOVES: Final[dict[int, frozenset[int]]] = {
    EMPTY: _AT_REST,
    ONGOING: frozenset((ONGOING, PREPARE_COMMIT, PREPARE_ABORT, PREPARE_EPOCH_FENCE)),
    PREPARE_COMMIT: frozenset((COMPLETE_COMMIT,)),
    PREPARE_ABORT: frozenset((COMPLETE_ABORT,)),
    COMPLETE_COMMIT: _AT_REST,
    COMPLETE_ABORT: _AT_REST,
    PREPARE_EPOCH_FENCE: frozenset((PREPARE_ABORT,)),
    DEAD: frozenset(),
}
"""From a state to those that may follow. An abort of nothing (PREPARE_ABORT from rest) is allowed
from transaction version 2 on: the client cannot know whether its first write arrived."""

PREPARED: Final = frozenset((PREPARE_COMMIT, PREPARE_ABORT))
"""Decided, and markers are under way: whoever asks for something else is told to try again."""
RESTING: Final = frozenset((EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT))
"""Nothing is open: the id may expire."""

assert MOVES.keys() == NAMES.keys()
